//! The languages of strings and keys that the schema names: patterns, formats, what may not occur.
//!
//! Invariant: a pattern or a format is read once. Memory: an entry for each that was read, one for each pair of a pattern
//! and a key that were compared.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::live::object::Cell;
use super::{NameId, Schema};
use crate::error::{Error, Kind, Result};
use crate::hash::KeyedMap;
use crate::heap_size;
use crate::lexical::{TermId, Terms};
use crate::regex::{self, Dialect, Lang, Note, RegexErrorKind, DIALECTS};
use crate::schema::document::JsonNodeId;

/// Beside `pattern` and `patternProperties`: the dialect that they are written in.  Types say so of their fields' patterns.
pub(super) const DIALECT: &str = "x-pattern-dialect";

/// Lines of a report from which on patterns are not listed one by one.
const MOST: usize = 100;

/// A pattern that was read.
pub(crate) struct Pattern {
    lang: Lang,
    notes: Vec<Note>,
    /// What it is to the lexicon, once a value has needed it.
    term: Option<TermId>,
}

pub(crate) struct Patterns {
    /// Patterns by their dialect.
    read: [KeyedMap<Box<str>, Pattern>; DIALECTS.len()],
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
            read: Default::default(),
            formats: KeyedMap::default(),
            matches: FxHashMap::default(),
            cells: FxHashMap::default(),
            shortest: FxHashMap::default(),
            guard: Terms::ALL,
        }
    }
}

heap_size::tables!(Patterns: formats, matches, cells, shortest; this => this.read.iter().map(heap_size::map).sum::<usize>());

impl Patterns {
    fn get(&self, pattern: &str, dialect: Dialect) -> Option<&Pattern> {
        self.read[dialect as usize].get(pattern)
    }
}

impl Schema {
    /// The dialect of the patterns in a subschema.
    fn dialect(&self, node: JsonNodeId) -> Result<Dialect> {
        let Some(named) = self.doc.key(node, DIALECT) else { return Ok(self.options.pattern_dialect) };
        self.doc.str(named).and_then(Dialect::named).ok_or_else(|| {
            let names = DIALECTS.map(|d| format!("{:?}", d.0)).join(", ");
            let message = format!("{DIALECT:?} must be one of {names}");
            Error::new(Kind::InvalidSchema, message).at(&self.doc.pointer(named)).keyword(DIALECT)
        })
    }

    /// The texts in which a pattern of a subschema is found; `None` when it is not supported and only reported.
    pub(crate) fn pattern(&mut self, node: JsonNodeId, pattern: &str) -> Result<Option<TermId>> {
        let dialect = self.dialect(node)?;
        let Some(read) = self.patterns.read[dialect as usize].get_mut(pattern) else { return Ok(None) };
        let terms = &mut self.lexicon.terms;
        Ok(Some(*read.term.get_or_insert_with(|| terms.lower(&read.lang))))
    }

    /// Reads a pattern of a subschema that stands at `at`; what it means to the lexicon is found when a value is compiled.
    pub(crate) fn check_pattern(&mut self, node: JsonNodeId, pattern: &str, at: JsonNodeId) -> Result<()> {
        let dialect = self.dialect(node)?;
        if self.patterns.get(pattern, dialect).is_none() {
            match regex::parse_with(pattern, dialect, false) {
                Ok((lang, notes)) => {
                    let read = Pattern { lang, notes, term: None };
                    self.patterns.read[dialect as usize].insert(pattern.into(), read);
                }
                Err(error) => return self.refuse_pattern(pattern, at, &error),
            }
        }
        let notes = self.patterns.get(pattern, dialect).map_or(Vec::new(), |read| read.notes.clone());
        for Note { column, message } in notes {
            let place = self.doc.pointer(at);
            if self.report.len() < MOST {
                self.note(format!(
                    "read: pattern {} at {place}, column {column}: {message}",
                    quoted(pattern)
                ));
            } else if self.report.len() == MOST {
                self.report.push(format!("read: more patterns from {place} on, as the dialects of others"));
            }
        }
        Ok(())
    }

    fn refuse_pattern(&mut self, pattern: &str, at: JsonNodeId, error: &regex::RegexError) -> Result<()> {
        let kind = match error.kind {
            RegexErrorKind::Invalid => Kind::InvalidSchema,
            RegexErrorKind::Unsupported => Kind::UnsupportedSchema,
            RegexErrorKind::Limit => Kind::LimitExceeded,
        };
        let message = format!("the pattern {}: {}", quoted(pattern), error.message);
        if kind == Kind::UnsupportedSchema && self.options.report_unsupported {
            self.note(format!("ignored: {message}"));
            return Ok(());
        }
        Err(Error::new(kind, message).column(error.column).at(&self.doc.pointer(at)))
    }

    /// Whether some text is plainly in the language of a subschema's pattern.
    pub(crate) fn pattern_has_words(&self, node: JsonNodeId, value: JsonNodeId) -> bool {
        let (Some(pattern), Ok(dialect)) = (self.doc.str(value), self.dialect(node)) else { return false };
        self.patterns.get(pattern, dialect).is_some_and(|read| read.lang.plainly_has_words())
    }

    /// Whether a key is in the language of a pattern.
    pub(crate) fn key_matches(&mut self, pattern: TermId, name: NameId) -> bool {
        memo!(self.patterns.matches, (pattern, name), {
            let text = self.arenas.names[name.0 as usize].clone();
            self.lexicon.terms.accepts(pattern, &text)
        })
    }
}

fn quoted(pattern: &str) -> String {
    match pattern.char_indices().nth(80) {
        Some((end, _)) => format!("{:?}...", &pattern[..end]),
        None => format!("{pattern:?}"),
    }
}
