//! An upper bound on the code points that complete a word, after any prefix of it.
//!
//! Invariant: from every live state of a term's derivatives, a shortest completion is no longer; `None` where
//! the form does not tell and the states are too many to visit.
//! Complexity: the form, or a limited number of derivatives (`STATES`, `MORE_STATES`), once per term.
//! Rejected: the longest word, which most languages lack.

use std::collections::VecDeque;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::delta::Runs;
use super::spell::{LexId, Lexicon, Spelling};
use super::term::{Term, TermId, Terms, INF};

/// Derivatives that are visited where the form does not tell; of a number at most as many as the search for
/// its completion visits ([`super::shortest_lexeme`]), which beyond that takes any completion.
const STATES: usize = 64;
const MORE_STATES: usize = 1024;
const NUMBERS: usize = 60;
/// Runs per state that are visited, on average: with thousands, each state costs a millisecond.
const RUNS: usize = 32;
/// A number may be written with a sign, a point, and an exponent with a sign and three digits.
const AROUND_DIGITS: u32 = 7;
/// Code points after which a loop has a word outside any 2^32 words.
const APART: u32 = 32;
/// A set with so many words or more does not count as few excluded words.
const LACKING: usize = 1 << 16;
/// Most bytes of a code point in a JSON string, and most bytes that complete a partly read one (a surrogate's
/// escape has a second half).
const WIDEST: usize = 6;
const BEGUN: usize = 12;

/// States of a term, each with the indices of its predecessors.
type States = IndexMap<TermId, Vec<usize>, FxBuildHasher>;

/// Known bounds of terms, in code points.
pub type RemainingBounds = FxHashMap<TermId, Option<u32>>;

impl Lexicon {
    /// Bytes that complete a lexeme that began in this state, after any prefix; without the quote.
    pub fn remaining_bound(&mut self, lex: LexId) -> Option<usize> {
        let (spelling, term) = self.term(lex)?;
        let points = self.terms.remains_at_last(term)? as usize;
        let bytes = match spelling {
            _ if self.terms.is_plain(term) => points,
            Spelling::Raw => points.saturating_mul(4),
            _ => points.saturating_mul(WIDEST),
        };
        Some(bytes.saturating_add(BEGUN))
    }
}

impl Terms {
    /// Code points that complete a word of the term, after any prefix.
    pub fn remaining_bound(&mut self, t: TermId) -> Option<u32> {
        memo!(self.known.remaining_bound, t, stacker::maybe_grow(64 << 10, 1 << 20, || self.find_remains(t)))
    }

    /// The same for a whole language: it visits more states where the parts do not tell.
    fn remains_at_last(&mut self, t: TermId) -> Option<u32> {
        let found =
            self.remaining_bound(t).or_else(|| self.among_states(t, MORE_STATES)).or_else(|| self.longest(t));
        self.known.remaining_bound.insert(t, found);
        found
    }

    fn find_remains(&mut self, t: TermId) -> Option<u32> {
        if let Some((rest, most)) = self.length_limit(t) {
            // a prefix that can be completed within the limit has its shortest completion in `rest` within it
            return Some(self.remaining_bound(rest)?.min(most));
        }
        match self.get(t).clone() {
            Term::Empty | Term::Eps | Term::All => Some(0),
            Term::Class(_) => Some(1),
            Term::Words(_) | Term::TrieNode(_) => {
                let words = self.finite_words(t)?;
                crate::work::spend(words.len() as u64);
                words.iter().map(|word| word.chars().count() as u32).max()
            }
            Term::Concat(x, y) => {
                let (head, tail) = (self.remaining_bound(x)?, self.remaining_bound(y)?);
                Some(head.saturating_add(self.least_by_short_search(y)?).max(tail))
            }
            Term::Or(xs) | Term::Tuple(xs) => self.most_of(&xs),
            Term::Repeat(x, lo, _) => {
                // the partly read copy, and those that must follow
                let later = self.least_by_short_search(x)?.saturating_mul(lo.saturating_sub(1));
                Some(self.remaining_bound(x)?.saturating_add(later))
            }
            Term::And(xs) => {
                let known = self.remains_of_all(&xs).or_else(|| self.among_states(t, STATES));
                known.or_else(|| self.longest(t))
            }
            // some further code point makes none of the excluded words
            Term::Not(x) if self.lacks_few(x) => Some(1),
            Term::Num(..) => {
                let longest = self.longest(t);
                longest.filter(|&n| n <= AROUND_DIGITS).or_else(|| self.among_states(t, NUMBERS)).or(longest)
            }
            Term::Not(_) | Term::State(..) => self.among_states(t, STATES),
        }
    }

