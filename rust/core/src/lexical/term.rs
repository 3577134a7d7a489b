//! Hash-consed terms: boolean regular expressions over code points.
//!
//! Invariant: languages that the simplifier recognises as equal have equal ids, so that derivatives reach
//! finitely many terms (Brzozowski 1964; Owens, Reppy, Turon 2009: similarity suffices). Every rule here
//! keeps the language. Counting is a term of its own (`Repeat`), so `{1,100000}` is one node whose derivative
//! moves two numbers; finite sets of strings are one node too ([`super::words`], [`super::word_trie`]).
//! Rejected: one automaton state per count, and unions of thousands of literals.
//! Memory: each term once; [`Terms::bytes`] counts all, and the limits of the automaton bound it.

use rustc_hash::FxHashMap;

use super::delta::Derivatives;
use super::lengths::LengthBounds;
use super::word_trie::TrieNode;
use super::words::{WordTables, Words};
use crate::error::Error;
use crate::hash::Keyed;
use crate::heap_size::{self, Interner};
use crate::lexical::number::{NumberTerms, SpelledId};
pub use crate::regex::charset::intersect_ranges;
use crate::work;

/// Terms that fit a processor's caches with the facts about them. In a larger arena, a look at a term waits
/// for memory and counts as [`FAR`] looks.
const NEAR: usize = 1 << 14;
const FAR: u64 = 3;
/// The greatest code point.
pub const MAX_CP: u32 = 0x10FFFF;
/// No upper bound of a repeat.
pub const INF: u32 = u32::MAX;

/// Terms that one arena may hold.
const MOST_TERMS: usize = 2_000_000;

/// The id of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(pub u32);

/// The id of an interned set of code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CharSetId(pub u32);

/// A term. Operands of `Or`, `And` are sorted, flat and distinct; `Concat` leans to the right.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    Empty,
    Eps,
    All,
    Class(CharSetId),
    Words(Words),
    /// A finite set that grows word by word.
    TrieNode(Box<TrieNode>),
    Concat(TermId, TermId),
    Or(Box<[TermId]>),
    And(Box<[TermId]>),
    Not(TermId),
    Repeat(TermId, u32, u32),
    /// Several languages walked together; which of them accept is the outcome.
    Tuple(Box<[TermId]>),
    /// The rest of a number whose value must lie in a set; the text so far is part of the state.
    Num(SpelledId, u32),
    /// The rest of a language defined by an automaton: the automaton, and its state.
    State(u32, u32),
}

/// What is known of each term.
#[derive(Clone, Copy, Debug)]
pub(super) struct TermFacts {
    pub nullable: bool,
    /// Contains `And` or `Not`, so that it may be empty without being `Empty`.
    pub boolean: bool,
    /// Every continuation of a word is a word.
    pub open: bool,
    pub span: LengthBounds,
}

/// The arena of terms of one automaton.
#[derive(Clone)]
pub struct Terms {
    pub(super) terms: Interner<Term, Keyed>,
    pub(super) facts: Vec<TermFacts>,
    pub(super) sets: Interner<Box<[(u32, u32)]>, Keyed>,
    pub(super) tables: WordTables,
    pub(super) derived: Derivatives,
    pub(super) known: TermMemos,
    pub numbers: NumberTerms,
    pub(super) automata: Vec<Box<dyn super::table::Automaton>>,
    /// Terms that a search for a shortest word may visit.
    pub(super) most_visited: usize,
}

heap_size::owned!(Term, this => match this {
    Term::Or(xs) | Term::And(xs) | Term::Tuple(xs) => heap_size::slice(xs),
    Term::TrieNode(node) => heap_size::BLOCK + std::mem::size_of::<TrieNode>() + heap_size::slice(&node.next),
    _ => 0,
});

/// Memoised results about terms.
#[derive(Clone, Default)]
pub(super) struct TermMemos {
    pub live: FxHashMap<TermId, bool>,
    /// The length of some word of terms that a search found alive.
    pub witness: FxHashMap<TermId, u32>,
    pub least: FxHashMap<TermId, super::lengths::ShortestLength>,
    /// Whether a loop over a class of characters reads every word of a term.
    pub read_by: FxHashMap<(TermId, CharSetId), bool>,
    /// Whether the form shows that the first term contains the second.
    pub covered: FxHashMap<(TermId, TermId), bool>,
    /// Terms without their counts.
    pub relaxed: FxHashMap<TermId, TermId>,
    pub clamped: FxHashMap<TermId, (TermId, u32)>,
    pub bases: FxHashMap<TermId, Option<super::comparison::Comparison>>,
    pub contents: super::content::Contents,
    pub remaining_bound: super::remaining_bound::RemainingBounds,
}

