//! JSON Schema as formulas over values.
//!
//! In: a schema's text and the options.  Out: [`Value`] formulas with their derivatives by a key or an item, and whether
//! anything satisfies them.
//! Data: a [`Value`]: one part for each type (constants, numbers, strings, arrays, objects); formulas are interned ([`ValId`]),
//! so that equal formulas are one number.
//! Invariant: a formula accepts just what the schema does; what can't be enforced is refused when the schema is read.
//! Papers: Attouche et al. 2022 (witness generation for JSON Schema); Bruyere, Perez, Staquet 2022; Okasaki, Gill 1998 (sets of keys).
//! Start: [`table`] (which keyword holds what), `read`, [`keywords`] (one family a file), [`value`], [`object`], [`mod@array`].
//!
//! | question | files |
//! |---|---|
//! | the text, references | [`document`], `parse`, [`resolve`], `reference`, `official` |
//! | what is left after a key or an item | [`by_key`], `branches`, `decide`, [`key_sets`], `distinct`, `names` |
//! | does anything satisfy it | [`live`]; parts that nothing does, [`mod@left_out`] |
//! | what was made so far | `arenas`, `compiled`, `patterns` |
//!
//! Circle: compiling `oneOf` asks whether formulas exclude each other, and that compiles what they hold.

mod arenas;
pub mod array;
mod branches;
pub mod by_key;
mod compiled;
mod decide;
mod distinct;
pub mod document;
pub(crate) mod formula;
pub(crate) mod holes;
pub mod key_sets;
pub mod keywords;
pub mod left_out;
pub mod live;
mod misspelled;
mod names;
pub mod object;
pub mod official;
pub mod options;
pub mod parse;
mod patterns;
pub mod plain;
mod read;
mod reference;
pub mod resolve;
pub mod table;
pub mod value;

pub use array::{Arr, ArrId};
pub use document::{Document, Json, JsonNodeId};
pub(crate) use names::Simple;
pub use object::{Obj, ObjId, Shape, ShapeId};
pub use options::Options;
pub use value::{ExprId, SchemaExpr, ValId, Value};

use crate::error::{Error, Result};
use crate::lexical::{Lexicon, TermId, Terms};
use resolve::Resolver;

/// Formats that stand for languages from outside the schema.
pub(crate) const MARK: &str = "tokenform-mark-";

/// Counts a step of a search through formulas.
pub(crate) fn count_step() {
    crate::work::spend(40);
}

/// The number of an interned name (a key, or a part of a schema's text).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Everything about one schema: the text, the formulas met so far, the lexical arena.
pub struct Schema {
    pub doc: Document,
    pub options: Options,
    pub lexicon: Box<Lexicon>,
    pub resolver: Resolver,
    /// What was ignored, loosened or not proven.
    pub report: Vec<String>,
    pub(crate) arenas: arenas::Arenas,
    pub(crate) compiled: compiled::Compiled,
    pub(crate) patterns: patterns::Patterns,
    pub(crate) answers: live::LivenessMemos,
    pub(crate) scopes: resolve::Scopes,
    /// Keys that objects have used.
    pub(crate) key_sets: key_sets::KeySets,
    /// Objects that items were compared with.
    pub(crate) remembered: distinct::Remembered,
    /// Strings that are the texts of a grammar.
    pub(crate) holes: Holes,
}

/// The holes of a schema.
#[derive(Clone, Copy)]
pub struct Holes {
    pub(crate) count: u32,
    /// The strings that any schema of strings allows: all, but for texts that may not occur.
    every: TermId,
}

impl Default for Holes {
    fn default() -> Self {
        Holes { count: 0, every: Terms::ALL }
    }
}

impl Schema {
    /// The formula of the whole schema.
    pub fn root(&mut self) -> Result<ValId> {
        let root = self.resolver.root();
        let sub = self.node_sub(root);
        let value = self.compile(sub)?;
        let live = self.is_live(value);
        for node in std::mem::take(&mut self.compiled.eager) {
            let sub = self.node_sub(node);
            let strings = self.compile(sub)?;
            let strings = self.value(strings).str;
            self.lexicon.terms.delta(strings);
        }
        if !live {
            return Err(self.unsatisfiable(root));
        }
        Ok(value)
    }

    fn unsatisfiable(&mut self, root: JsonNodeId) -> Error {
        let place = self.blame(root);
        // an explanation that takes too long is done without
        let why = crate::work::run(crate::work::allowed(), || self.why(place, "here")).ok();
        let (why, keyword) = why.unwrap_or(("relax what clashes here".into(), None));
        let error =
            Error::new(crate::Kind::UnsatisfiableSchema, format!("no document satisfies the schema; {why}"))
                .at(&self.doc.pointer(place));
        match keyword {
            Some(keyword) => error.keyword(&keyword),
            None => error,
        }
    }

    pub fn name(&mut self, text: &str) -> NameId {
        match self.arenas.names.get_index_of(text) {
            Some(i) => NameId(i as u32),
            None => NameId(self.arenas.names.intern(text.into())),
        }
    }

    pub fn name_text(&self, id: NameId) -> &str {
        &self.arenas.names[id.0 as usize]
    }
}
