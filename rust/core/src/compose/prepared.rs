//! Forms around lists of branches, read once and copied for each list.
//!
//! What stands around the calls of tools is the same in every turn, and its languages take longer to read than five hundred
//! known tools; a copy of what was read is a few lists of numbers.
//! Invariant: a copy equals a fresh reading: the parts that are no lists have been read, in their order, and
//! nothing else; each use counts the work of a reading.
//! Memory: at most [`MOST`] bytes of texts and languages; past that all are dropped.
//! Rejected: a copy of the whole automaton (its grammar depends on how long the texts of a list are).

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::form::Bounds;
use super::text::value_of;
use super::{CompositeAutomaton, Part};
use crate::automaton::Piece;
use crate::error::Result;
use crate::hash::KeyedMap;
use crate::lexical::Lexicon;
use crate::text_memo::TextMemo;
use crate::work;

const MOST: usize = 8 << 20;

struct Prepared {
    structure: Value,
    bounds: Bounds,
    lexicon: Lexicon,
    parts: Vec<Part>,
    words: FxHashMap<u32, Option<Vec<Piece>>>,
    report: Vec<String>,
    work: u64,
    /// The limit under which it was read.
    limit: u64,
}

/// By the texts of the forms.
static KNOWN: TextMemo<KeyedMap<Box<str>, Arc<Prepared>>> = TextMemo::new(MOST);

impl CompositeAutomaton {
    /// Reads a form, whose lists are given, into an automaton that has read nothing yet.
    pub(super) fn read_around(&mut self, text: &str, name: &str) -> Result<u32> {
        let found = KNOWN.find(|known| known.get(text).cloned());
        if let Some(found) = found.filter(|found| found.limit <= work::allowed()) {
            work::spend(found.work);
            *self.lexicon = found.lexicon.clone();
            self.parts.clone_from(&found.parts);
            self.words.clone_from(&found.words);
            self.report.clone_from(&found.report);
            return self.host(&found.structure, found.bounds.clone());
        }
        let before = work::spent();
        let form = value_of(text)?;
        let Some(structure) = form.get("grammar") else { return self.part(&form, name) };
        let bounds = self.bounds(structure)?;
        if self.hosts.is_empty() && self.machines.is_empty() && self.lists.is_empty() {
            self.remember(text, structure, &bounds, work::spent().saturating_sub(before));
        }
        self.host(structure, bounds)
    }

    fn remember(&mut self, text: &str, structure: &Value, bounds: &Bounds, work: u64) {
        let bytes = 4 * text.len() + self.lexicon.bytes();
        if bytes > MOST {
            return;
        }
        let prepared = Arc::new(Prepared {
            structure: structure.clone(),
            bounds: bounds.clone(),
            lexicon: Lexicon::clone(&self.lexicon),
            parts: self.parts.clone(),
            words: self.words.clone(),
            report: self.report.clone(),
            work,
            limit: work::allowed(),
        });
        KNOWN.add(bytes, |known| drop(known.insert(text.into(), prepared)));
    }
}
