//! Finite sets of strings as one kind of term: a node of a trie, as a range of a sorted list.
//!
//! A set of 100,000 words is one table; a term is (table, range, depth, which of the range count), so a
//! derivative is a binary search and never a union of thousands of literals.  `skip` takes single words away
//! (keys that are used up) and `from..to` keeps those whose rank lies in it (keys in declared order): both are
//! dropped as soon as they make no difference below the node, so that states meet again.

use super::delta::Run;
use super::term::{Term, TermId, Terms, MAX_CP};

/// The number of a table of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WordSetId(pub u32);

/// A node: the words `lo..hi` of the table share their first `depth` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Words {
    pub set: WordSetId,
    pub lo: u32,
    pub hi: u32,
    pub depth: u32,
    /// Only words with a rank in `from..to` count (0..u32::MAX: all).
    pub from: u32,
    pub to: u32,
}

/// Sorted distinct words, with the rank of each.
pub struct WordSet {
    pub words: Vec<Box<str>>,
    pub ranks: Vec<u32>,
    /// Whether JSON spells all of them as they are.
    pub plain: bool,
    /// Shared with the term of the single word that is left, so that equal tails are equal terms.
    pub key: Option<u64>,
}

impl Terms {
    /// The language that holds just these words.
    pub fn words(&mut self, words: Vec<Box<str>>) -> TermId {
        let ranks = (0..words.len() as u32).collect();
        self.ranked_words(words, ranks, 0, u32::MAX)
    }

    /// One string.
    pub fn literal(&mut self, text: &str) -> TermId {
        if text.is_empty() {
            return Self::EPS;
        }
        self.words(vec![text.into()])
    }

    /// Words whose rank lies in `from..to`.
    pub fn ranked_words(&mut self, words: Vec<Box<str>>, ranks: Vec<u32>, from: u32, to: u32) -> TermId {
        let id = self.word_table(words, ranks);
        self.word_range(id, from, to)
    }

    /// A table of words for [`Terms::word_range`]; of equal words the first counts.
    pub fn word_table(&mut self, words: Vec<Box<str>>, ranks: Vec<u32>) -> WordSetId {
        let mut pairs: Vec<(Box<str>, u32)> = words.into_iter().zip(ranks).collect();
        pairs.sort();
        pairs.dedup_by(|b, a| a.0 == b.0);
        let (words, ranks): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        if words.len() == 1 {
            let same = self
                .word_sets
                .iter()
                .rev()
                .take(64)
                .position(|s| s.words.len() == 1 && s.words[0] == words[0]);
            if let Some(back) = same {
                return WordSetId((self.word_sets.len() - 1 - back) as u32);
            }
        }
        let plain = words.iter().all(|word| word.bytes().all(|c| c >= b' ' && c != b'"' && c != b'\\'));
        self.word_sets.push(WordSet { words, ranks, plain, key: None });
        WordSetId(self.word_sets.len() as u32 - 1)
    }

    /// The words of a table with a rank in `from..to`.
    pub fn word_range(&mut self, set: WordSetId, from: u32, to: u32) -> TermId {
        let hi = self.word_sets[set.0 as usize].words.len() as u32;
        self.word_node(Words { set, lo: 0, hi, depth: 0, from, to })
    }

    fn counts(&self, w: Words, i: u32) -> bool {
        let rank = self.word_sets[w.set.0 as usize].ranks[i as usize];
        w.from <= rank && rank < w.to
    }

    /// The canonical term of a node: empty, the empty string, or the smallest range with no needless filter.
    fn word_node(&mut self, mut w: Words) -> TermId {
        while w.lo < w.hi && !self.counts(w, w.lo) {
            w.lo += 1;
        }
        while w.lo < w.hi && !self.counts(w, w.hi - 1) {
            w.hi -= 1;
        }
        if w.lo == w.hi {
            return Self::EMPTY;
        }
        if (w.from, w.to) != (0, u32::MAX) && (w.lo..w.hi).all(|i| self.counts(w, i)) {
            (w.from, w.to) = (0, u32::MAX);
        }
        let table = &self.word_sets[w.set.0 as usize];
        if w.hi - w.lo == 1 && table.words[w.lo as usize].len() as u32 == w.depth {
            return Self::EPS;
        }
        self.words_term(w)
    }

    pub(super) fn words_nullable(&self, w: Words) -> bool {
        let table = &self.word_sets[w.set.0 as usize];
        table.words[w.lo as usize].len() as u32 == w.depth && self.counts(w, w.lo)
    }

    /// Number of words of a node.
    pub fn count_words(&self, w: Words) -> usize {
        (w.lo..w.hi).filter(|&i| self.counts(w, i)).count()
    }

    /// The words of a node, whole and sorted.
    pub fn words_of(&self, w: Words) -> impl Iterator<Item = &str> {
        let table = &self.word_sets[w.set.0 as usize];
        (w.lo..w.hi).filter(move |&i| self.counts(w, i)).map(|i| &*table.words[i as usize])
    }

    /// The words of a node as the table has them, where all of its range count.
    pub fn word_slice(&self, w: Words) -> Option<&[Box<str>]> {
        let table = &self.word_sets[w.set.0 as usize];
        ((w.from, w.to) == (0, u32::MAX)).then(|| &table.words[w.lo as usize..w.hi as usize])
    }

    pub fn words_are_plain(&self, w: Words) -> bool {
        self.word_sets[w.set.0 as usize].plain
    }

