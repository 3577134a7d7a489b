//! JSON documents of a schema as an automaton over bytes: a stack of frames, interned.
//!
//! In: the formula of a schema ([`crate::schema`]).  Out: a [`crate::automaton::ByteAutomaton`].
//! Data: a context ([`frames::Node`]): where the text stands, the frame of the open object or array, and the context that it
//! returns to: one number, so that nesting is the only depth.
//! Invariant: a value is read under several formulas at once, its *goals*; at its end the parent learns which of them
//! held.  Branches of a parent that no goal can serve any more are dropped as they die, so that a `oneOf` falls to one
//! branch once its discriminator is written.
//! Papers: Alur, Madhusudan 2004 (visibly pushdown languages); Bruyere, Perez, Staquet 2022 (JSON Schema by such automata).
//! Start: this file, then `frames` (what is kept), [`object`] and [`mod@array`], [`step`] (bytes).
//!
//! | question | files |
//! |---|---|
//! | whitespace, nesting | `white`, `depth` |
//! | keys that are counted | `simple` |
//! | keys that no schema tells apart | `generic` |
//! | short ways to an end, and how long one may become | `finish`, `remains`, `left` |
//! | words for people | `describe`, `place`, `repeated` |

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
use crate::schema::{NameId, Schema, ValId};
pub(crate) use frames::{Alternative, Branches, Node, ObjectFrame, ParserPhase, ReturnFrame};
use frames::{
    ArrayFrameId, FrameId, GoalsId, MapId, ObjectFrameId, RecordId, ReturnFrameId, FREE, MAX_ORDERS,
};

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
    /// Whether there is one, which the first that is found tells.
    has_keys: FxHashMap<ObjectFrameId, bool>,
    pendings_of: FxHashMap<(ObjectFrameId, NameId), Option<ReturnFrameId>>,
    /// What is left of a set of used keys when those that could not come again are forgotten.
    kept: FxHashMap<(u32, KeySet), KeySet>,
    scalars: FxHashMap<(GoalsId, Kind), Option<(MapId, LexId)>>,
    starts: FxHashMap<GoalsId, ByteSet>,
    closes: FxHashMap<(CtxId, u32), Option<Pos>>,
    objects: FxHashMap<GoalsId, Option<ObjectFrameId>>,
    arrays: FxHashMap<GoalsId, Option<ArrayFrameId>>,
    items: FxHashMap<ArrayFrameId, Option<(GoalsId, ReturnFrameId, bool)>>,
    white: FxHashMap<(ParserPhase, u32, (bool, bool)), LexId>,
    /// What the frames above a context need at least, and what one token begins in them.
    above: FxHashMap<CtxId, Option<Open>>,
}

held::tables!(Answers: keys, has_keys, pendings_of, kept, scalars, starts, closes, objects, arrays, items, white, above);

/// Bytes on a way to the end, and the position after them.
type Tail = (Box<[u8]>, Option<Pos>);

/// The kinds of lexemes that a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    String,
    /// Numbers, `true`, `false`, `null`.
    Bare,
}

impl JsonMachine {
    pub fn new(mut schema: Schema) -> Result<Self> {
        let root = schema.root()?;
        Ok(JsonMachine {
            schema,
            root,
            frames: frames::Frames::new(),
            answers: Default::default(),
            alike: Default::default(),
            tails: FxHashMap::default(),
            levels: Default::default(),
        })
    }

    /// Bytes of contexts, frames and what is remembered of them, the schema's included.
    pub(super) fn bytes_held(&mut self) -> usize {
        // pieces of ways are short
        let pieces = 64 * self.tails.len();
        self.frames.bytes() + held::bytes!(self: answers, alike, tails) + pieces + self.schema.bytes()
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
        CtxId(self.frames.nodes.intern(Node { place, up, frame, record, depth }))
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
        memo!(self.answers.scalars, (goals, kind), {
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
            if map.is_empty() {
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
            }
        })
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
        memo!(self.answers.starts, goals, {
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
            set
        })
    }

    fn record(&mut self, before: RecordId, more: &[u8]) -> RecordId {
        let mut text = self.frames[before].to_vec();
        text.extend_from_slice(more);
        self.frames.record(text.into())
    }
}
