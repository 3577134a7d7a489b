//! The transitions of a lexical state over code points, in segments.
//!
//! Complexity, memory: a segment for each run of code points with one target; nothing is stored.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::rows::TransitionRow;
use super::spell::{ByteSet, Lex, LexId, Lexicon, Spelling};
use super::term::{union_ranges, TermId};
use crate::work;

type FxIndexSet<T> = IndexSet<T, FxBuildHasher>;

/// The least code point of several bytes in UTF-8.
pub const WIDE: u32 = 0x80;
/// No text contains them.
const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);
/// Most states of a language that `states_of` visits.
const LOOKED_AT: usize = 256;

/// Code points `first..=last` lead to one state.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub first: u32,
    pub last: u32,
    pub to: LexId,
}

impl Lexicon {
    /// The segments with a live target; in the middle of a code point, one for each live target of its
    /// completions.
    pub fn ways(&mut self, lex: LexId) -> Vec<Segment> {
        if let Lex::Block { runs, .. } = &self.states[lex.0 as usize] {
            let alive = runs.iter().filter(|r| r.1 != Self::DEAD);
            return alive.map(|r| Segment { first: WIDE, last: u32::MAX, to: r.1 }).collect();
        }
        segments(&self.row(lex)).filter(|s| s.to != Self::DEAD && is_text(s)).collect()
    }

    /// The segments of `begin` whose code points `before` can't read.
    pub fn ways_beyond(&mut self, before: LexId, begin: LexId) -> Vec<Segment> {
        let (stays, begins) = (self.row(before), self.row(begin));
        let mut stays = segments(&stays).peekable();
        let mut out = Vec::new();
        for segment in segments(&begins).filter(|s| s.to != Self::DEAD) {
            let mut from = segment.first;
            while let Some(stay) = stays.peek().copied() {
                let last = stay.last.min(segment.last);
                if stay.to == Self::DEAD && from <= last {
                    out.push(Segment { first: from, last, ..segment });
                }
                from = from.max(last.saturating_add(1));
                if stay.last > segment.last {
                    break;
                }
                stays.next();
                if stay.last == segment.last {
                    break;
                }
            }
        }
        out.retain(is_text);
        out
    }

    /// The bytes that texts of a language begin with.
    pub fn first_of(&mut self, term: TermId) -> ByteSet {
        let lex = self.at(Spelling::Raw, term);
        self.starts(lex)
    }

    /// Bytes for which every prefix of a language has a completion that they cannot extend; none where the
    /// language has too many states to tell.
    pub fn ends_before(&mut self, term: TermId) -> ByteSet {
        let Some(states) = self.states_of(term) else { return ByteSet::default() };
        let mut ends: Vec<ByteSet> = Vec::new();
        let mut onward: Vec<Vec<usize>> = Vec::new();
        for &lex in &states {
            let unread = ByteSet::ALL.without(&self.first_bytes(lex));
            ends.push(if self.outcome(lex) == Self::NONE { ByteSet::default() } else { unread });
            onward.push(self.ways(lex).iter().filter_map(|way| states.get_index_of(&way.to)).collect());
        }
        // add what the successors have, until nothing changes
        let mut grows = true;
        while grows {
            grows = false;
            work::spend(4 * ends.len() as u64);
            for at in (0..ends.len()).rev() {
                let before = ends[at].len();
                for &to in &onward[at] {
                    let further = ends[to];
                    ends[at].add(&further);
                }
                grows |= ends[at].len() > before;
            }
        }
        ends.iter().fold(ByteSet::ALL, |all, ends| all.and(ends))
    }

    /// Whether some text of `next` begins with a code point that some text of `term` cannot be extended by.
    /// "No" is certain; a language with too many states to tell gets "yes".
    pub fn may_end_before(&mut self, term: TermId, next: TermId) -> bool {
        let Some(states) = self.states_of(term) else { return true };
        let begin = self.at(Spelling::Raw, next);
        states
            .into_iter()
            .any(|lex| self.outcome(lex) != Self::NONE && !self.ways_beyond(lex, begin).is_empty())
    }