    fn most_of(&mut self, xs: &[TermId]) -> Option<u32> {
        let mut most = 0;
        for &x in xs.iter().filter(|&&x| x != Self::EMPTY) {
            most = most.max(self.remaining_bound(x)?);
        }
        Some(most)
    }

    fn lacks_few(&self, words: TermId) -> bool {
        self.lists_words(words) && self.finite_words(words).is_some_and(|words| words.len() < LACKING)
    }

    /// The bound of a language with few excluded words: after one of them, one more code point, or another
    /// last one, makes a word of the language, if there are more code points than excluded words.
    fn remains_of_all(&mut self, xs: &[TermId]) -> Option<u32> {
        let lacking = |this: &Self, x: TermId| match *this.get(x) {
            Term::Not(words) => this.lacks_few(words),
            _ => false,
        };
        let others: Vec<TermId> = xs.iter().copied().filter(|&x| !lacking(self, x)).collect();
        let [only] = others[..] else { return others.is_empty().then_some(1) };
        if others.len() == xs.len() {
            return None;
        }
        if self.is_open(only) {
            return Some(self.remaining_bound(only)?.saturating_add(1));
        }
        let Term::Repeat(class, lo, _) = *self.get(only) else { return None };
        let Term::Class(set) = *self.get(class) else { return None };
        let size: u32 = self.set(set).iter().map(|&(from, to)| to - from + 1).sum();
        let lacking: usize = xs
            .iter()
            .filter_map(|&x| match *self.get(x) {
                Term::Not(words) => self.finite_words(words),
                _ => None,
            })
            .map(|words| words.len())
            .sum();
        (size as usize > lacking).then_some(lo.max(1))
    }

    /// Code points of the longest word, where the form tells.
    fn longest(&self, t: TermId) -> Option<u32> {
        match self.get(t) {
            Term::Num(language, _) => {
                let (whole, places) = self.numbers.most_digits(*language)?;
                Some(whole.saturating_add(places).saturating_add(AROUND_DIGITS))
            }
            Term::And(xs) => xs.iter().filter_map(|&x| self.longest(x)).min().or_else(|| self.at_most(t)),
            _ => self.at_most(t),
        }
    }

    /// The same for the language without any 2^32 of its words, as long as something is left: an object has
    /// each key once.
    pub fn remains_side_by_side(&mut self, t: TermId) -> Option<u32> {
        let known = self.side_by_side_by_form(t).or_else(|| self.longest(t));
        known.or_else(|| self.side_by_side_by_states(t))
    }

    fn side_by_side_by_form(&mut self, t: TermId) -> Option<u32> {
        if self.is_open(t) {
            // two further code points, of a million each
            return Some(self.remaining_bound(t)?.saturating_add(2));
        }
        match self.get(t).clone() {
            Term::Repeat(x, lo, INF) => match *self.get(x) {
                Term::Class(set)
                    if self.set(set).iter().map(|&(from, to)| to - from + 1).sum::<u32>() > 1 =>
                {
                    Some(lo.saturating_add(APART))
                }
                _ => None,
            },
            Term::Concat(x, y) => {
                let tail = self.side_by_side_by_form(y)?;
                Some(self.remaining_bound(x)?.saturating_add(tail))
            }
            Term::Or(xs) => {
                let mut most = 0;
                for &x in xs.iter() {
                    most = most.max(self.side_by_side_by_form(x)?);
                }
                Some(most)
            }
            _ => None,
        }
    }

