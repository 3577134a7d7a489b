//! Nonemptiness: does a term accept any text at all?
//!
//! A term without `And`, `Not` is empty only if it is `Empty`: the constructors ensure that. For others, a
//! search over derivatives looks for an accepting one; the terms on its path get the same answer. A bound on
//! length is split off first, because a walk of the counter would visit a term per count: `R & .{lo,hi}`
//! needs the lengths of R's words, not its words. The call's work ([`crate::work`]) bounds a search: if it is
//! undecided by then, the call fails, since a guess could lead a text into a dead end.
//! Invariant: an answer is never a guess. Memory: an answer for each visited term.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};

use super::term::{Term, TermId, Terms, INF};
use crate::work;

/// The `effort` of terms and of their complements (false), as far as computed.
type SearchEfforts = FxHashMap<(TermId, bool), u32>;

/// Longest word that is tried without a search, in bytes.
const LIKELY: usize = 48;
/// Terms that a first search may visit.
const SOME: usize = 256;
/// Terms that a search of the relaxed term (without counts) may visit.
const MANY: usize = 20_000;

/// Parts that may be visited to count a term's words, or to spell one; a shared part counts at each visit.
const PARTS: u32 = 256;

impl Terms {
    /// Whether some text is accepted.
    pub fn live(&mut self, t: TermId) -> bool {
        if !self.is_boolean(t) {
            return t != Self::EMPTY;
        }
        if self.nullable(t) {
            return true;
        }
        memo!(self.known.live, t, stacker::maybe_grow(128 << 10, 1 << 20, || self.decide(t)))
    }

    fn decide(&mut self, t: TermId) -> bool {
        match self.get(t).clone() {
            Term::Or(xs) | Term::Tuple(xs) => xs.iter().any(|&x| self.live(x)),
            Term::Concat(x, y) => self.live(x) && self.live(y),
            Term::Repeat(x, lo, _) => lo == 0 || self.live(x),
            Term::Not(x) if self.lists_words(x) => true,
            Term::And(xs) if self.outnumbers(&xs) => true,
            Term::And(xs) => match self.split_length(&xs) {
                Some((rest, lo, hi)) => self.has_length(rest, lo, hi),
                None => self.likely_word(t, &xs) || self.find_word(t),
            },
            _ => self.find_word(t),
        }
    }

    /// Whether a short word of one operand is a word of all. This needs derivatives of the operands, which
    /// many states share, but none of the conjunction, which a search would make for each state.
    fn likely_word(&mut self, t: TermId, xs: &[TermId]) -> bool {
        for &x in xs {
            let mut word = String::new();
            if !self.spell_word(x, &mut word, &mut { PARTS }) {
                continue;
            }
            if xs.iter().all(|&y| y == x || self.accepts(y, &word)) {
                self.known.witness.insert(t, word.chars().count() as u32);
                return true;
            }
        }
        false
    }

    /// Appends a short word of a term by its form; false where the form gives none within the limits.
    fn spell_word(&self, t: TermId, word: &mut String, left: &mut u32) -> bool {
        if *left == 0 || word.len() >= LIKELY {
            return false;
        }
        *left -= 1;
        work::spend(1);
        match self.get(t) {
            _ if self.nullable(t) => true,
            Term::Class(s) => match self.set(*s).iter().find_map(|r| (r.0..=r.1).find_map(char::from_u32)) {
                Some(c) => {
                    word.push(c);
                    true
                }
                None => false,
            },
            Term::Concat(x, y) => self.spell_word(*x, word, left) && self.spell_word(*y, word, left),
            Term::Repeat(x, lo, _) => (0..*lo).all(|_| self.spell_word(*x, word, left)),
            Term::Or(xs) => {
                let mut parts: Vec<TermId> = xs.to_vec();
                parts.sort_by_key(|&x| self.at_least(x));
                let from = word.len();
                parts.into_iter().any(|x| {
                    word.truncate(from);
                    self.spell_word(x, word, left)
                })
            }
            Term::Words(w) => {
                word.push_str(&self.word_slice(*w)[0][w.depth as usize..]);
                true
            }
            _ => false,
        }
    }