    /// The strings that are left from a node on.
    pub fn list_words(&self, w: Words) -> Vec<Box<str>> {
        let table = &self.word_sets[w.set.0 as usize];
        (w.lo..w.hi)
            .filter(|&i| self.counts(w, i))
            .map(|i| table.words[i as usize][w.depth as usize..].into())
            .collect()
    }

    /// The words of a term that is a finite set of them by its form.
    pub fn finite_words(&self, t: TermId) -> Option<Vec<Box<str>>> {
        match self.get(t) {
            Term::Empty => Some(Vec::new()),
            Term::Eps => Some(vec!["".into()]),
            Term::Words(w) => Some(self.list_words(*w)),
            Term::Or(xs) => {
                let mut all = Vec::new();
                for &x in xs.iter() {
                    all.extend(self.finite_words(x)?);
                }
                Some(all)
            }
            _ => None,
        }
    }

    /// Whether a term is a finite set of words by its form.
    pub fn lists_words(&self, t: TermId) -> bool {
        match self.get(t) {
            Term::Empty | Term::Eps | Term::Words(_) => true,
            Term::Or(xs) => xs.iter().all(|&x| self.lists_words(x)),
            _ => false,
        }
    }

    pub(super) fn words_runs(&mut self, w: Words) -> Vec<Run> {
        let mut children: Vec<(u32, u32, u32, u32)> = Vec::new();
        {
            let table = &self.word_sets[w.set.0 as usize];
            let mut i = w.lo;
            while i < w.hi {
                let rest = &table.words[i as usize][w.depth as usize..];
                let Some(c) = rest.chars().next() else {
                    i += 1;
                    continue;
                };
                let prefix = c.len_utf8();
                let mut buf = [0u8; 4];
                let head = c.encode_utf8(&mut buf).as_bytes();
                let end = i + table.words[i as usize..w.hi as usize].partition_point(|word| {
                    &word.as_bytes()[w.depth as usize..][..prefix.min(word.len() - w.depth as usize)] <= head
                }) as u32;
                children.push((c as u32, i, end, w.depth + prefix as u32));
                i = end;
            }
        }
        let mut runs = Vec::with_capacity(children.len() * 2 + 1);
        let mut next = 0;
        for (cp, lo, hi, depth) in children {
            let to = self.word_node(Words { lo, hi, depth, ..w });
            if to == Self::EMPTY {
                continue;
            }
            if cp > next {
                runs.push(Run { end: cp - 1, to: Self::EMPTY });
            }
            runs.push(Run { end: cp, to });
            next = cp + 1;
        }
        if next <= MAX_CP {
            runs.push(Run { end: MAX_CP, to: Self::EMPTY });
        }
        runs
    }

    /// Union of the finite sets among the operands of an `Or`, where they are whole sets.
    pub(super) fn merge_words(&mut self, flat: &mut Vec<TermId>) {
        let mut sets: Vec<TermId> =
            flat.iter().copied().filter(|&x| matches!(self.get(x), Term::Words(_))).collect();
        sets.sort_unstable();
        if sets.len() < 2 {
            return;
        }
        let mut all = Vec::new();
        for &s in &sets {
            all.extend(self.finite_words(s).unwrap_or_default());
        }
        if all.len() > 4096 && sets.len() == 2 && self.len() > 200_000 {
            return;
        }
        let merged = self.words(all);
        flat.retain(|x| sets.binary_search(x).is_err());
        flat.push(merged);
    }

    /// `~{a} & ~{b}` is `~{a,b}`.
    pub(super) fn merge_excluded(&mut self, flat: &mut Vec<TermId>) {
        let listed = |x: &TermId| matches!(*self.get(*x), Term::Not(y) if self.lists_words(y));
        let mut gone: Vec<TermId> = flat.iter().copied().filter(listed).collect();
        if gone.len() < 2 {
            return;
        }
        let mut words = Vec::new();
        for &x in &gone {
            let Term::Not(y) = *self.get(x) else { unreachable!() };
            words.extend(self.finite_words(y).unwrap_or_default());
        }
        gone.sort_unstable();
        flat.retain(|x| gone.binary_search(x).is_err());
        let set = self.words(words);
        let none = self.not(set);
        flat.push(none);
    }

    /// An intersection with a finite set is a finite set: keep the words that all others accept.
    pub(super) fn filter_words(&mut self, flat: &[TermId]) -> Option<TermId> {
        let &finite = flat.iter().find(|&&x| matches!(self.get(x), Term::Words(_)))?;
        let words = self.finite_words(finite)?;
        let before = words.len();
        let others: Vec<TermId> = flat.iter().copied().filter(|&x| x != finite).collect();
        let kept: Vec<Box<str>> =
            words.into_iter().filter(|w| others.iter().all(|&x| self.accepts(x, w))).collect();
        Some(if kept.len() == before { finite } else { self.words(kept) })
    }

    /// Whether the language holds the text.
    pub fn accepts(&mut self, t: TermId, text: &str) -> bool {
        if let Term::Not(y) = *self.get(t) {
            return !self.accepts(y, text);
        }
        if let Term::Words(w) = *self.get(t) {
            let table = &self.word_sets[w.set.0 as usize];
            let found = table.words[w.lo as usize..w.hi as usize]
                .binary_search_by(|word| word.as_bytes()[w.depth as usize..].cmp(text.as_bytes()));
            return found.is_ok_and(|i| self.counts(w, w.lo + i as u32));
        }
        let mut t = t;
        for c in text.chars() {
            t = self.derive_raw(t, c as u32);
            if t == Self::EMPTY {
                return false;
            }
        }
        self.nullable(t)
    }
}
