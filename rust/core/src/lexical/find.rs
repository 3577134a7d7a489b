//! Texts up to the first occurrence of some words, as one term.
//!
//! A term is a node of the words' automaton (Aho, Corasick 1975): the longest suffix of the text so far that
//! is a prefix of a word. The text ends where a word does, so "texts that contain a word" is this term, then
//! anything.
//! Complexity: a node for each prefix of a word; the transitions of a node are made when it is reached.
//! Rejected: the union of the remainders of all occurrences that may have begun: for `aaa...ab` it has as
//! many operands as the text has characters.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::content::{key, Content};
use super::table::{Automaton, State, StateRuns};
use super::term::{TermId, Terms, MAX_CP};
use crate::work;

/// Transitions by characters that continue a word, sorted; all others lead to node 0.
type Transitions = Arc<[(u32, u32)]>;

/// The automaton of some words; node 0 is the start.
#[derive(Clone)]
pub(super) struct Finder {
    children: Vec<BTreeMap<u32, u32>>,
    /// The failure link: the node's longest proper suffix that is a prefix of a word.
    fail: Vec<u32>,
    /// The fewest characters to the end of a word; 0: a word ends here.
    missing: Vec<u32>,
    ways: Vec<Option<Transitions>>,
    /// The key of the words; the words determine the node numbers.
    content: Content,
}

impl Finder {
    fn new(words: &[Box<str>]) -> Self {
        let mut this = Finder {
            children: vec![BTreeMap::new()],
            fail: vec![0],
            missing: vec![u32::MAX],
            ways: Vec::new(),
            content: key(words),
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

    /// Breadth first, so that a node's failure link is known before its children need it.
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

    /// The transitions of a node and of all nodes on its chain of failure links.
    fn ways(&mut self, node: u32) -> Transitions {
        let mut open = Vec::new();
        let mut at = node;
        let mut ways: Transitions = loop {
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

impl Automaton for Finder {
    fn copied(&self) -> Box<dyn Automaton> {
        Box::new(self.clone())
    }

    fn ends(&self, node: u32) -> bool {
        self.missing(node) == 0
    }

    fn missing(&self, node: u32) -> u32 {
        self.missing[node as usize]
    }

    fn is_over(&self, node: u32) -> bool {
        self.ends(node)
    }

    /// Code points that continue no word lead to node 0.
    fn runs(&mut self, node: u32) -> StateRuns {
        let ways = self.ways(node);
        let (mut arrows, mut from) = (Vec::with_capacity(2 * ways.len() + 2), 0);
        for (cp, to) in ways.iter().map(|&(cp, to)| (cp, Some(to))).chain([(MAX_CP + 1, None)]) {
            let between = [(from, cp.min(0xD800)), (from.max(0xE000), cp)];
            arrows.extend(between.into_iter().filter(|gap| gap.0 < gap.1).map(|gap| ((gap.0, gap.1 - 1), 0)));
            arrows.extend(to.map(|to| ((cp, cp), to)));
            from = cp + 1;
        }
        State::new(false, arrows).runs
    }

    fn content(&self) -> Option<Content> {
        Some(self.content)
    }

    /// An estimate by the number of nodes.
    fn bytes(&self) -> usize {
        self.children.len() * 96
    }
}

impl Terms {
    /// The texts that end with the first occurrence of one of the words.
    pub fn find(&mut self, words: &[Box<str>]) -> TermId {
        if words.iter().any(|word| word.is_empty()) {
            return Self::EPS;
        }
        if words.is_empty() {
            return Self::EMPTY;
        }
        let finder = Finder::new(words);
        work::spend(4 * finder.children.len() as u64);
        self.automaton(finder)
    }
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