    /// Whether all operands but one exclude listed words, fewer than that one has, as in the keys that an
    /// object's pattern still allows. This saves a new search for each key.
    fn outnumbers(&self, xs: &[TermId]) -> bool {
        let (mut taken, mut kept) = (0u64, None);
        for &x in xs {
            match self.get(x) {
                Term::Not(y) => match self.finite_count(*y) {
                    Some(count) => taken = taken.saturating_add(count),
                    None => return false,
                },
                _ if kept.is_some() || self.is_boolean(x) => return false,
                _ => kept = Some(x),
            }
        }
        kept.is_some_and(|x| self.words_at_least(x, &mut { PARTS }) > taken)
    }

    /// An upper bound on the number of words of a term that lists them.
    pub(super) fn finite_count(&self, t: TermId) -> Option<u64> {
        match self.get(t) {
            Term::Empty => Some(0),
            Term::Eps => Some(1),
            Term::Words(w) => Some((w.hi - w.lo) as u64),
            Term::TrieNode(node) => Some(node.count as u64),
            _ => None,
        }
    }

    /// A lower bound on the count of words of a term without `And`, `Not`; `u64::MAX`: endless. `left`: parts that
    /// may still be visited; the rest count as one word each.
    fn words_at_least(&self, t: TermId, left: &mut u32) -> u64 {
        if *left == 0 {
            return (t != Self::EMPTY) as u64;
        }
        *left -= 1;
        work::spend(1);
        let mut of = |&x: &TermId| stacker::maybe_grow(64 << 10, 1 << 20, || self.words_at_least(x, left));
        match self.get(t) {
            Term::Empty => 0,
            Term::All => u64::MAX,
            Term::Class(s) => self.set(*s).iter().map(|&(lo, hi)| (hi - lo) as u64 + 1).sum(),
            Term::Concat(x, y) => of(x).max(of(y)),
            Term::Or(xs) => xs.iter().map(&mut of).max().unwrap_or(0),
            &Term::Repeat(x, _, hi) if x != Self::EPS && x != Self::EMPTY => match hi {
                INF => u64::MAX,
                0 => 1,
                // each copy has one character: different sequences of copies are different words
                _ if self.is_class(x) => of(&x).saturating_pow(hi),
                _ => of(&x),
            },
            _ => 1,
        }
    }

    /// A search of a few terms; then one of the relaxed term, without counts: if that is empty, so is the
    /// term; then a search without a limit of its own.
    fn find_word(&mut self, t: TermId) -> bool {
        if let Some(answer) = self.search(t, SOME) {
            return answer;
        }
        let relaxed = self.relaxed(t);
        if relaxed != t && self.dies_soon(relaxed) {
            return false;
        }
        self.search(t, usize::MAX).unwrap_or(true)
    }

    /// Whether a search of at most `MANY` terms per part shows that nothing is accepted.
    fn dies_soon(&mut self, t: TermId) -> bool {
        if self.nullable(t) || !self.is_boolean(t) {
            return t == Self::EMPTY;
        }
        if let Some(&known) = self.known.live.get(&t) {
            return !known;
        }
        match self.get(t).clone() {
            Term::And(_) | Term::Not(_) => self.search(t, MANY) == Some(false),
            Term::Concat(x, y) => self.dies_soon(x) || self.dies_soon(y),
            Term::Or(xs) => xs.iter().all(|&x| self.dies_soon(x)),
            _ => false,
        }
    }

    /// A language that contains every word of the term: its counts have no upper bound.
    fn relaxed(&mut self, t: TermId) -> TermId {
        memo!(self.known.relaxed, t, {
            let all =
                |this: &mut Self, xs: &[TermId]| xs.iter().map(|&x| this.relaxed(x)).collect::<Vec<_>>();
            stacker::maybe_grow(64 << 10, 1 << 20, || match self.get(t).clone() {
                Term::Concat(x, y) => {
                    let (x, y) = (self.relaxed(x), self.relaxed(y));
                    self.concat(x, y)
                }
                Term::Or(xs) => {
                    let xs = all(self, &xs);
                    self.or(&xs)
                }
                Term::And(xs) => {
                    let xs = all(self, &xs);
                    self.and(&xs)
                }
                Term::Repeat(x, lo, hi) if hi > 1 => {
                    let x = self.relaxed(x);
                    self.repeat(x, lo.min(1), INF)
                }
                _ => t,
            })
        })
    }

