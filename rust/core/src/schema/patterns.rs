//! The languages of strings and keys that the schema names: patterns, formats, what may not occur.
//!
//! Invariant: a pattern or a format is read once. Memory: an entry for each that was read, one for each pair of a pattern
//! and a key that met.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::live::object::Cell;
use super::{NameId, Schema};
use crate::hash::KeyedMap;
use crate::held;
use crate::lexical::{TermId, Terms};
use crate::regex::Lang;

pub(crate) struct Patterns {
    pub parsed: KeyedMap<Box<str>, Lang>,
    pub terms: KeyedMap<Box<str>, TermId>,
    pub formats: KeyedMap<Box<str>, Option<TermId>>,
    pub matches: FxHashMap<(TermId, NameId), bool>,
    /// Combinations of key patterns, by the patterns.
    pub cells: FxHashMap<Box<[TermId]>, Arc<[Cell]>>,
    /// The shortest key of a language.
    pub shortest: FxHashMap<TermId, Option<NameId>>,
    /// The strings that hold none of the texts that may not occur.
    pub guard: TermId,
}

impl Default for Patterns {
    fn default() -> Self {
        Patterns {
            parsed: KeyedMap::default(),
            terms: KeyedMap::default(),
            formats: KeyedMap::default(),
            matches: FxHashMap::default(),
            cells: FxHashMap::default(),
            shortest: FxHashMap::default(),
            guard: Terms::ALL,
        }
    }
}

impl Patterns {
    pub fn bytes(&self) -> usize {
        held::map(&self.parsed)
            + held::map(&self.terms)
            + held::map(&self.formats)
            + held::map(&self.matches)
            + held::map(&self.cells)
            + held::map(&self.shortest)
    }
}

impl Schema {
    /// Whether a key is in the language of a pattern.
    pub(crate) fn key_matches(&mut self, pattern: TermId, name: NameId) -> bool {
        if let Some(&known) = self.patterns.matches.get(&(pattern, name)) {
            return known;
        }
        let text = self.arenas.names[name.0 as usize].clone();
        let answer = self.lexicon.terms.accepts(pattern, &text);
        self.patterns.matches.insert((pattern, name), answer);
        answer
    }
}
