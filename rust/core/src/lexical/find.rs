//! Texts up to the first occurrence of some words, as one term.
//!
//! A term is a node of the words' automaton (Aho, Corasick 1975): the longest beginning of a word that the text so far
//! ends with.  The text ends where a word does, so "texts that hold a word" is this term and then anything.
//! Complexity: a node for each beginning of a word; the edges of a node are made when it is reached.
//! Rejected: the union of what is left of each occurrence that may have begun, which for `aaa...ab` is as long as
//! the text and holds as many texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::delta::{runs_of_points, Run};
use super::term::{Term, TermId, Terms};
use crate::work;

/// Where the characters lead that bring a word nearer, sorted; all others lead to the beginning.
type Ways = Arc<[(u32, u32)]>;

/// The automaton of some words; node 0 is the beginning.
pub(super) struct Finder {
    children: Vec<BTreeMap<u32, u32>>,
    /// The longest other beginning of a word that a node ends with.
    fail: Vec<u32>,
    /// Characters that are missing at least; 0: a word ends here.
    missing: Vec<u32>,
    ways: Vec<Option<Ways>>,
}

impl Finder {
    fn new(words: &[Box<str>]) -> Self {
        let mut this = Finder {
            children: vec![BTreeMap::new()],
            fail: vec![0],
            missing: vec![u32::MAX],
            ways: Vec::new(),
        };
        for word in words {
            let (mut at, length) = (0, word.chars().count() as u32);
            for (read, c) in (0u32..).zip(word.chars()) {
                let left = &mut this.missing[at as usize];
                *left = (*left).min(length - read);
                at = match this.children[at as usize].get(&(c as u32)) {
                    Some(&child) => child,
                    None => {
                        let child = this.children.len() as u32;
                        this.children[at as usize].insert(c as u32, child);
                        this.children.push(BTreeMap::new());
                        this.fail.push(0);
                        this.missing.push(u32::MAX);
                        child
                    }
                };
            }
            this.missing[at as usize] = 0;
        }
        this.link();
        this.ways = vec![None; this.children.len()];
        this
    }

    /// Breadth first, so that what a node fails to is known before its children ask for it.
    fn link(&mut self) {
        let mut queue = std::collections::VecDeque::from([0u32]);
        while let Some(node) = queue.pop_front() {
            for (cp, child) in self.children[node as usize].clone() {
                let mut at = self.fail[node as usize];
                let fail = loop {
                    match self.children[at as usize].get(&cp) {
                        Some(&next) if next != child => break next,
                        _ if at == 0 => break 0,
                        _ => at = self.fail[at as usize],
                    }
                };
                self.fail[child as usize] = fail;
                let missing = self.missing[fail as usize];
                self.missing[child as usize] = self.missing[child as usize].min(missing);
                queue.push_back(child);
            }
        }
    }

    /// Bytes that it holds, as far as its nodes tell.
    pub fn bytes(&self) -> usize {
        self.children.len() * 96
    }

    /// Those of what a node fails to, and its own.
    fn ways(&mut self, node: u32) -> Ways {
        let mut open = Vec::new();
        let mut at = node;
        let mut ways: Ways = loop {
            if let Some(known) = &self.ways[at as usize] {
                break known.clone();
            }
            open.push(at);
            if at == 0 {
                break Arc::new([]);
            }
            at = self.fail[at as usize];
        };
        for at in open.into_iter().rev() {
            let own = &self.children[at as usize];
            if !own.is_empty() {
                let mut all: BTreeMap<u32, u32> = ways.iter().copied().collect();
                all.extend(own);
                ways = all.into_iter().collect();
            }
            self.ways[at as usize] = Some(ways.clone());
        }
        ways
    }
}

impl Terms {
    /// The texts whose first occurrence of a word is at their end.
    pub fn find(&mut self, words: &[Box<str>]) -> TermId {
        if words.iter().any(|word| word.is_empty()) {
            return Self::EPS;
        }
        if words.is_empty() {
            return Self::EMPTY;
        }
        let finder = Finder::new(words);
        work::spend(4 * finder.children.len() as u64);
        self.finders.push(finder);
        self.intern(Term::Find(self.finders.len() as u32 - 1, 0))
    }

    /// Characters that the nearest word still needs.
    pub(super) fn find_missing(&self, finder: u32, node: u32) -> u32 {
        self.finders[finder as usize].missing[node as usize]
    }

    pub(super) fn find_runs(&mut self, finder: u32, node: u32) -> Vec<Run> {
        let ways = self.finders[finder as usize].ways(node);
        work::spend(1 + ways.len() as u64 / 4);
        let other = self.intern(Term::Find(finder, 0));
        let to = |this: &mut Self, node: u32| match this.find_missing(finder, node) {
            0 => Self::EPS,
            _ => this.intern(Term::Find(finder, node)),
        };
        let points: Vec<(u32, TermId)> = ways.iter().map(|&(cp, node)| (cp, to(self, node))).collect();
        let mut runs = runs_of_points(&points);
        // the gaps between the points
        runs.iter_mut().filter(|run| run.to == Self::EMPTY).for_each(|run| run.to = other);
        without_surrogates(runs)
    }
}

/// No text holds a surrogate.
fn without_surrogates(runs: Vec<Run>) -> Vec<Run> {
    let mut out = Vec::with_capacity(runs.len() + 2);
    let mut from = 0;
    for run in runs {
        if from <= 0xD7FF && run.end > 0xD7FF {
            out.push(Run { end: 0xD7FF, to: run.to });
            out.push(Run { end: 0xDFFF, to: Terms::EMPTY });
            if run.end > 0xDFFF {
                out.push(run);
            }
        } else {
            out.push(run);
        }
        from = run.end + 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_with_the_first_occurrence_of_a_word() {
        let sets: [&[&str]; 6] =
            [&["ab"], &["aab", "ab"], &["aaab"], &["aba", "bb"], &["abc", "b"], &["\u{e9}a", "a\u{e9}a"]];
        let letters = ['a', 'b', 'c', '\u{e9}'];
        for words in sets {
            let mut terms = Terms::default();
            let list: Vec<Box<str>> = words.iter().map(|w| Box::from(*w)).collect();
            let find = terms.find(&list);
            for n in 0..6u32 {
                for i in 0..4u32.pow(n) {
                    let text: String = (0..n).map(|k| letters[(i / 4u32.pow(k) % 4) as usize]).collect();
                    let mut ends = words.iter().filter_map(|w| text.find(w).map(|at| at + w.len()));
                    let expected =
                        ends.next().is_some_and(|first| ends.fold(first, usize::min) == text.len());
                    assert_eq!(terms.accepts(find, &text), expected, "{words:?} {text:?}");
                }
            }
            let shortest = words.iter().map(|w| w.chars().count() as u32).min();
            assert_eq!(terms.least_length(find), shortest);
        }
    }

    #[test]
    fn a_long_word_costs_its_length() {
        let mut terms = Terms::default();
        let word = "a".repeat(20_000) + "b";
        let find = terms.find(&[word.as_str().into()]);
        let before = terms.len();
        assert!(terms.accepts(find, &("a".repeat(5) + &word)));
        assert!(terms.len() - before < 2 * word.len());
    }
}