    /// Alternates best-first search (by `effort`) with breadth-first search. Best-first finds a word of sixty
    /// characters under a dozen patterns in hundreds of terms, where breadth-first alone visits all shorter
    /// texts; breadth-first ensures progress where the estimates mislead.
    fn search(&mut self, start: TermId, most: usize) -> Option<bool> {
        let mut parent: FxHashMap<TermId, TermId> = FxHashMap::default();
        let mut queue = VecDeque::from([start]);
        let mut nearest: BinaryHeap<(Reverse<u32>, u32, TermId)> = BinaryHeap::new();
        let mut taken: FxHashSet<TermId> = FxHashSet::default();
        let mut efforts = SearchEfforts::default();
        parent.insert(start, start);
        for turn in 0u32.. {
            let next = if turn % 2 == 0 { queue.pop_front() } else { nearest.pop().map(|n| n.2) };
            let Some(t) = next else {
                if turn % 2 == 0 {
                    break;
                }
                continue;
            };
            if !taken.insert(t) {
                continue;
            }
            let runs = self.delta_raw(t);
            self.spend(16 + 4 * runs.len() as u64);
            for run in runs.iter() {
                if run.to == Self::EMPTY || parent.contains_key(&run.to) {
                    continue;
                }
                parent.insert(run.to, t);
                let known = self.known.live.get(&run.to).copied();
                if self.nullable(run.to) || !self.is_boolean(run.to) || known == Some(true) {
                    self.mark_path(run.to, start, &parent);
                    return Some(true);
                }
                if known == Some(false) {
                    continue;
                }
                queue.push_back(run.to);
                nearest.push((Reverse(self.effort(run.to, true, &mut efforts)), parent.len() as u32, run.to));
            }
            if parent.len() > most {
                return None;
            }
        }
        for t in parent.into_keys() {
            self.known.live.insert(t, false);
        }
        Some(false)
    }

    /// Records what a path to a live term shows: all terms on it are live, and have a word of known length.
    fn mark_path(&mut self, end: TermId, start: TermId, parent: &FxHashMap<TermId, TermId>) {
        let mut length = self.some_length(end);
        let mut at = end;
        loop {
            if self.is_boolean(at) {
                self.known.live.insert(at, true);
                if let Some(n) = length {
                    self.known.witness.insert(at, n);
                }
            }
            if at == start {
                return;
            }
            length = length.map(|n| n.saturating_add(1));
            at = parent[&at];
        }
    }

    /// Estimates the distance to an accepting term, in code points; a conjunction adds up its operands'.
    /// `holds`: of the term, or of its complement (false).
    fn effort(&self, t: TermId, holds: bool, known: &mut SearchEfforts) -> u32 {
        let (xs, sum) = match (self.get(t), holds) {
            (Term::Not(x), _) => (std::slice::from_ref(x), true),
            (Term::And(xs), _) => (&xs[..], holds),
            (Term::Or(xs), _) => (&xs[..], !holds),
            // any character reduces a count: its length would outweigh the other conditions
            (Term::Repeat(..), true) => return !self.nullable(t) as u32,
            (_, true) => return self.at_least(t),
            (_, false) => return self.nullable(t) as u32,
        };
        if let Some(&effort) = known.get(&(t, holds)) {
            return effort;
        }
        self.spend(1 + xs.len() as u64 / 4);
        let within = holds != matches!(self.get(t), Term::Not(_));
        let mut of = |&x: &TermId| stacker::maybe_grow(64 << 10, 1 << 20, || self.effort(x, within, known));
        let effort = match sum {
            true => xs.iter().map(&mut of).fold(0, u32::saturating_add),
            false => xs.iter().map(&mut of).min().unwrap_or(0),
        };
        known.insert((t, holds), effort);
        effort
    }

    /// Splits a conjunction into a bound on length and the rest.
    fn split_length(&mut self, xs: &[TermId]) -> Option<(TermId, u32, u32)> {
        let any = self.any();
        let at = xs.iter().position(|&x| matches!(*self.get(x), Term::Repeat(c, _, _) if c == any))?;
        let Term::Repeat(_, lo, hi) = *self.get(xs[at]) else { unreachable!() };
        let rest: Vec<TermId> = xs.iter().copied().filter(|&x| x != xs[at]).collect();
        Some((self.and(&rest), lo, hi))
    }