    /// Code points of several bytes that texts of a language begin with.
    pub fn wide_ways(&mut self, term: TermId) -> Vec<(u32, u32)> {
        let lex = self.at(Spelling::Raw, term);
        self.wide(lex)
    }

    /// Code points of several bytes that some state of a language can't read, though it reads one that begins with the
    /// same byte; `None` where it has too many states to tell.
    pub fn unread_beside(&mut self, term: TermId) -> Option<Vec<(u32, u32)>> {
        let mut reads: Vec<Vec<(u32, u32)>> =
            self.states_of(term)?.into_iter().map(|lex| self.wide(lex)).collect();
        crate::lists::sort_unique(&mut reads);
        let mut out = Vec::new();
        for read in reads.iter().filter(|read| !read.is_empty()) {
            work::spend(16 + 4 * read.len() as u64);
            // for each lead byte of what is read, the code points with it that are not read
            let mut beside: Vec<(u32, u32)> = Vec::new();
            for lead in LEADS {
                if read.iter().any(|r| r.0 <= lead.1 && r.1 >= lead.0) {
                    beside = union_ranges(&beside, &without(lead, read));
                }
            }
            out = union_ranges(&out, &beside);
        }
        Some(out)
    }

    fn wide(&mut self, lex: LexId) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> =
            self.ways(lex).iter().filter(|w| w.last >= WIDE).map(|w| (w.first.max(WIDE), w.last)).collect();
        ranges.sort_unstable();
        union_ranges(&ranges, &[])
    }

    /// The states between code points; `None` where they are too many.
    fn states_of(&mut self, term: TermId) -> Option<FxIndexSet<LexId>> {
        let mut seen = FxIndexSet::default();
        seen.insert(self.at(Spelling::Raw, term));
        let mut at = 0;
        while at < seen.len() {
            if seen.len() > LOOKED_AT {
                return None;
            }
            let ways = self.ways(seen[at]);
            work::spend(8 + ways.len() as u64);
            seen.extend(ways.iter().map(|way| way.to));
            at += 1;
        }
        Some(seen)
    }
}

/// A range without the given sorted ranges.
fn without((first, last): (u32, u32), ranges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    let mut from = first;
    for &(a, b) in ranges.iter().filter(|r| r.1 >= first && r.0 <= last) {
        if from < a {
            out.push((from, a - 1));
        }
        from = b.saturating_add(1);
    }
    if from <= last {
        out.push((from, last));
    }
    out
}

/// For the first byte of a multi-byte code point: the number of further bytes, its bits of the code point,
/// and the least code point of this length (Unicode 15, table 3-7: no overlong form).
pub(crate) const fn lead(byte: u8) -> Option<(u32, u32, u32)> {
    match byte {
        0xC2..=0xDF => Some((1, byte as u32 & 0x1F, 0x80)),
        0xE0..=0xEF => Some((2, byte as u32 & 0x0F, 0x800)),
        0xF0..=0xF4 => Some((3, byte as u32 & 0x07, 0x10000)),
        _ => None,
    }
}

/// The code points of each lead byte.
const LEADS: [(u32, u32); 51] = leads();

fn segments(row: &TransitionRow) -> impl Iterator<Item = Segment> + '_ {
    let mut from = 0;
    row.iter().map(move |&(end, to)| {
        let segment = Segment { first: from, last: end, to };
        from = end.saturating_add(1);
        segment
    })
}

fn is_text(segment: &Segment) -> bool {
    segment.first < SURROGATES.0 || segment.last > SURROGATES.1
}

const fn leads() -> [(u32, u32); 51] {
    let mut out = [(0, 0); 51];
    let mut at = 0;
    while at < out.len() {
        if let Some((more, bits, least)) = lead(0xC2 + at as u8) {
            let first = bits << (6 * more);
            out[at] = (if first < least { least } else { first }, ((bits + 1) << (6 * more)) - 1);
        }
        at += 1;
    }
    out
}
