//! The machines of the schemas in a composition.
//!
//! A schema that this process has read before, with the same options, is built again only when a text reaches
//! it: of five hundred tools a text calls one or two. Until then its facts are enough: a short document, and
//! its report.
//! Invariant: a schema is deferred only if it was read without an error under a limit that was no higher, so
//! that to build it later raises no error that to build it at once would not; a call that is cut short
//! meanwhile loses its whole builder.
//! Memory: at most [`MOST`] bytes of texts and facts; past that all are dropped.
//! Rejected: shared machines (their languages are ids in an arena for each constraint).

use std::collections::HashMap;
use std::sync::Arc;

use super::CompositeAutomaton;
use crate::automaton::byte_automaton::ByteAutomaton;
use crate::error::Result;
use crate::json::JsonMachine;
use crate::lexical::Lexicon;
use crate::schema::holes::Hole;
use crate::schema::{Options, Schema};
use crate::text_memo::TextMemo;
use crate::work;

const MOST: usize = 16 << 20;
/// Longer texts are read at once: they cost more than one step may.
const LONGEST: usize = 1 << 16;

/// A schema's machine.
pub(super) enum Machine {
    Made(Box<JsonMachine>),
    DeferredSchema(Box<DeferredSchema>),
}

pub(super) struct DeferredSchema {
    text: Box<str>,
    options: Options,
    deepest: Option<u32>,
}

/// What is known of a schema that was read.
pub(super) struct SchemaFacts {
    /// A short document.
    pub word: Option<Vec<u8>>,
    pub report: Vec<String>,
    /// The work to read it, which counts at each use: limits do not depend on what a process did before.
    work: u64,
    /// The limit under which it was read.
    limit: u64,
}

type ByText = HashMap<Box<str>, Arc<SchemaFacts>>;

static KNOWN: TextMemo<HashMap<Options, ByText>> = TextMemo::new(MOST);

/// What is known of a schema.
pub(super) fn facts(text: &str, options: &Options) -> Option<Arc<SchemaFacts>> {
    let found = KNOWN.find(|known| known.get(options)?.get(text).cloned())?;
    if found.limit > work::allowed() {
        return None;
    }
    work::spend(found.work);
    Some(found)
}

/// Remembers a schema that was read.
pub(super) fn remember(text: &str, options: &Options, word: Option<Vec<u8>>, report: Vec<String>, work: u64) {
    if text.len() > LONGEST || !options.registry.is_empty() {
        return;
    }
    let bytes =
        text.len() + word.as_ref().map_or(0, Vec::len) + report.iter().map(String::len).sum::<usize>() + 256;
    let facts = Arc::new(SchemaFacts { word, report, work, limit: work::allowed() });
    KNOWN.add(bytes, |known| drop(known.entry(options.clone()).or_default().insert(text.into(), facts)));
}

impl Machine {
    pub fn later(text: &str, options: Options) -> Machine {
        Machine::DeferredSchema(Box::new(DeferredSchema { text: text.into(), options, deepest: None }))
    }

    pub fn set_deepest(&mut self, levels: u32) {
        match self {
            Machine::Made(machine) => machine.set_deepest(levels),
            Machine::DeferredSchema(later) => later.deepest = Some(levels),
        }
    }

    pub fn bytes(&mut self) -> usize {
        match self {
            Machine::Made(machine) => machine.bytes(),
            Machine::DeferredSchema(later) => later.text.len() + std::mem::size_of::<DeferredSchema>(),
        }
    }

    pub fn closings(&self) -> u64 {
        self.made().map_or(0, |machine| machine.closings())
    }

    pub fn made(&self) -> Option<&JsonMachine> {
        match self {
            Machine::Made(machine) => Some(machine),
            Machine::DeferredSchema(_) => None,
        }
    }
}

/// The machine of a schema on the common arena.
pub(super) fn read(
    text: &str,
    options: Options,
    lexicon: Box<Lexicon>,
    holes: &[Hole],
) -> Result<JsonMachine> {
    let mut schema = Schema::with_lexicon(text, options, lexicon, holes)?;
    schema.check_holes()?;
    JsonMachine::new(schema)
}

impl CompositeAutomaton {
    /// Makes the machine of a schema, if it is not made yet.
    pub(super) fn machine(&mut self, machine: u32) {
        let place = machine as usize;
        if let Machine::DeferredSchema(later) = &self.machines[place] {
            let lexicon = std::mem::take(&mut self.lexicon);
            let mut made =
                read(&later.text, later.options.clone(), lexicon, &[]).unwrap_or_else(|e| work::refuse(e));
            self.lexicon = std::mem::take(&mut made.schema.lexicon);
            if let Some(levels) = later.deepest {
                made.set_deepest(levels);
            }
            self.machines[place] = Machine::Made(Box::new(made));
        }
    }
}
