//! Self-loops: the characters of a vocabulary under which a state stays what it is, and those under which it dies.
//!
//! Purpose: two bits per character, made once for a state with many nodes below, so that most nodes of a walk
//! cost one bit test. Serves JSON strings ([`super::charwalk`]) and other texts.
//! Invariant: a character has at most one of the bits; for a character with none the state is stepped.
//! Complexity: the runs of the state's row, and the characters by words of 64.
//! Memory: a quarter of a byte per character, and four bytes per node outside of the loop; as long as the walk.

use std::cell::OnceCell;

use crate::lexical::{LexId, Lexicon};
use crate::vocab::chars::{CharId, Tail};
use crate::vocab::Chars;
use crate::work;

/// The mask of all texts is the base where less than one node in so many lies outside of the loop.
const RARE: usize = 4;

/// The characters under which a state stays what it is, and the tails under which it is alive.
pub(super) struct SelfLoop {
    bits: Box<[u64]>,
    /// The characters under which it dies.
    dead: Box<[u64]>,
    /// Those outside of the loop, as ranges, and whether they have few nodes.
    outside: Vec<(CharId, CharId)>,
    pub(super) few_outside: bool,
    /// Those nodes, in preorder; computed at first use.
    outside_nodes: OnceCell<Vec<u32>>,
}

impl SelfLoop {
    /// `row`: the state's transitions by code points; `string`: of JSON, which has no control characters, and
    /// where quotes and backslashes are special; `lives`: whether the state is alive under a tail
    /// ([`begins`]), where that is enough to know.
    pub(super) fn find(
        chars: &Chars,
        lex: LexId,
        row: &[(u32, LexId)],
        string: bool,
        lives: impl Fn(Tail) -> Option<bool>,
    ) -> Self {
        let points = chars.points().len() as u32;
        work::spend((row.len() + chars.tails().len()) as u64 + u64::from(points) / 64);
        let count = points + chars.tails().len() as u32;
        let mut bits = vec![0u64; count.div_ceil(64) as usize].into_boxed_slice();
        let mut dead = bits.clone();
        let mut from = if string { chars.chars_up_to(0x1F) } else { 0 };
        fill(&mut dead, 0, from);
        for &(end, to) in row {
            let next = chars.chars_up_to(end).max(from);
            match to {
                _ if to == lex => fill(&mut bits, from, next),
                Lexicon::DEAD => fill(&mut dead, from, next),
                _ => {}
            }
            from = next;
        }
        for special in [0x22u32, 0x5C].into_iter().filter(|_| string) {
            if let Ok(c) = chars.points().binary_search(&special) {
                bits[c >> 6] &= !(1 << (c & 63));
                dead[c >> 6] &= !(1 << (c & 63));
            }
        }
        for (c, &tail) in (points..).zip(chars.tails()) {
            let Some(lives) = lives(tail) else { continue };
            let known = if lives { &mut bits } else { &mut dead };
            known[c as usize >> 6] |= 1 << (c & 63);
        }
        let outside = gaps(&bits, count);
        let nodes: usize = outside.iter().map(|&(a, b)| chars.nodes_of(a, b).len()).sum();
        SelfLoop {
            bits,
            dead,
            outside,
            few_outside: nodes * RARE < chars.len(),
            outside_nodes: OnceCell::new(),
        }
    }

    #[inline]
    pub(super) fn has(&self, c: CharId) -> bool {
        self.bits[c as usize >> 6] >> (c & 63) & 1 == 1
    }

    #[inline]
    pub(super) fn is_dead(&self, c: CharId) -> bool {
        self.dead[c as usize >> 6] >> (c & 63) & 1 == 1
    }

    /// The nodes of characters outside of the loop in a range of nodes.
    pub(super) fn outside_nodes(&self, chars: &Chars, from: u32, to: u32) -> &[u32] {
        let all = self.outside_nodes.get_or_init(|| {
            let outside_nodes = || self.outside.iter().flat_map(|&(a, b)| chars.nodes_of(a, b)).copied();
            in_order(chars.len(), outside_nodes().count(), outside_nodes())
        });
        &all[all.partition_point(|&at| at < from)..all.partition_point(|&at| at < to)]
    }
}

/// Distinct numbers below a bound in ascending order: many are marked in a bit each, which costs a tenth of a
/// sort.
fn in_order(bound: usize, count: usize, numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    if count < bound / 64 {
        let mut all: Vec<u32> = numbers.collect();
        all.sort_unstable();
        return all;
    }
    let mut bits = vec![0u64; bound.div_ceil(64)];
    numbers.for_each(|n| bits[n as usize >> 6] |= 1 << (n & 63));
    let mut all = Vec::with_capacity(count);
    for (word, &bits) in (0u32..).zip(&bits) {
        let mut left = bits;
        while left != 0 {
            all.push(word << 6 | left.trailing_zeros());
            left &= left - 1;
        }
    }
    all
}

/// Whether a state is alive under some code point that begins so.
pub(super) fn begins(row: &[(u32, LexId)], tail: Tail) -> bool {
    let runs = &row[row.partition_point(|r| r.0 < tail.first)..];
    let over = runs.partition_point(|r| r.0 < tail.last);
    runs[..=over].iter().any(|r| r.1 != Lexicon::DEAD)
}

fn fill(bits: &mut [u64], from: u32, to: u32) {
    for word in from >> 6..=to >> 6 {
        let (lo, hi) = (from.max(word << 6), to.min((word + 1) << 6));
        if lo < hi {
            bits[word as usize] |= (u64::MAX >> (64 - (hi - lo))) << (lo & 63);
        }
    }
}

/// The ranges of zero bits.
fn gaps(bits: &[u64], count: u32) -> Vec<(u32, u32)> {
    let mut out: Vec<(u32, u32)> = Vec::new();
    let mut at = 0;
    while at < count {
        let word = bits[at as usize >> 6] >> (at & 63);
        if word & 1 == 1 {
            at += word.trailing_ones().min(64 - (at & 63));
            continue;
        }
        let run = if word == 0 { 64 - (at & 63) } else { word.trailing_zeros() };
        let to = (at + run).min(count);
        match out.last_mut() {
            Some(last) if last.1 == at => last.1 = to,
            _ => out.push((at, to)),
        }
        at += run;
    }
    out
}
