//! Finite sets of strings that grow by a word at a time: the keys that an object has used.
//!
//! A node of the trie is a term, so equal sets are equal terms whatever the order in which they grew, a new word
//! makes only the nodes on its path, and the states of keys that it does not touch stay as they are.
//! Rejected: the sorted table of [`super::words`], made anew for each key: its cost and its memory are quadratic
//! in the keys (3,000 of them took 330 MB), and no two tables share a state.

use super::term::{Term, TermId, Terms};

/// A node of at least two words; a single word is a literal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrieNode {
    /// Whether the empty string is a word.
    pub ends: bool,
    /// How many words there are.
    pub count: u32,
    /// The rest after each first character, sorted by it.
    pub next: Box<[(u32, TermId)]>,
}

impl TrieNode {
    fn after(&self, cp: u32) -> Option<TermId> {
        self.next.binary_search_by_key(&cp, |n| n.0).ok().map(|i| self.next[i].1)
    }
}

impl Terms {
    /// Adds a word to a set made by this function, or to `EMPTY`.
    pub fn with_word(&mut self, set: TermId, word: &str) -> TermId {
        let mut path: Vec<(TrieNode, u32)> = Vec::new();
        let (mut at, mut rest) = (set, word);
        // down to where the word leaves the trie
        let mut grown = loop {
            let node = match self.get(at) {
                Term::TrieNode(node) => (**node).clone(),
                Term::Empty => break self.literal(rest),
                _ => match self.parted(at, rest) {
                    Some(both) => break both,
                    None => return set,
                },
            };
            let Some(first) = rest.chars().next() else {
                if node.ends {
                    return set;
                }
                break self.branch(TrieNode { ends: true, count: node.count + 1, ..node });
            };
            at = node.after(first as u32).unwrap_or(Self::EMPTY);
            rest = &rest[first.len_utf8()..];
            path.push((node, first as u32));
        };
        // and up again
        for (node, cp) in path.into_iter().rev() {
            let mut next = node.next.into_vec();
            match next.binary_search_by_key(&cp, |n| n.0) {
                Ok(i) => next[i].1 = grown,
                Err(i) => next.insert(i, (cp, grown)),
            }
            grown = self.branch(TrieNode { ends: node.ends, count: node.count + 1, next: next.into() });
        }
        grown
    }

    fn branch(&mut self, node: TrieNode) -> TermId {
        self.intern(Term::TrieNode(node.into()))
    }

    /// The set of the single word of a term and another one; `None` if they are the same.
    fn parted(&mut self, single: TermId, other: &str) -> Option<TermId> {
        let mut words = self.finite_words(single).unwrap_or_default();
        debug_assert_eq!(words.len(), 1, "a set that grew by single words");
        let word = words.pop().filter(|w| **w != *other)?;
        let shared = word.chars().zip(other.chars()).take_while(|(a, b)| a == b);
        let shared: Vec<char> = shared.map(|both| both.0).collect();
        let length: usize = shared.iter().map(|c| c.len_utf8()).sum();
        let (mut ends, mut next) = (false, Vec::new());
        for tail in [&word[length..], &other[length..]] {
            let mut chars = tail.chars();
            match chars.next() {
                Some(first) => next.push((first as u32, self.literal(chars.as_str()))),
                None => ends = true,
            }
        }
        next.sort_unstable();
        let mut both = self.branch(TrieNode { ends, count: 2, next: next.into() });
        for &c in shared.iter().rev() {
            both = self.branch(TrieNode { ends: false, count: 2, next: [(c as u32, both)].into() });
        }
        Some(both)
    }

