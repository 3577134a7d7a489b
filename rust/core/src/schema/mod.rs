//! JSON Schema as formulas over values.
//!
//! Reading order: [`document`] and `parse` the text as an arena of JSON nodes; [`table`] which keyword holds what, by draft;
//! [`resolve`] where references lead; [`value`], [`object`], [`mod@array`] the formulas and their algebra; `names` the
//! keys that a formula names; [`used`] those that an object has used; `decide` branches where those are many;
//! [`keywords`] one family a file: from keywords to formulas; [`live`] satisfiability, with witnesses.

mod apart;
pub mod array;
pub mod by_key;
mod decide;
pub mod document;
pub mod keywords;
pub mod live;
mod memory;
mod misspelled;
mod names;
pub mod object;
pub mod options;
mod parse;
pub mod resolve;
pub mod table;
pub mod used;
pub mod value;

use indexmap::IndexSet;
use rustc_hash::FxHashMap;

pub use array::{Arr, ArrId};
pub use document::{Document, JId, Json};
pub(crate) use names::Simple;
pub use object::{Obj, ObjId, Shape, ShapeId};
pub use options::Options;
pub use value::{Sub, SubId, ValId, Value};

use crate::error::{Error, Result};
use crate::hash::{Keyed, KeyedMap};
use crate::lexical::{Lexicon, TermId, Terms};
use crate::regex::Lang;
use resolve::Resolver;

/// Formats that stand for languages from outside the schema.
pub(crate) const MARK: &str = "tokenform-mark-";