heap_size::tables!(TermMemos: live, witness, least, clamped, relaxed, read_by, covered, bases, remaining_bound, contents);

impl Default for Terms {
    fn default() -> Self {
        let mut this = Terms {
            terms: Interner::default(),
            facts: Vec::new(),
            sets: Interner::default(),
            tables: WordTables::default(),
            derived: Derivatives::default(),
            known: TermMemos::default(),
            numbers: NumberTerms::default(),
            automata: Vec::new(),
            most_visited: usize::MAX,
        };
        this.intern(Term::Empty);
        this.intern(Term::Eps);
        this.intern(Term::All);
        this
    }
}

impl Terms {
    pub const EMPTY: TermId = TermId(0);
    pub const EPS: TermId = TermId(1);
    pub const ALL: TermId = TermId(2);

    /// Bytes that the arena holds.
    pub fn bytes(&self) -> usize {
        let automata: usize = self.automata.iter().map(|table| table.bytes()).sum();
        heap_size::bytes!(self: terms, facts, sets, numbers, tables, derived, known) + automata
    }

    pub fn get(&self, t: TermId) -> &Term {
        &self.terms[t.0 as usize]
    }

    pub fn len(&self) -> usize {
        self.terms.len()
    }

    pub fn is_empty(&self) -> bool {
        false
    }

    /// Counts work as a number of looks at terms.
    pub(super) fn spend(&self, looks: u64) {
        work::spend(if self.terms.len() < NEAR { looks } else { looks * FAR });
    }

    /// The number of operands of a union or intersection; else 1.
    pub fn width(&self, t: TermId) -> usize {
        match self.get(t) {
            Term::Or(parts) | Term::And(parts) => parts.len(),
            _ => 1,
        }
    }

    pub fn nullable(&self, t: TermId) -> bool {
        self.facts[t.0 as usize].nullable
    }

    pub(crate) fn is_boolean(&self, t: TermId) -> bool {
        self.facts[t.0 as usize].boolean
    }

    pub fn set(&self, s: CharSetId) -> &[(u32, u32)] {
        &self.sets[s.0 as usize]
    }

    pub(crate) fn intern(&mut self, term: Term) -> TermId {
        if let Some(i) = self.terms.get_index_of(&term) {
            return TermId(i as u32);
        }
        if self.terms.len() >= MOST_TERMS {
            work::refuse(Error::limit(format!(
                "the constraint's patterns need more than {MOST_TERMS} states; simplify or bound them"
            )));
        }
        self.spend(2);
        let facts = self.facts_of(&term);
        if facts.open && facts.nullable && term != Term::All {
            return Self::ALL;
        }
        let (i, _) = self.terms.insert_full(term);
        self.facts.push(facts);
        TermId(i as u32)
    }

    fn facts_of(&self, term: &Term) -> TermFacts {
        let n = |t: TermId| self.nullable(t);
        let b = |t: TermId| self.is_boolean(t);
        let (nullable, boolean) = match term {
            Term::Empty | Term::Class(_) => (false, false),
            Term::Eps | Term::All => (true, false),
            Term::Words(w) => (self.words_nullable(*w), false),
            Term::TrieNode(node) => (node.ends, false),
            Term::Concat(x, y) => (n(*x) && n(*y), b(*x) || b(*y)),
            Term::And(xs) => (xs.iter().all(|&x| n(x)), true),
            Term::Not(x) => (!n(*x), true),
            Term::Repeat(x, lo, _) => (*lo == 0 || n(*x), b(*x)),
            Term::Or(xs) | Term::Tuple(xs) => (xs.iter().any(|&x| n(x)), xs.iter().any(|&x| b(x))),
            Term::Num(set, text) => (self.numbers.accepts(*set, *text), false),
            Term::State(table, state) => (self.automata[*table as usize].ends(*state), false),
        };
        let o = |t: &TermId| self.is_open(*t);
        let open = match term {
            Term::All => true,
            Term::Concat(_, y) => o(y),
            Term::Or(xs) | Term::And(xs) => xs.iter().all(o),
            _ => false,
        };
        TermFacts { nullable, boolean, open, span: self.span_of(term, nullable) }
    }

