//! JSON Schema as formulas over values.
//!
//! Reading order: [`document`] and `parse` the text as an arena of JSON nodes; [`table`] which keyword holds what, by draft;
//! [`resolve`] where references lead; [`value`], [`object`], [`mod@array`] the formulas and their algebra; `arenas`,
//! `compiled` and `patterns` what was made of them; `formula` what they have in common; `names` the keys that a formula
//! names; [`used`] those that an object has used; `branches` what is left after a key or an item, `decide` where that is
//! much; `apart` objects that must differ;
//! [`keywords`] one family a file: from keywords to formulas; [`live`] satisfiability, with witnesses; [`mod@left_out`]
//! what nothing satisfies.

mod apart;
mod arenas;
pub mod array;
mod branches;
pub mod by_key;
mod compiled;
mod decide;
pub mod document;
pub(crate) mod formula;
pub mod keywords;
pub mod left_out;
pub mod live;
mod misspelled;
mod names;
pub mod object;
pub mod official;
pub mod options;
mod parse;
mod patterns;
pub mod resolve;
pub mod table;
pub mod used;
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
    pub(crate) answers: live::Answers,
    pub(crate) scopes: resolve::Scopes,
    /// Keys that objects have used.
    pub(crate) key_sets: used::KeySets,
    /// Objects that items were compared with.
    pub(crate) remembered: apart::Remembered,
}

impl Schema {
    /// Reads a schema; keywords that can't be enforced are refused here, before anything is generated.
    pub fn new(text: &str, options: Options) -> Result<Self> {
        Self::with_lexicon(text, options, Box::default(), &[])
    }

    /// The same, with its languages in an arena that holds those of other constraints already, and where the format
    /// `tokenform-mark-i` stands for the i-th of some languages.
    pub fn with_lexicon(
        text: &str,
        options: Options,
        lexicon: Box<Lexicon>,
        marks: &[TermId],
    ) -> Result<Self> {
        let mut doc = Document::default();
        let root = doc.parse(text)?;
        let resolver = Resolver::new(&mut doc, root, &options)?;
        let mut this = Schema {
            doc,
            options,
            lexicon,
            resolver,
            report: Vec::new(),
            arenas: Default::default(),
            compiled: Default::default(),
            patterns: Default::default(),
            answers: Default::default(),
            scopes: Default::default(),
            key_sets: Default::default(),
            remembered: Default::default(),
        };
        this.patterns.guard = this.without();
        for (i, &mark) in marks.iter().enumerate() {
            this.patterns.formats.insert(format!("{MARK}{i}").into(), Some(mark));
        }
        this.reserve();
        table::check(&mut this, root)?;
        Ok(this)
    }

    /// The strings in whose spelling none of the texts of `without` occurs.  A text with a quote can only occur
    /// at the end of a string; one with a character that JSON escapes never does.
    fn without(&mut self) -> TermId {
        let terms = &mut self.lexicon.terms;
        let mut parts = Vec::new();
        for text in self.options.without.iter().filter(|t| !t.contains(|c: char| c < ' ' || c == '\\')) {
            let (inside, rest) = text.split_once('"').unwrap_or((text, ""));
            let quoted = inside.len() < text.len();
            if inside.is_empty() || !(rest.is_empty() || rest.starts_with([',', ':', '}', ']', ' '])) {
                continue;
            }
            let word = terms.literal(inside);
            let tail = if quoted { Terms::EPS } else { Terms::ALL };
            let with = terms.concat_all(&[Terms::ALL, word, tail]);
            parts.push(terms.not(with));
        }
        terms.and(&parts)
    }

    /// The constants of every arena.
    fn reserve(&mut self) {
        self.arenas.subs.insert(SchemaExpr::True);
        self.arenas.subs.insert(SchemaExpr::False);
        self.obj(Obj::True);
        self.obj(Obj::False);
        self.arr(Arr::True);
        self.arr(Arr::False);
        self.arenas.lists.insert(Box::new([]));
        let all = self.value_of(Value {
            consts: value::CONSTS,
            num: true,
            set: None,
            str: crate::lexical::Terms::ALL,
            arr: ArrId::TRUE,
            obj: ObjId::TRUE,
        });
        debug_assert_eq!(all, ValId::TRUE);
        let none = self.value_of(Value::none());
        debug_assert_eq!(none, ValId::FALSE);
    }

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
            None => NameId(self.arenas.names.insert_full(text.into()).0 as u32),
        }
    }

    pub fn name_text(&self, id: NameId) -> &str {
        &self.arenas.names[id.0 as usize]
    }
}