/// The number of an interned name (a key, or a part of a schema's text).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Everything about one schema: the text, the formulas met so far, the lexical arena.
pub struct Schema {
    pub doc: Document,
    pub options: Options,
    pub lexicon: Box<Lexicon>,
    pub resolver: Resolver,
    /// Schemas that are compiled at once, since they may be too much to decide.
    pub(crate) eager: Vec<JId>,
    /// What was ignored, loosened or not proven.
    pub report: Vec<String>,
    pub names: IndexSet<Box<str>, Keyed>,
    pub(crate) subs: IndexSet<Sub, Keyed>,
    pub(crate) vals: IndexSet<Value, Keyed>,
    pub(crate) objs: IndexSet<Obj, Keyed>,
    pub(crate) obj_facts: Vec<object::Facts>,
    /// Denials of formulas over objects and arrays.
    pub(crate) not_objs: FxHashMap<ObjId, ObjId>,
    pub(crate) not_arrs: FxHashMap<ArrId, ArrId>,
    pub(crate) arrs: IndexSet<Arr, Keyed>,
    pub(crate) arr_facts: Vec<array::Facts>,
    pub(crate) shapes: IndexSet<Shape, Keyed>,
    pub(crate) lists: IndexSet<Box<[SubId]>, Keyed>,
    /// Objects that items were compared with.
    pub(crate) remembered: apart::Remembered,
    /// Dynamic scopes: where each dynamic anchor leads, sorted by name; the first is empty.
    pub(crate) scopes: IndexSet<resolve::Scope, Keyed>,
    pub(crate) scope: u32,
    /// Values by their canonical text, so that equal values are equal numbers.
    pub(crate) constants: KeyedMap<Box<str>, JId>,
    pub(crate) compiled: FxHashMap<SubId, ValId>,
    pub(crate) compiling: Vec<SubId>,
    /// Formulas of schemas as far as they speak of names, and whether such a one is being made.
    pub(crate) compiled_names: FxHashMap<SubId, ValId>,
    pub(crate) names_only: bool,
    pub(crate) origin: FxHashMap<ValId, JId>,
    /// Further schemas that come to a formula.
    pub(crate) more_origins: Vec<(ValId, JId)>,
    pub(crate) parsed: KeyedMap<Box<str>, Lang>,
    pub(crate) patterns: KeyedMap<Box<str>, TermId>,
    pub(crate) formats: KeyedMap<Box<str>, Option<TermId>>,
    pub(crate) matches: FxHashMap<(TermId, NameId), bool>,
    /// Keys that objects have used.
    pub(crate) key_sets: used::KeySets,
    /// Combinations of key patterns, by the patterns.
    pub(crate) cells: FxHashMap<Box<[TermId]>, std::sync::Arc<[live::object::Cell]>>,
    pub(crate) lives: FxHashMap<ValId, bool>,
    /// The values of an item after which the rest of the array can be completed.
    pub(crate) finite: FxHashMap<SubId, live::finite::Known>,
    pub(crate) completable: FxHashMap<(value::SubId, ArrId), value::SubId>,
    pub(crate) asking: FxHashMap<ValId, usize>,
    pub(crate) rests: FxHashMap<ObjId, bool>,
    pub(crate) lowest: usize,
    pub(crate) witnesses: FxHashMap<ValId, Option<std::sync::Arc<live::Witness>>>,
    /// The strings that hold none of the texts that may not occur.
    pub(crate) guard: TermId,
    pub(crate) error: Option<Error>,
    counted: memory::Counted,
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
            eager: Vec::new(),
            report: Vec::new(),
            names: IndexSet::default(),
            subs: IndexSet::default(),
            vals: IndexSet::default(),
            objs: IndexSet::default(),
            obj_facts: Vec::new(),
            not_objs: FxHashMap::default(),
            not_arrs: FxHashMap::default(),
            arrs: IndexSet::default(),
            arr_facts: Vec::new(),
            shapes: IndexSet::default(),
            lists: IndexSet::default(),
            remembered: Default::default(),
            scopes: IndexSet::default(),
            scope: 0,
            constants: KeyedMap::default(),
            compiled: FxHashMap::default(),
            compiling: Vec::new(),
            compiled_names: FxHashMap::default(),
            names_only: false,
            origin: FxHashMap::default(),
            more_origins: Vec::new(),
            parsed: KeyedMap::default(),
            patterns: KeyedMap::default(),
            formats: KeyedMap::default(),
            matches: FxHashMap::default(),
            key_sets: used::KeySets::default(),
            cells: FxHashMap::default(),
            lives: FxHashMap::default(),
            finite: FxHashMap::default(),
            completable: FxHashMap::default(),
            asking: FxHashMap::default(),
            rests: FxHashMap::default(),
            lowest: usize::MAX,
            witnesses: FxHashMap::default(),
            error: None,
            counted: Default::default(),
            guard: Terms::ALL,
        };
        this.guard = this.without();
        for (i, &mark) in marks.iter().enumerate() {
            this.formats.insert(format!("{MARK}{i}").into(), Some(mark));
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

    /// Counts a step of a search through formulas; whether the call failed already, so that it need not go on.
    pub(crate) fn late(&mut self) -> bool {
        crate::work::spend(40);
        self.error.is_some()
    }

    /// The constants of every arena.
    fn reserve(&mut self) {
        self.subs.insert(Sub::True);
        self.subs.insert(Sub::False);
        self.obj(Obj::True);
        self.obj(Obj::False);
        self.arr(Arr::True);
        self.arr(Arr::False);
        self.lists.insert(Box::new([]));
        self.scopes.insert(Box::new([]));
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
        for node in std::mem::take(&mut self.eager) {
            let sub = self.node_sub(node);
            let strings = self.compile(sub)?;
            let strings = self.value(strings).str;
            self.lexicon.terms.delta(strings);
        }
        // what was cut short proves nothing
        self.check_limits()?;
        if !live {
            let place = self.blame(root);
            return Err(Error::new(
                crate::Kind::UnsatisfiableSchema,
                "no document satisfies the schema; relax what clashes here",
            )
            .at(&self.doc.pointer(place)));
        }
        self.check_limits()?;
        Ok(value)
    }

    pub fn name(&mut self, text: &str) -> NameId {
        match self.names.get_index_of(text) {
            Some(i) => NameId(i as u32),
            None => NameId(self.names.insert_full(text.into()).0 as u32),
        }
    }

    pub fn name_text(&self, id: NameId) -> &str {
        &self.names[id.0 as usize]
    }

    /// A limit that was passed since the last question.
    pub(crate) fn check_limits(&mut self) -> Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.lexicon.terms.limit_error().map_or(Ok(()), Err),
        }
    }

    /// Whether a key is in the language of a pattern.
    pub(crate) fn key_matches(&mut self, pattern: TermId, name: NameId) -> bool {
        if let Some(&known) = self.matches.get(&(pattern, name)) {
            return known;
        }
        let text = self.names[name.0 as usize].clone();
        let answer = self.lexicon.terms.accepts(pattern, &text);
        self.matches.insert((pattern, name), answer);
        answer
    }
}