    /// All words, if they are few or the form lists them; else `None`.
    pub fn words_up_to(&mut self, t: TermId, limit: usize) -> Option<Vec<Box<str>>> {
        if let Some(mut words) = self.finite_words(t) {
            crate::lists::sort_unique(&mut words);
            return Some(words);
        }
        let mut words: Vec<Box<str>> = Vec::new();
        self.enumerate(t, String::new(), &mut words, limit).then_some(words)
    }

    /// Collects all words; false when there are more than `limit`.
    fn enumerate(&mut self, t: TermId, prefix: String, out: &mut Vec<Box<str>>, limit: usize) -> bool {
        if self.nullable(t) {
            out.push(prefix.clone().into());
        }
        if out.len() > limit || prefix.len() > 4 * limit + 64 {
            return false;
        }
        let runs = self.delta(t);
        let mut from = 0;
        for run in runs.iter() {
            if self.live(run.to) {
                if (run.end - from) as usize >= limit {
                    return false;
                }
                for cp in from..=run.end {
                    let Some(c) = char::from_u32(cp) else { continue };
                    let mut longer = prefix.clone();
                    longer.push(c);
                    if !self.enumerate(run.to, longer, out, limit) {
                        return false;
                    }
                }
            }
            from = run.end + 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_lives_as_long_as_one_of_its_words_is_not_taken() {
        let mut terms = Terms::default();
        let letter = terms.class(&[(0x61, 0x62)]);
        let digit = terms.class(&[(0x30, 0x31)]);
        let (short, tail) = (terms.repeat(letter, 1, 2), terms.repeat(digit, 0, 1));
        for term in [short, terms.concat(letter, tail), terms.or(&[letter, tail])] {
            let words = terms.words_up_to(term, 100).expect("few words");
            for taken in 0u32..1 << words.len() {
                let some = words.iter().enumerate().filter(|w| taken >> w.0 & 1 == 1).map(|w| w.1.clone());
                let some = terms.words(some.collect());
                let without = terms.not(some);
                let left = terms.and(&[term, without]);
                let all = taken.count_ones() as usize == words.len();
                assert_eq!(terms.live(left), !all, "{words:?} without {taken:b}");
            }
        }
    }

    #[test]
    fn a_search_that_fills_the_arena_is_cut_by_its_work() {
        let ahead: String = ('a'..='z').zip(0..).map(|(c, n)| format!("(?!.*{c}.{{{n}}}{c})")).collect();
        // letters alone: a word of one other character would be seen at once
        let lang = crate::regex::parse(&format!("{ahead}[a-z]{{40}}"), crate::regex::Dialect::Python)
            .expect("a pattern");
        let mut terms = Terms::default();
        let term = terms.lower(&lang);
        let found = work::run(20_000_000, || terms.live(term));
        assert_eq!(found, Err(work::Cut::Work(20_000_000)));
        // a step takes some bytes of memory, in a small arena and in a large one
        assert!(terms.len() < 250_000, "{} terms for 20 million steps", terms.len());
    }

    #[test]
    fn a_word_that_the_form_tells_is_one_of_the_term() {
        let mut terms = Terms::default();
        for pattern in ["(?!ab|.*c)[a-d]{3}x?(yz|[0-9]{2})", "(?!.*b)(b|(?=c)c|de)+f", "(?!a)(?!b)[a-c]"] {
            let lang = crate::regex::parse(pattern, crate::regex::Dialect::Python).expect("a pattern");
            let term = terms.lower(&lang);
            let Term::And(xs) = terms.get(term).clone() else { panic!("{pattern} is a conjunction") };
            let found = terms.likely_word(term, &xs);
            assert!(!found || terms.search(term, usize::MAX) == Some(true), "{pattern}");
            for x in xs {
                let mut word = String::new();
                if terms.spell_word(x, &mut word, &mut { PARTS }) {
                    assert!(terms.accepts(x, &word), "{word:?} of {pattern}");
                }
            }
        }
    }

    #[test]
    fn counting_words_ends_on_parts_that_are_shared() {
        let mut terms = Terms::default();
        let [a, b, c] = ["a", "b", "c"].map(|word| terms.literal(word));
        let mut t = terms.class(&[(0x78, 0x7a)]);
        for _ in 0..64 {
            let (near, far) = (terms.concat(a, t), terms.concat(c, t));
            let far = terms.concat(b, far);
            t = terms.or(&[near, far]);
        }
        assert_eq!(terms.words_at_least(t, &mut { PARTS }), 3);
    }
}
