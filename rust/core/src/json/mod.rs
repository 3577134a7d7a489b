//! JSON documents of a schema as an automaton over bytes: a stack of frames, interned.
//!
//! JSON is a visibly pushdown language (Alur, Madhusudan 2004): brackets push and pop, so what a value means
//! to its parent is decided when it ends.  A value is read under several formulas at once, its *goals*; at its
//! end the parent learns which of them held (Bruyere, Perez, Staquet 2022).  Branches of a parent that no goal
//! can serve any more are dropped as they die, so a `oneOf` falls to one branch once its discriminator is
//! written.  A context is (position, frame, parent): one number; recursion of the document is the only depth.
//!
//! Reading order: this file (positions), `frames` (what is kept), [`object`] and [`mod@array`] (frames), [`simple`] (keys that are counted),
//! [`white`] (what stands between lexemes), [`depth`] (the deepest level), [`step`] (bytes), [`generic`] (texts that matter), [`finish`] (ways
//! out, [`remains`] how long they may become), [`describe`] (words,
//! [`repeated`] those of `uniqueItems`).

mod array;
mod depth;
mod describe;
mod finish;
mod frames;
mod generic;
mod left;
mod object;
mod place;
mod remains;
mod repeated;
mod simple;
mod step;
mod white;

use rustc_hash::FxHashMap;

use crate::automaton::{CtxId, Pos};
use crate::error::Result;
use crate::held;
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Lexicon, TermId, Terms};
use crate::schema::live::remains::Open;
use crate::schema::used::KeySet;
use crate::schema::{ArrId, NameId, ObjId, Schema, ValId};
use frames::{ArrayFrameId, FrameId, GoalsId, MapId, ObjectFrameId, RecordId, ReturnFrameId};

/// Where a context stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ParserPhase {
    /// Before the document.
    Root,
    /// After it.
    Done,
    /// Before a value that must come (after a colon, or after a comma in an array).
    Value,
    Item,
    /// Inside a string, a number or a word.
    Scalar,
    ObjectStart,
    Key,
    Colon,
    ObjectNext,
    ObjectAfter,
    ArrayStart,
    ArrayAfter,
    /// Not positions: what a finished value returns to.
    ReturnRoot,
    ReturnObject,
    ReturnArray,
}

/// One context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub place: ParserPhase,
    /// What the value here returns to.
    pub up: CtxId,
    pub frame: FrameId,
    /// The text of the outermost remembered item so far.
    pub record: RecordId,
    pub depth: u32,
}

/// One way in which an object may satisfy a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Alternative {
    pub goal: u32,
    pub formula: ObjId,
    /// Declared order, and the least rank that may follow.
    pub order: u32,
    pub from: u32,
}

/// An open object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectFrame {
    pub alternatives: Box<[Alternative]>,
    /// Keys that may not come again.
    pub used: KeySet,
}

/// What a finished property or item leads to: (goal of the value, alternative).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReturnFrame {
    pub goals: Box<[ValId]>,
    pub branches: Branches,
    pub used: KeySet,
    /// Offset of the item's text in the record, plus one; 0 where the array remembers nothing.
    pub start: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Branches {
    Object(Box<[(u32, Alternative)]>),
    /// The goal of the array, and what is left of its formula.
    Array(Box<[(u32, (u32, ArrId))]>),
}

impl ReturnFrame {
    /// The branches of an object.
    pub fn properties(&self) -> &[(u32, Alternative)] {
        match &self.branches {
            Branches::Object(list) => list,
            Branches::Array(_) => &[],
        }
    }

    /// The branches of an array.
    pub fn items(&self) -> &[(u32, (u32, ArrId))] {
        match &self.branches {
            Branches::Object(_) => &[],
            Branches::Array(list) => list,
        }
    }
}

/// Documents of one schema.
pub struct JsonMachine {
    pub schema: Schema,
    root: ValId,
    frames: frames::Frames,
    answers: Answers,
    alike: generic::Alike,
    /// Positions on known ways to the end: bytes, and where they lead (`None`: to the end).
    tails: FxHashMap<Pos, Tail>,
    levels: depth::Levels,
}

/// What was asked of frames and goals, by their numbers.
#[derive(Default)]
struct Answers {
    /// Languages of the keys that a frame allows.
    keys: FxHashMap<ObjectFrameId, TermId>,
    pendings_of: FxHashMap<(ObjectFrameId, NameId), Option<ReturnFrameId>>,
    /// What is left of a set of used keys when those that could not come again are forgotten.
    kept: FxHashMap<(u32, KeySet), KeySet>,
    scalars: FxHashMap<(GoalsId, Kind), Option<(MapId, LexId)>>,
    starts: FxHashMap<GoalsId, ByteSet>,
    closes: FxHashMap<(CtxId, u32), Option<Pos>>,
    objects: FxHashMap<GoalsId, Option<ObjectFrameId>>,
    arrays: FxHashMap<GoalsId, Option<ArrayFrameId>>,
    white: FxHashMap<(ParserPhase, u32, (bool, bool)), LexId>,
    /// What the frames above a context need at least, and what one token begins in them.
    above: FxHashMap<CtxId, Option<Open>>,
}

impl Answers {
    fn bytes(&self) -> usize {
        held::map(&self.keys)
            + held::map(&self.pendings_of)
            + held::map(&self.kept)
            + held::map(&self.scalars)
            + held::map(&self.starts)
            + held::map(&self.closes)
            + held::map(&self.objects)
            + held::map(&self.arrays)
            + held::map(&self.white)
            + held::map(&self.above)
    }
}