    /// Whether the form shows that every continuation of a word is a word.
    pub(crate) fn is_open(&self, t: TermId) -> bool {
        self.facts[t.0 as usize].open
    }

    /// A class of code points; ranges are sorted, disjoint and inclusive.
    pub fn class(&mut self, ranges: &[(u32, u32)]) -> TermId {
        if ranges.is_empty() {
            return Self::EMPTY;
        }
        let (i, _) = self.sets.insert_full(ranges.into());
        self.intern(Term::Class(CharSetId(i as u32)))
    }

    /// Any one code point.
    pub fn any(&mut self) -> TermId {
        self.class(&[(0, 0xD7FF), (0xE000, MAX_CP)])
    }

    pub fn concat(&mut self, x: TermId, y: TermId) -> TermId {
        if x == Self::EMPTY || y == Self::EMPTY {
            return Self::EMPTY;
        }
        if x == Self::EPS {
            return y;
        }
        if y == Self::EPS {
            return x;
        }
        if x == Self::ALL && y == Self::ALL {
            return Self::ALL;
        }
        match *self.get(x) {
            // anything may follow the least number of copies, further copies included
            Term::Repeat(copy, lo, hi) if y == Self::ALL && lo != hi => {
                let least = self.repeat(copy, lo, lo);
                self.concat(least, y)
            }
            Term::Concat(a, b) => {
                let rest = self.concat(b, y);
                self.concat(a, rest)
            }
            _ => {
                if let Term::Concat(head, _) = *self.get(y) {
                    if x == Self::ALL && head == Self::ALL {
                        return y;
                    }
                }
                self.intern(Term::Concat(x, y))
            }
        }
    }

    pub fn concat_all(&mut self, xs: &[TermId]) -> TermId {
        xs.iter().rev().fold(Self::EPS, |rest, &x| self.concat(x, rest))
    }

    /// `x{lo,hi}`; `hi` may be [`INF`].
    pub fn repeat(&mut self, x: TermId, lo: u32, hi: u32) -> TermId {
        if lo > hi {
            return Self::EMPTY;
        }
        if hi == 0 || x == Self::EPS {
            return Self::EPS;
        }
        if x == Self::EMPTY {
            return if lo == 0 { Self::EPS } else { Self::EMPTY };
        }
        if lo == 1 && hi == 1 {
            return x;
        }
        if x == Self::ALL {
            return Self::ALL;
        }
        let lo = if self.nullable(x) { 0 } else { lo };
        if lo == 0 && hi == INF {
            if let Term::Class(s) = *self.get(x) {
                if self.set(s) == [(0, 0xD7FF), (0xE000, MAX_CP)] {
                    return Self::ALL;
                }
            }
        }
        // a repetition of `x*` is `x*`
        if let Term::Repeat(_, 0, INF) = self.get(x) {
            return x;
        }
        self.intern(Term::Repeat(x, lo, hi))
    }

    pub fn star(&mut self, x: TermId) -> TermId {
        self.repeat(x, 0, INF)
    }

    pub fn optional(&mut self, x: TermId) -> TermId {
        self.or(&[x, Self::EPS])
    }

    /// Languages walked side by side; empty when all are.
    pub fn tuple(&mut self, xs: &[TermId]) -> TermId {
        if xs.iter().all(|&x| x == Self::EMPTY) {
            return Self::EMPTY;
        }
        self.intern(Term::Tuple(xs.into()))
    }
}

/// Union of two sorted lists of inclusive ranges.
pub fn union_ranges(a: &[(u32, u32)], b: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, u32)> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    let mut out: Vec<(u32, u32)> = Vec::with_capacity(all.len());
    for (lo, hi) in all {
        match out.last_mut() {
            Some(last) if lo <= last.1.saturating_add(1) => last.1 = last.1.max(hi),
            _ => out.push((lo, hi)),
        }
    }
    out
}
