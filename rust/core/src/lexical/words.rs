//! Finite sets of strings as one kind of term: a node of a trie, as a range of a sorted list.
//!
//! A set of 100,000 words is one table; a term is (table, range, depth), so a derivative is a binary search and
//! never a union of thousands of literals.  Equal sets have one table.  Sets that grow a word at a time are
//! [`super::word_trie`]'s.
//! Invariant: the words of a table are sorted and distinct.  Memory: each table once.

use std::hash::BuildHasher;

use rustc_hash::FxHashMap;

use super::delta::{runs_of_points, Run};
use super::merge::several;
use super::term::{Term, TermId, Terms};
use crate::hash::Keyed;
use crate::{heap_size, work};

/// The lengths of at most so many words are read when a term is made.
const FEW: u32 = 16;

/// The id of a table of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WordSetId(pub u32);

/// A node: the words `lo..hi` of the table share their first `depth` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Words {
    pub set: WordSetId,
    pub lo: u32,
    pub hi: u32,
    pub depth: u32,
}

/// Sorted distinct words.
#[derive(Clone)]
pub struct WordSet {
    pub words: Vec<Box<str>>,
    /// Whether JSON needs no escape in any of them.
    pub plain: bool,
    /// Whether each character is a byte.
    ascii: bool,
}

/// The tables of one arena.
#[derive(Clone, Default)]
pub(super) struct WordTables {
    pub sets: Vec<WordSet>,
    /// By the hash of their words.
    by_hash: FxHashMap<u64, WordSetId>,
    keys: Keyed,
    /// Bytes of the words of all of them.
    boxed: usize,
}

heap_size::tables!(WordTables: ; this => this.sets.len() * 64 + this.boxed);

impl Terms {
    /// The language that holds just these words.
    pub fn words(&mut self, mut words: Vec<Box<str>>) -> TermId {
        work::spend(3 * words.len() as u64);
        crate::lists::sort_unique(&mut words);
        let hi = words.len() as u32;
        if hi == 0 {
            return Self::EMPTY;
        }
        let set = self.word_table(words);
        self.word_node(Words { set, lo: 0, hi, depth: 0 })
    }

    /// One string.
    pub fn literal(&mut self, text: &str) -> TermId {
        if text.is_empty() {
            return Self::EPS;
        }
        self.words(vec![text.into()])
    }

    /// The table of sorted, distinct words; an existing one, if the words are known.
    fn word_table(&mut self, words: Vec<Box<str>>) -> WordSetId {
        let hash = self.tables.keys.hash_one(&words);
        let known = self.tables.by_hash.get(&hash).copied();
        if let Some(id) = known.filter(|id| self.tables.sets[id.0 as usize].words == words) {
            return id;
        }
        let plain = words.iter().all(|word| word.bytes().all(|c| c >= b' ' && c != b'"' && c != b'\\'));
        let ascii = words.iter().all(|word| word.is_ascii());
        work::spend(words.iter().map(|word| word.len() as u64 / 64 + 1).sum());
        self.tables.boxed += words.iter().map(|w| heap_size::slice(w.as_bytes()) + 16).sum::<usize>();
        let id = WordSetId(self.tables.sets.len() as u32);
        self.tables.sets.push(WordSet { words, plain, ascii });
        self.tables.by_hash.insert(hash, id);
        id
    }

    /// The term of a node that some word leads to.
    fn word_node(&mut self, w: Words) -> TermId {
        let table = &self.tables.sets[w.set.0 as usize];
        if w.hi - w.lo == 1 && table.words[w.lo as usize].len() as u32 == w.depth {
            return Self::EPS;
        }
        self.intern(Term::Words(w))
    }

    pub(super) fn words_nullable(&self, w: Words) -> bool {
        let table = &self.tables.sets[w.set.0 as usize];
        table.words[w.lo as usize].len() as u32 == w.depth
    }

    /// Lengths of the shortest and the longest word, in code points; `None` where counting them takes long.
    pub(super) fn word_lengths(&self, w: Words) -> Option<(u32, u32)> {
        let table = &self.tables.sets[w.set.0 as usize];
        if !table.ascii || w.hi - w.lo > FEW {
            return None;
        }
        let lengths =
            table.words[w.lo as usize..w.hi as usize].iter().map(|word| word.len() as u32 - w.depth);
        Some(lengths.fold((u32::MAX, 0), |a, n| (a.0.min(n), a.1.max(n))))
    }

    /// The words of a node, whole and sorted.
    pub fn word_slice(&self, w: Words) -> &[Box<str>] {
        &self.tables.sets[w.set.0 as usize].words[w.lo as usize..w.hi as usize]
    }

    pub fn words_are_plain(&self, w: Words) -> bool {
        self.tables.sets[w.set.0 as usize].plain
    }

    /// The suffixes of a node's words after its depth.
    pub fn list_words(&self, w: Words) -> Vec<Box<str>> {
        self.word_slice(w).iter().map(|word| word[w.depth as usize..].into()).collect()
    }