    /// The words of which every prefix fits; the walk visits no other branch.
    pub(super) fn branch_words(&self, node: &TrieNode, fits: &mut dyn FnMut(&str) -> bool) -> Vec<Box<str>> {
        let mut words: Vec<Box<str>> = Vec::new();
        let mut stack = vec![(node, String::new())];
        while let Some((node, prefix)) = stack.pop() {
            if node.ends {
                words.push(prefix.as_str().into());
            }
            for &(cp, to) in node.next.iter() {
                let mut longer = prefix.clone();
                longer.extend(char::from_u32(cp));
                if !fits(&longer) {
                    continue;
                }
                match self.get(to) {
                    Term::TrieNode(inner) => stack.push((inner, longer)),
                    _ => {
                        let tails = self.finite_words(to).unwrap_or_default();
                        let whole = tails.iter().map(|tail| Box::from(format!("{longer}{tail}")));
                        words.extend(whole.filter(|word| fits(word)));
                    }
                }
            }
        }
        words
    }

    /// Whether a trie contains a text; `Err`: the term below the trie that it leads to, and the rest of the
    /// text.
    pub(super) fn follow_branches<'t>(
        &self,
        mut at: TermId,
        mut text: &'t str,
    ) -> Result<bool, (TermId, &'t str)> {
        while let Term::TrieNode(node) = self.get(at) {
            let Some(first) = text.chars().next() else { return Ok(node.ends) };
            let Some(to) = node.after(first as u32) else { return Ok(false) };
            (at, text) = (to, &text[first.len_utf8()..]);
        }
        Err((at, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_in_which_a_set_grows_makes_no_difference() {
        let mut terms = Terms::default();
        let mut orders = vec![vec!["", "a", "ab", "abc", "ab\u{e9}", "b"]];
        for shift in 1..6 {
            let mut order = orders[0].clone();
            order.rotate_left(shift);
            orders.push(order.iter().rev().copied().collect());
            orders.push(order);
        }
        let sets: Vec<TermId> = orders
            .iter()
            .map(|order| order.iter().chain(order).fold(Terms::EMPTY, |set, word| terms.with_word(set, word)))
            .collect();
        assert!(sets.iter().all(|set| *set == sets[0]));
        let mut words = terms.finite_words(sets[0]).expect("a list");
        words.sort();
        let expected: Vec<Box<str>> = orders[0].iter().map(|w| Box::from(*w)).collect();
        assert_eq!(words, expected);
    }

    #[test]
    fn a_set_that_grew_is_the_table_of_its_words() {
        let mut terms = Terms::default();
        let words = ["key_1", "key_12", "key_2", "kex", "", "\u{1f600}"];
        let grown = words.iter().fold(Terms::EMPTY, |set, word| terms.with_word(set, word));
        let table = terms.words(words.iter().map(|w| Box::from(*w)).collect());
        let (not_grown, not_table) = (terms.not(grown), terms.not(table));
        for (x, y) in [(grown, not_table), (table, not_grown)] {
            let both = terms.and(&[x, y]);
            assert!(!terms.live(both));
        }
        for text in words.iter().chain(&["key_", "key_122", "k", "\u{1f601}"]) {
            assert_eq!(terms.accepts(grown, text), words.contains(text), "{text:?}");
        }
        let Term::TrieNode(node) = terms.get(grown).clone() else { panic!("two words and more") };
        let mut short = terms.branch_words(&node, &mut |text| text.len() < 5 && !text.ends_with('_'));
        short.sort();
        assert_eq!(short, ["", "kex", "\u{1f600}"].map(Box::from));
    }

    #[test]
    fn a_word_makes_the_nodes_of_its_path_and_no_others() {
        let mut terms = Terms::default();
        let mut set = Terms::EMPTY;
        for i in 0..2_000 {
            let word = format!("key_{i}");
            let before = (terms.len(), terms.tables.sets.len());
            set = terms.with_word(set, &word);
            // a node for each prefix, and the literal tails where two words diverge
            assert!(terms.len() - before.0 <= word.len() + 2, "{word}");
            assert!(terms.tables.sets.len() - before.1 <= 2, "{word}");
        }
    }
}
