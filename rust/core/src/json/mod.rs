//! JSON documents of a schema as an automaton over bytes: a stack of frames, interned.
//!
//! In: the formula of a schema ([`crate::schema`]).  Out: a [`crate::automaton::ByteAutomaton`].
//! Data: a context ([`frames::Context`]): where the text stands, the frame of the open object or array, and the context that it
//! returns to: one number, so that nesting is the only depth.
//! Invariant: a value is read under several formulas at once, its *goals*; at its end the parent learns which of them
//! held.  Branches of a parent that no goal can serve any more are dropped as they die, so that a `oneOf` falls to one
//! branch once its discriminator is written.
//! Papers: Alur, Madhusudan 2004 (visibly pushdown languages); Bruyere, Perez, Staquet 2022 (JSON Schema by such automata).
//! Start: this file, then `frames` (the tables), [`object`] and [`mod@array`], [`step`] (bytes).
//!
//! | question | files |
//! |---|---|
//! | whitespace, nesting | `whitespace`, `depth` |
//! | keys that are counted | `independent_keys` |
//! | keys that no schema tells apart | `generic_texts` |
//! | short ways to an end, and how long one may become | `completion`, `remaining_bound`, `remaining_values` |
//! | words for people | `describe`, `pointer`, `repeated_items` |

mod array;
mod completion;
mod depth;
mod describe;
mod frames;
mod generic_texts;
mod independent_keys;
mod object;
mod pointer;
mod remaining_bound;
mod remaining_values;
mod repeated_items;
mod step;
mod whitespace;

use rustc_hash::FxHashMap;

use crate::automaton::{CtxId, Pos};
use crate::error::Result;
use crate::heap_size;
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Lexicon, TermId, Terms};
use crate::schema::key_sets::KeySet;
use crate::schema::live::remaining_bound::OpenBound;
use crate::schema::{NameId, Schema, ValId};
pub(crate) use frames::{Alternative, Branches, Context, ObjectFrame, ParserPhase, ReturnFrame};
use frames::{
    ArrayFrameId, FrameId, GoalsId, MapId, ObjectFrameId, RecordId, ReturnFrameId, FREE, MAX_ORDERS,
};

/// Documents of one schema.
pub struct JsonMachine {
    pub schema: Schema,
    root: ValId,
    frames: frames::Frames,
    memos: FrameMemos,
    generic: generic_texts::GenericTexts,
    /// Positions on known completions: the next bytes, and the position after them (`None`: the end).
    suffixes: FxHashMap<Pos, PathSuffix>,
    levels: depth::Levels,
}

/// Memos of frames and goals, by their numbers.
#[derive(Default)]
struct FrameMemos {
    /// Languages of the keys that a frame allows.
    keys: FxHashMap<ObjectFrameId, TermId>,
    /// Whether there is one, which the first that is found tells.
    has_keys: FxHashMap<ObjectFrameId, bool>,
    return_frames: FxHashMap<(ObjectFrameId, NameId), Option<ReturnFrameId>>,
    /// What is left of a set of used keys when those that could not come again are forgotten.
    recurring: FxHashMap<(u32, KeySet), KeySet>,
    scalars: FxHashMap<(GoalsId, LexemeKind), Option<(MapId, LexId)>>,
    starts: FxHashMap<GoalsId, ByteSet>,
    closes: FxHashMap<(CtxId, u32), Option<Pos>>,
    objects: FxHashMap<GoalsId, Option<ObjectFrameId>>,
    arrays: FxHashMap<GoalsId, Option<ArrayFrameId>>,
    items: FxHashMap<ArrayFrameId, Option<(GoalsId, ReturnFrameId, bool)>>,
    white: FxHashMap<(ParserPhase, u32, (bool, bool)), LexId>,
    /// What the frames above a context need at least, and what one token begins in them.
    above: FxHashMap<CtxId, Option<OpenBound>>,
}

heap_size::tables!(FrameMemos: keys, has_keys, return_frames, recurring, scalars, starts, closes, objects, arrays, items, white, above);

/// Bytes of a completion, and the position after them.
type PathSuffix = (Box<[u8]>, Option<Pos>);

/// The kinds of lexemes that a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LexemeKind {
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
            memos: Default::default(),
            generic: Default::default(),
            suffixes: FxHashMap::default(),
            levels: Default::default(),
        })
    }

    /// Bytes of contexts, frames and what is remembered of them, the schema's included.
    pub(super) fn memory_bytes(&mut self) -> usize {
        // pieces of ways are short
        let pieces = 64 * self.suffixes.len();
        self.frames.bytes() + heap_size::bytes!(self: memos, generic, suffixes) + pieces + self.schema.bytes()
    }

    pub(crate) fn lexicon(&mut self) -> &mut Lexicon {
        &mut self.schema.lexicon
    }

    fn terms(&mut self) -> &mut Terms {
        &mut self.schema.lexicon.terms
    }

    pub(crate) fn context(&self, ctx: CtxId) -> Context {
        self.frames.contexts[ctx.0 as usize]
    }

    fn ctx(
        &mut self,
        phase: ParserPhase,
        parent: CtxId,
        frame: impl Into<FrameId>,
        record: RecordId,
        depth: u32,
    ) -> CtxId {
        let frame = frame.into();
        CtxId(self.frames.contexts.intern(Context { phase, parent, frame, record, depth }))
    }

    fn goal_list(&mut self, goals: &[ValId]) -> GoalsId {
        self.frames.known_goals(goals).unwrap_or_else(|| self.frames.goals_of(goals.into()))
    }

    /// The position at a context, before whatever may stand between lexemes.
    fn pos(&mut self, ctx: CtxId) -> Pos {
        let lex = self.whitespace_at(ctx);
        Pos { ctx, lex }
    }

    /// A value under several goals has ended; `satisfied` says which hold.
    fn resume(&mut self, parent: CtxId, satisfied: &[u32], record: RecordId) -> Option<Pos> {
        let context = self.context(parent);
        match context.phase {
            ParserPhase::ReturnRoot => {
                if satisfied.is_empty() {
                    return None;
                }
                let ctx = self.ctx(ParserPhase::Done, parent, FrameId::NONE, RecordId::NONE, 0);
                Some(self.pos(ctx))
            }
            ParserPhase::ReturnObject => self.resume_object(context, satisfied, record),
            ParserPhase::ReturnArray => self.resume_array(context, satisfied, record),
            _ => unreachable!("values return to frames"),
        }
    }

    /// The lexeme of a value under its goals: tuple of languages and the goal of each position.
    fn scalar(&mut self, goals: GoalsId, kind: LexemeKind) -> Option<(MapId, LexId)> {
        memo!(self.memos.scalars, (goals, kind), {
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
                    LexemeKind::String => self.schema.string_spelling(),
                    LexemeKind::Bare => crate::lexical::Spelling::Raw,
                };
                let lex = self.lexicon().at(spelling, term);
                let map = self.frames.map(map.into());
                (lex != Lexicon::DEAD).then_some((map, lex))
            }
        })
    }

    fn language(&mut self, v: ValId, kind: LexemeKind) -> TermId {
        let value = self.schema.value(v).clone();
        if kind == LexemeKind::String {
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
        memo!(self.memos.starts, goals, {
            let mut set = ByteSet::default();
            if self.scalar(goals, LexemeKind::String).is_some() {
                set.insert(b'"');
            }
            if let Some((_, lex)) = self.scalar(goals, LexemeKind::Bare) {
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