    /// The words of a term that is a finite set of them by its form.
    pub fn finite_words(&self, t: TermId) -> Option<Vec<Box<str>>> {
        match self.get(t) {
            Term::Empty => Some(Vec::new()),
            Term::Eps => Some(vec!["".into()]),
            Term::Words(w) => Some(self.list_words(*w)),
            Term::TrieNode(node) => Some(self.branch_words(node, &mut |_| true)),
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

    /// The words of a term, or of all members of a tuple, if its form lists at most so many; sorted.
    pub fn words_of(&self, t: TermId, most: usize) -> Option<Vec<Box<str>>> {
        let parts = match self.get(t) {
            Term::Tuple(parts) => parts,
            _ => &[t][..],
        };
        let mut all = Vec::new();
        for &part in parts {
            let listed = match self.get(part) {
                Term::Or(xs) => xs,
                _ => &[part][..],
            };
            for &one in listed {
                if self.finite_count(one).is_none_or(|count| count > most as u64) {
                    return None;
                }
                all.extend(self.finite_words(one)?);
            }
        }
        crate::lists::sort_unique(&mut all);
        (all.len() <= most).then_some(all)
    }

    /// Whether a term is a finite set of words by its form.
    pub fn lists_words(&self, t: TermId) -> bool {
        match self.get(t) {
            Term::Empty | Term::Eps | Term::Words(_) | Term::TrieNode(_) => true,
            Term::Or(xs) => xs.iter().all(|&x| self.lists_words(x)),
            _ => false,
        }
    }

    /// Whether two sets of words have no word in common, or one is empty; false for other terms.
    pub fn share_no_word(&self, a: TermId, b: TermId) -> bool {
        let (few, many) = match (self.get(a), self.get(b)) {
            (Term::Empty, _) | (_, Term::Empty) => return true,
            (Term::Words(x), Term::Words(y)) if x.hi - x.lo <= y.hi - y.lo => (*x, *y),
            (Term::Words(x), Term::Words(y)) => (*y, *x),
            _ => return false,
        };
        work::spend(1 + u64::from(few.hi - few.lo));
        !self.word_slice(few).iter().any(|word| self.is_word(many, &word[few.depth as usize..]))
    }

    /// Whether the text is one of the suffixes of a node's words.
    fn is_word(&self, w: Words, text: &str) -> bool {
        self.word_slice(w).binary_search_by(|word| word[w.depth as usize..].cmp(text)).is_ok()
    }

    /// The derivative of a set of words by one character of one byte alone.
    pub(super) fn word_step(&mut self, t: TermId, byte: u8) -> Option<TermId> {
        let Term::Words(w) = *self.get(t) else { return None };
        let next = |word: &str| word.as_bytes().get(w.depth as usize).copied();
        let words = self.word_slice(w);
        let lo = w.lo + words.partition_point(|word| next(word) < Some(byte)) as u32;
        let hi = w.lo + words.partition_point(|word| next(word) <= Some(byte)) as u32;
        work::spend(1);
        Some(if lo == hi { Self::EMPTY } else { self.word_node(Words { lo, hi, depth: w.depth + 1, ..w }) })
    }

    pub(super) fn words_runs(&mut self, w: Words) -> Vec<Run> {
        let mut children: Vec<(u32, u32, u32, u32)> = Vec::new();
        work::spend(1);
        {
            let table = &self.tables.sets[w.set.0 as usize];
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
        work::spend(children.len() as u64);
        let mut next = Vec::with_capacity(children.len());
        for (cp, lo, hi, depth) in children {
            next.push((cp, self.word_node(Words { lo, hi, depth, ..w })));
        }
        runs_of_points(&next)
    }

    /// Merges the finite sets among the operands of an `Or`; not two large ones in a large arena.
    pub(super) fn merge_words(&mut self, flat: &mut Vec<TermId>) {
        let Some(sets) = several(flat, |x| matches!(self.get(x), Term::Words(_))) else { return };
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

    /// `~{a} & ~{b}` is `~{a,b}`. A set that grows stays separate: else each of its words would make a table.
    pub(super) fn merge_excluded(&mut self, flat: &mut Vec<TermId>) {
        let grows = |y: TermId| matches!(self.get(y), Term::TrieNode(_));
        let listed = |x| matches!(*self.get(x), Term::Not(y) if self.lists_words(y) && !grows(y));
        let Some(gone) = several(flat, listed) else { return };
        let mut words = Vec::new();
        for &x in &gone {
            let Term::Not(y) = *self.get(x) else { unreachable!() };
            words.extend(self.finite_words(y).unwrap_or_default());
        }
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
        work::spend(before as u64);
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
            return self.is_word(w, text);
        }
        if let Term::TrieNode(_) = self.get(t) {
            return match self.follow_branches(t, text) {
                Ok(answer) => answer,
                Err((t, text)) => self.accepts(t, text),
            };
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
