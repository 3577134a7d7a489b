//! Lengths of a term's words: bounds from its form, kept with each term, and searches where the form does not say.
//!
//! A conjunction drops a bound on length that its other operands imply: a date-time of at least one character
//! is a date-time, so that its states recur and share their masks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::term::{Term, TermId, Terms, INF};
use crate::work;

/// No word is shorter than `least` or longer than `most`, in code points. Two bytes each, since every term
/// has one: 65,535 stands for that or more, in `most` for unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LengthBounds {
    least: u16,
    most: u16,
}

impl LengthBounds {
    fn new(least: u32, most: u32) -> Self {
        let cut = |n: u32| n.min(u16::MAX as u32) as u16;
        LengthBounds { least: cut(least), most: cut(most) }
    }

    fn get(self) -> (u32, u32) {
        (self.least as u32, if self.most == u16::MAX { INF } else { self.most as u32 })
    }
}

/// Terms that a short search may visit.
const FEW: usize = 256;

/// The length of a term's shortest word, or that there is none of at most so many code points.
#[derive(Clone, Copy, Debug)]
pub(super) enum ShortestLength {
    Is(u32),
    Beyond(u32),
}

impl Terms {
    /// No word is shorter, in code points.
    pub(super) fn at_least(&self, t: TermId) -> u32 {
        self.facts[t.0 as usize].span.get().0
    }

    /// No word is longer, in code points, as far as the form tells.
    pub fn at_most(&self, t: TermId) -> Option<u32> {
        Some(self.facts[t.0 as usize].span.get().1).filter(|&n| n != INF)
    }

