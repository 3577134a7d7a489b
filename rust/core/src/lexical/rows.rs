//! Transition rows: runs of code points with their target states; slices of rows, and runs merged with
//! neighbours.

use std::sync::Arc;

use super::spell::{LexId, Lexicon};

/// Code points up to each end lead to a state.
pub(crate) type TransitionRow = Arc<[(u32, LexId)]>;

/// The runs of `base..base+size`, renumbered from 0; those that `keep` rejects lead to `DEAD`.
pub(super) fn slice(runs: &TransitionRow, base: u32, size: u32, keep: impl Fn(u32) -> bool) -> TransitionRow {
    let mut out: Vec<(u32, LexId)> = Vec::new();
    let mut push = |end: u32, to: LexId| match out.last_mut() {
        Some(last) if last.1 == to => last.0 = end,
        _ => out.push((end, to)),
    };
    let mut at = base;
    let last = base + size - 1;
    let mut i = runs.partition_point(|r| r.0 < base);
    while at <= last {
        let (end, to) = match runs.get(i) {
            Some(&(end, to)) => (end.min(last), to),
            None => (last, Lexicon::DEAD),
        };
        // the filters change their answer at few borders (surrogates, the least value of a UTF-8 length,
        // control characters): probe each of them, without bisection
        let mut from = at;
        for border in BORDERS.iter().copied().chain([end + 1]) {
            if border <= from || border > end + 1 {
                continue;
            }
            push(border - 1 - base, if keep(from) { to } else { Lexicon::DEAD });
            from = border;
        }
        at = end + 1;
        i += 1;
    }
    out.into()
}

/// Where the filters of [`slice`] may change their answer, in ascending order.
const BORDERS: [u32; 20] = [
    8, 9, 10, 11, 12, 13, 14, 0x20, 0x26, 0x27, 0x3C, 0x3D, 0x3E, 0x3F, 0x7F, 0x80, 0x800, 0xD800, 0xE000,
    0x10000,
];

pub(super) fn join(runs: Vec<(u32, LexId)>) -> TransitionRow {
    let mut out: Vec<(u32, LexId)> = Vec::with_capacity(runs.len());
    for (end, to) in runs {
        match out.last_mut() {
            Some(last) if last.1 == to => last.0 = end,
            _ => out.push((end, to)),
        }
    }
    out.into()
}