    /// By the distance from each state to one after which every text is a word.
    fn side_by_side_by_states(&mut self, t: TermId) -> Option<u32> {
        let states = self.states(t, 4 * STATES, Self::delta)?;
        let mut ways: Vec<Option<u32>> = vec![None; states.len()];
        let mut todo: VecDeque<usize> = VecDeque::new();
        for (i, _) in states.keys().enumerate().filter(|s| self.is_open(*s.1) && self.nullable(*s.1)) {
            ways[i] = Some(2);
            todo.push_back(i);
        }
        while let Some(at) = todo.pop_front() {
            for &from in &states[at] {
                if ways[from].is_none() {
                    ways[from] = ways[at].map(|n| n + 1);
                    todo.push_back(from);
                }
            }
        }
        ways.into_iter().collect::<Option<Vec<u32>>>()?.into_iter().max()
    }

    /// The longest of the states' shortest completions, if the states are few.
    fn among_states(&mut self, t: TermId, most: usize) -> Option<u32> {
        // first without a check of which states are live
        self.states(t, most * 2, Self::delta_raw)?;
        let states = self.states(t, most, Self::delta)?;
        states.into_keys().try_fold(0, |most, t| Some(most.max(self.least_by_short_search(t)?)))
    }

    /// The states of a term, each with its predecessors; `None` where they are more than `most`, or have many
    /// runs.
    fn states(&mut self, t: TermId, most: usize, delta: fn(&mut Self, TermId) -> Runs) -> Option<States> {
        let mut states = States::from_iter([(t, Vec::new())]);
        let (mut at, mut seen) = (0, 0);
        while let Some((&t, _)) = states.get_index(at) {
            let runs = delta(self, t);
            crate::work::spend(8 + runs.len() as u64);
            seen += runs.len();
            for run in runs.iter().filter(|run| run.to != Self::EMPTY) {
                states.entry(run.to).or_default().push(at);
            }
            if states.len() > most || seen > most * RUNS {
                return None;
            }
            at += 1;
        }
        Some(states)
    }

    /// Whether every code point of the words is a byte that a JSON string needs not escape, or can be
    /// replaced by one.
    fn is_plain(&self, t: TermId) -> bool {
        let plain =
            |from: u32, to: u32| from >= 0x20 && to < 0x7F && !(from..=to).any(|c| c == 0x22 || c == 0x5C);
        match self.get(t) {
            Term::Empty | Term::Eps => true,
            Term::Class(set) => self.set(*set).iter().all(|&(from, to)| plain(from, to)),
            Term::Words(_) | Term::TrieNode(_) => self.finite_words(t).is_some_and(|words| {
                words.iter().all(|word| word.chars().all(|c| plain(c as u32, c as u32)))
            }),
            Term::Concat(x, y) => self.is_plain(*x) && self.is_plain(*y),
            Term::Or(xs) => xs.iter().all(|&x| self.is_plain(x)),
            Term::And(xs) => xs.iter().any(|&x| self.is_plain(x)),
            Term::Num(..) => true,
            // all code points of the class lead to the same state, so a letter can be chosen
            Term::Repeat(x, ..) => match self.get(*x) {
                Term::Class(set) => {
                    self.is_plain(*x) || self.set(*set).iter().any(|&(from, to)| from <= 0x61 && to >= 0x7A)
                }
                _ => self.is_plain(*x),
            },
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashSet;

    use super::*;
    use crate::regex::{parse, Dialect};

    /// The longest of all states' shortest completions.
    fn farthest(terms: &mut Terms, t: TermId) -> u32 {
        let (mut seen, mut todo, mut most) = (FxHashSet::from_iter([t]), vec![t], 0);
        while let Some(at) = todo.pop() {
            most = most.max(terms.least_length(at).expect("states are alive"));
            for run in terms.delta(at).iter().filter(|run| run.to != Terms::EMPTY) {
                if seen.insert(run.to) {
                    todo.push(run.to);
                }
            }
        }
        most
    }

    #[test]
    fn no_state_needs_more() {
        for pattern in [
            "abc|abde{4}",
            "(ab){2,5}c",
            "[a-z]{3,40}",
            "(a|bcd)*e",
            "x(yz|w{9})?",
            "((ab|c){3}d)*",
            "a{0,7}b{2}",
        ] {
            let mut lexicon = Lexicon::default();
            let term = lexicon.terms.lower(&parse(pattern, Dialect::Python).expect("a pattern"));
            let (bound, exact) = (lexicon.terms.remaining_bound(term), farthest(&mut lexicon.terms, term));
            assert!(bound.is_some_and(|bound| bound >= exact), "{pattern}: {bound:?} < {exact}");
        }
    }
}