    /// The bounds of a term from those of its operands, in O(operands).
    pub(super) fn span_of(&self, term: &Term, nullable: bool) -> LengthBounds {
        let of = |t: &TermId| self.facts[t.0 as usize].span.get();
        let (least, most) = match term {
            Term::Empty => (INF, 0),
            Term::Eps => (0, 0),
            Term::Class(_) => (1, 1),
            Term::Concat(x, y) => {
                let (x, y) = (of(x), of(y));
                (x.0.saturating_add(y.0), x.1.saturating_add(y.1))
            }
            Term::Or(xs) | Term::Tuple(xs) => {
                xs.iter().map(of).fold((INF, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)))
            }
            Term::And(xs) => xs.iter().map(of).fold((0, INF), |a, b| (a.0.max(b.0), a.1.min(b.1))),
            Term::Repeat(x, lo, hi) => {
                let x = of(x);
                (x.0.saturating_mul(*lo), x.1.saturating_mul(*hi))
            }
            Term::State(table, state) => (self.automata[*table as usize].missing(*state), INF),
            Term::Words(w) => self.word_lengths(*w).unwrap_or((!nullable as u32, INF)),
            Term::All | Term::TrieNode(_) | Term::Not(_) | Term::Num(..) => (!nullable as u32, INF),
        };
        LengthBounds::new(least, most)
    }

    /// Removes from a conjunction the bounds on length that the other operands imply; if they contradict each
    /// other, `EMPTY` becomes the only operand.
    pub(super) fn cut_lengths(&mut self, flat: &mut Vec<TermId>) {
        let any = self.any();
        let bounds = |this: &Self, x: TermId| match *this.get(x) {
            Term::Repeat(c, lo, hi) if c == any => Some((lo, hi)),
            _ => None,
        };
        let Some(at) = flat.iter().position(|&x| bounds(self, x).is_some()) else { return };
        let (lo, hi) = bounds(self, flat[at]).expect("found by it");
        let (mut least, mut most) = (0, INF);
        for (i, x) in flat.iter().enumerate() {
            if i != at {
                let span = self.facts[x.0 as usize].span.get();
                (least, most) = (least.max(span.0), most.min(span.1));
            }
        }
        if least > hi || most < lo {
            return *flat = vec![Self::EMPTY];
        }
        let kept = (if least >= lo { 0 } else { lo }, if most <= hi { INF } else { hi });
        if kept == (0, INF) {
            flat.swap_remove(at);
        } else if kept != (lo, hi) {
            flat[at] = self.repeat(any, kept.0, kept.1);
        }
    }

    /// Whether `rest` has a word with a length in `lo..=hi`.
    pub(super) fn has_length(&mut self, rest: TermId, lo: u32, hi: u32) -> bool {
        let suits = |n: u32| (lo..=hi).contains(&n);
        if self.some_length(rest).is_some_and(suits) {
            return true;
        }
        // some short word is found far sooner than the shortest is proven
        if !self.live(rest) {
            return false;
        }
        if self.some_length(rest).is_some_and(suits) {
            return true;
        }
        match self.least_within(rest, hi) {
            None => return false,
            Some(least) if least >= lo => return true,
            _ => {}
        }
        if self.has_all_greater_lengths(rest) && hi == INF {
            return true;
        }
        self.walk_levels(rest, lo, hi)
    }

    /// The length of some word, without a search: alternatives that need one are skipped.
    pub(super) fn some_length(&mut self, t: TermId) -> Option<u32> {
        if !self.is_boolean(t) || self.nullable(t) {
            return self.least_length(t);
        }
        match self.get(t).clone() {
            Term::Concat(x, y) => {
                let rest = stacker::maybe_grow(128 << 10, 1 << 20, || self.some_length(y))?;
                Some(self.some_length(x)?.saturating_add(rest))
            }
            Term::Or(xs) => xs.iter().filter_map(|&x| self.some_length(x)).min(),
            Term::Repeat(x, lo, _) => Some(self.some_length(x)?.saturating_mul(lo)),
            _ => self.known.witness.get(&t).copied(),
        }
    }

    /// Sets of terms reached after k code points, until `lo..=hi` is reached or the sets repeat.
    fn walk_levels(&mut self, start: TermId, lo: u32, hi: u32) -> bool {
        let mut seen: FxHashMap<Vec<TermId>, u32> = FxHashMap::default();
        let mut history: Vec<bool> = Vec::new();
        // many ranges of a term share a target
        let mut found: FxHashSet<TermId> = FxHashSet::default();
        let mut level = vec![start];
        for k in 0.. {
            let accepts = level.iter().any(|&t| self.nullable(t));
            if k >= lo && accepts {
                return true;
            }
            if level.is_empty() || k >= hi {
                return false;
            }
            if let Some(&first) = seen.get(&level) {
                let period = k - first;
                return (k.max(lo)..=hi.min(k.max(lo).saturating_add(period)))
                    .any(|n| history[(first + (n - first) % period) as usize]);
            }
            seen.insert(level.clone(), k);
            history.push(accepts);
            for &t in &level {
                let runs = self.delta_raw(t);
                self.spend(1 + runs.len() as u64 / 4);
                found.extend(runs.iter().map(|r| r.to));
            }
            found.remove(&Self::EMPTY);
            let mut next: Vec<TermId> = found.drain().collect();
            next.sort_unstable();
            self.spend(1 + 2 * next.len() as u64);
            level = next;
        }
        unreachable!()
    }

    /// Length of the shortest word; `None` when there is none.
    pub fn least_length(&mut self, t: TermId) -> Option<u32> {
        self.least_within(t, INF)
    }

    /// The same by a short search; `None` also where that would visit more than `FEW` terms.
    pub(super) fn least_by_short_search(&mut self, t: TermId) -> Option<u32> {
        self.most_visited = FEW;
        let found = self.least_within(t, INF);
        self.most_visited = usize::MAX;
        found
    }

    /// Length of the shortest word where that is at most `most`. A search goes no deeper: two characters
    /// before a limit on length, only words of at most two characters matter.
    fn least_within(&mut self, t: TermId, most: u32) -> Option<u32> {
        if self.nullable(t) {
            return Some(0);
        }
        match self.known.least.get(&t) {
            Some(ShortestLength::Is(n)) => return Some(*n).filter(|n| *n <= most),
            Some(ShortestLength::Beyond(n)) if *n >= most => return None,
            _ => {}
        }
        let answer = stacker::maybe_grow(128 << 10, 1 << 20, || self.measure(t, most));
        // a short search may have missed the shortest word
        if self.most_visited == usize::MAX {
            self.known.least.insert(t, answer.map_or(ShortestLength::Beyond(most), ShortestLength::Is));
        }
        answer.filter(|n| *n <= most)
    }

    fn measure(&mut self, t: TermId, most: u32) -> Option<u32> {
        match self.get(t).clone() {
            Term::Empty => None,
            Term::Class(_) => Some(1),
            Term::State(table, state) => Some(self.automata[table as usize].missing(state)),
            Term::Words(w) if self.word_lengths(w).is_some() => self.word_lengths(w).map(|n| n.0),
            Term::Words(_) | Term::TrieNode(_) => {
                let words = self.finite_words(t)?;
                work::spend(words.iter().map(|word| word.len() as u64 / 64 + 1).sum());
                words.iter().map(|s| s.chars().count() as u32).min()
            }
            Term::Concat(x, y) => {
                let head = self.least_within(x, most)?;
                Some(head.saturating_add(self.least_within(y, most.saturating_sub(head))?))
            }
            Term::Or(xs) | Term::Tuple(xs) => xs.iter().filter_map(|&x| self.least_within(x, most)).min(),
            Term::Repeat(x, lo, _) => Some(self.least_within(x, most)?.saturating_mul(lo)),
            _ => self.least_by_search(t, most),
        }
    }

    /// A* over derivatives: the form's lower bound is admissible, so the first accepting term taken from the
    /// queue is a nearest one (Hart, Nilsson, Raphael 1968). Five open groups are closed in five steps, where
    /// a breadth-first search reads all that may stand in them.
    fn least_by_search(&mut self, start: TermId, most: u32) -> Option<u32> {
        let mut best: FxHashMap<TermId, (u32, TermId)> = FxHashMap::default();
        let mut queue: BinaryHeap<(Reverse<u32>, u32, TermId)> = BinaryHeap::new();
        best.insert(start, (0, start));
        queue.push((Reverse(self.least_missing(start)), 0, start));
        while let Some((Reverse(bound), depth, t)) = queue.pop() {
            if depth > best[&t].0 {
                continue;
            }
            if bound > most || best.len() > self.most_visited {
                return None;
            }
            if self.nullable(t) {
                self.mark_least(t, start, &best);
                return Some(depth);
            }
            let depth = depth + 1;
            let runs = self.delta_raw(t);
            self.spend(16 + 4 * runs.len() as u64);
            for run in runs.iter().filter(|run| run.to != Self::EMPTY) {
                if best.get(&run.to).is_none_or(|found| depth < found.0) {
                    best.insert(run.to, (depth, t));
                    queue.push((Reverse((depth + self.least_missing(run.to)).max(bound)), depth, run.to));
                }
            }
        }
        None
    }

    /// A lower bound on the length of the shortest word.
    pub fn least_missing(&self, t: TermId) -> u32 {
        let known = match self.known.least.get(&t) {
            Some(ShortestLength::Is(n)) => *n,
            Some(ShortestLength::Beyond(n)) => n.saturating_add(1),
            None => 0,
        };
        known.max(self.at_least(t)).min(u16::MAX as u32)
    }

    /// Records the shortest lengths along a shortest path: its suffixes are shortest too.
    fn mark_least(&mut self, end: TermId, start: TermId, best: &FxHashMap<TermId, (u32, TermId)>) {
        let total = best[&end].0;
        let mut at = end;
        while at != start {
            let (depth, before) = best[&at];
            if !self.nullable(at) {
                self.known.least.insert(at, ShortestLength::Is(total - depth));
            }
            at = before;
        }
    }

    /// Whether the form shows words of every length from some length on.
    fn has_all_greater_lengths(&self, t: TermId) -> bool {
        match self.get(t) {
            Term::All => true,
            Term::Repeat(x, _, INF) => matches!(self.get(*x), Term::Class(_)),
            Term::Concat(x, y) => self.has_all_greater_lengths(*x) || self.has_all_greater_lengths(*y),
            Term::Or(xs) => xs.iter().any(|&x| self.has_all_greater_lengths(x)),
            _ => false,
        }
    }
}