/// Bytes on a way to the end, and the position after them.
type Tail = (Box<[u8]>, Option<Pos>);

/// The kinds of lexemes that a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    String,
    /// Numbers, `true`, `false`, `null`.
    Bare,
}

/// Alternatives that declared order may multiply out; beyond, the order of that object is free.
const MAX_ORDERS: usize = 1_024;
/// The order of a frame without one.
const FREE: u32 = 0;

impl JsonMachine {
    pub fn new(mut schema: Schema) -> Result<Self> {
        let root = schema.root()?;
        Ok(JsonMachine {
            schema,
            root,
            frames: Default::default(),
            answers: Default::default(),
            alike: Default::default(),
            tails: FxHashMap::default(),
            levels: Default::default(),
        })
    }

    pub(crate) fn lexicon(&mut self) -> &mut Lexicon {
        &mut self.schema.lexicon
    }

    fn terms(&mut self) -> &mut Terms {
        &mut self.schema.lexicon.terms
    }

    pub(crate) fn node(&self, ctx: CtxId) -> Node {
        self.frames.nodes[ctx.0 as usize]
    }

    fn ctx(
        &mut self,
        place: ParserPhase,
        up: CtxId,
        frame: impl Into<FrameId>,
        record: RecordId,
        depth: u32,
    ) -> CtxId {
        let frame = frame.into();
        CtxId(self.frames.nodes.insert_full(Node { place, up, frame, record, depth }).0 as u32)
    }

    fn goal_list(&mut self, goals: &[ValId]) -> GoalsId {
        self.frames.known_goals(goals).unwrap_or_else(|| self.frames.goals_of(goals.into()))
    }

    /// The position at a context, before whatever may stand between lexemes.
    fn pos(&mut self, ctx: CtxId) -> Pos {
        let lex = self.white_at(ctx);
        Pos { ctx, lex }
    }

    /// A value under several goals has ended; `held` says which hold.
    fn resume(&mut self, up: CtxId, held: &[u32], record: RecordId) -> Option<Pos> {
        let node = self.node(up);
        match node.place {
            ParserPhase::ReturnRoot => {
                if held.is_empty() {
                    return None;
                }
                let ctx = self.ctx(ParserPhase::Done, up, FrameId::NONE, RecordId::NONE, 0);
                Some(self.pos(ctx))
            }
            ParserPhase::ReturnObject => self.resume_object(node, held, record),
            ParserPhase::ReturnArray => self.resume_array(node, held, record),
            _ => unreachable!("values return to frames"),
        }
    }

    /// The lexeme of a value under its goals: tuple of languages and the goal of each position.
    fn scalar(&mut self, goals: GoalsId, kind: Kind) -> Option<(MapId, LexId)> {
        if let Some(&known) = self.answers.scalars.get(&(goals, kind)) {
            return known;
        }
        let list = self.frames[goals].clone();
        let mut map = Vec::new();
        let mut languages = Vec::new();
        for (i, &v) in list.iter().enumerate() {
            let language = self.language(v, kind);
            let language = self.terms().prune(language);
            if language != Terms::EMPTY {
                map.push(i as u32);
                languages.push(language);
            }
        }
        let answer = if map.is_empty() {
            None
        } else {
            let term = match languages[..] {
                [only] => only,
                _ => self.terms().tuple(&languages),
            };
            let spelling = match kind {
                Kind::String => self.schema.string_spelling(),
                Kind::Bare => crate::lexical::Spelling::Raw,
            };
            let lex = self.lexicon().at(spelling, term);
            let map = self.frames.map(map.into());
            (lex != Lexicon::DEAD).then_some((map, lex))
        };
        self.answers.scalars.insert((goals, kind), answer);
        answer
    }

    fn language(&mut self, v: ValId, kind: Kind) -> TermId {
        let value = self.schema.value(v).clone();
        if kind == Kind::String {
            let guard = self.schema.patterns.guard;
            return self.terms().and(&[value.str, guard]);
        }
        use crate::schema::value::{FALSE, NULL, TRUE};
        let words: Vec<Box<str>> = [(NULL, "null"), (TRUE, "true"), (FALSE, "false")]
            .iter()
            .filter(|(bit, _)| value.consts & bit != 0)
            .map(|(_, word)| (*word).into())
            .collect();
        let words = self.terms().words(words);
        let set = self.schema.numbers(&value);
        let how = self.schema.options.numbers;
        let numbers = self.terms().numbers_in(set, how);
        self.terms().or(&[words, numbers])
    }

    /// Bytes with which a value under these goals may begin.
    fn value_bytes(&mut self, goals: GoalsId) -> ByteSet {
        if let Some(&known) = self.answers.starts.get(&goals) {
            return known;
        }
        let mut set = ByteSet::default();
        if self.scalar(goals, Kind::String).is_some() {
            set.insert(b'"');
        }
        if let Some((_, lex)) = self.scalar(goals, Kind::Bare) {
            set.add(&self.lexicon().first_bytes(lex));
        }
        if self.open_object(goals).is_some() {
            set.insert(b'{');
        }
        if self.open_array(goals).is_some() {
            set.insert(b'[');
        }
        self.answers.starts.insert(goals, set);
        set
    }

    fn record(&mut self, before: RecordId, more: &[u8]) -> RecordId {
        let mut text = self.frames[before].to_vec();
        text.extend_from_slice(more);
        self.frames.record(text.into())
    }
}
