//! The tables of contexts, frames and lists of goals that texts have reached, each interned.
//!
//! Invariant: equal contexts have equal numbers, so that a context is compared by its number; a table only grows, and the
//! first order and the first two records are constants.
//! Each table has numbers of its own type; the phase of a context says which table its [`Context::frame`] is of.
//! Complexity: a hash for each that is made. Memory: what live texts have reached; [`Frames::bytes`] counts it,
//! and an automaton past its budget begins anew.

use std::ops::Index;

use rustc_hash::FxHashMap;

use crate::automaton::CtxId;
use crate::hash::Keyed;
use crate::heap_size::{self, Interner};
use crate::schema::key_sets::KeySet;
use crate::schema::live::Keys;
use crate::schema::{ArrId, NameId, ObjId, ValId};

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
pub(crate) struct Context {
    pub phase: ParserPhase,
    /// What the value here returns to.
    pub parent: CtxId,
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

/// Alternatives that declared order may multiply out; beyond, the order of that object is free.
pub(super) const MAX_ORDERS: usize = 1_024;
/// The order of a frame without one.
pub(super) const FREE: u32 = 0;

/// The number of what a context stands in; of which table, its place says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FrameId(u32);

impl FrameId {
    pub const NONE: Self = FrameId(0);
}

macro_rules! tables {
    ($($(#[$doc:meta])* $id:ident: $table:ident, $add:ident($item:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) struct $id(u32);

        impl From<$id> for FrameId {
            fn from(id: $id) -> Self {
                FrameId(id.0)
            }
        }

        impl Index<$id> for Frames {
            type Output = $item;

            fn index(&self, id: $id) -> &$item {
                &self.$table[id.0 as usize]
            }
        }

        impl Frames {
            pub fn $add(&mut self, item: $item) -> $id {
                $id(self.$table.intern(item))
            }
        }
    )*};
}

tables! {
    /// The number of a list of goals.
    GoalsId: goals, goals_of(Box<[ValId]>);
    /// The number of a list that says which goal each language of a scalar is of.
    MapId: maps, map(Box<[u32]>);
    ObjectFrameId: objects, object(ObjectFrame);
    ArrayFrameId: arrays, array(Box<[(u32, ArrId)]>);
    ReturnFrameId: return_frames, return_frame(ReturnFrame);
    /// The number of a text that is remembered.
    RecordId: records, record(Box<[u8]>);
}

impl RecordId {
    /// Nothing is remembered.
    pub const NONE: Self = RecordId(0);
    /// The item holds a text which no remembered item has.
    pub const OTHER: Self = RecordId(1);

    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Whether the text itself is known.
    pub fn holds_text(self) -> bool {
        self.0 > Self::OTHER.0
    }
}

impl Context {
    pub fn goals(&self) -> GoalsId {
        debug_assert!(matches!(self.phase, ParserPhase::Root | ParserPhase::Value | ParserPhase::Item));
        GoalsId(self.frame.0)
    }

    /// Of a scalar.
    pub fn map(&self) -> MapId {
        debug_assert!(self.phase == ParserPhase::Scalar);
        MapId(self.frame.0)
    }

    pub fn object(&self) -> ObjectFrameId {
        use ParserPhase::{Key, ObjectAfter, ObjectNext, ObjectStart};
        debug_assert!(matches!(self.phase, ObjectStart | Key | ObjectNext | ObjectAfter));
        ObjectFrameId(self.frame.0)
    }

    pub fn array(&self) -> ArrayFrameId {
        debug_assert!(matches!(self.phase, ParserPhase::ArrayStart | ParserPhase::ArrayAfter));
        ArrayFrameId(self.frame.0)
    }

    pub fn return_frame(&self) -> ReturnFrameId {
        debug_assert!(matches!(
            self.phase,
            ParserPhase::Colon | ParserPhase::ReturnObject | ParserPhase::ReturnArray
        ));
        ReturnFrameId(self.frame.0)
    }
}

/// What tells which keys an alternative would refuse for good: its order, the least rank, atoms that refuse keys.
pub(super) type RefusedKeys = (u32, u32, Box<[ObjId]>);

#[derive(Default)]
pub(super) struct Frames {
    pub contexts: Interner<Context>,
    /// Lists of goals, and of positions of a tuple.
    goals: Interner<Box<[ValId]>>,
    maps: Interner<Box<[u32]>>,
    objects: Interner<ObjectFrame>,
    arrays: Interner<Box<[(u32, ArrId)]>>,
    return_frames: Interner<ReturnFrame>,
    pub orders: Interner<Box<[NameId]>>,
    pub ranks: Vec<FxHashMap<NameId, u32>>,
    records: Interner<Box<[u8]>, Keyed>,
    /// What tells which used keys could come again.
    pub refusals: Interner<Box<[RefusedKeys]>>,
}

impl Frames {
    pub fn new() -> Self {
        Frames {
            orders: Interner::from_iter([Box::default()]),
            ranks: vec![FxHashMap::default()],
            // the second is the record of [`RecordId::OTHER`]: no text is like it
            records: Interner::from_iter([Box::from([]), Box::from([0])]),
            ..Frames::default()
        }
    }
}

heap_size::plain!(Context);

heap_size::owned!(ObjectFrame, this => heap_size::slice(&this.alternatives));

heap_size::owned!(ReturnFrame, this => heap_size::slice(&this.goals)
+ match &this.branches {
    Branches::Object(list) => heap_size::slice(list),
    Branches::Array(list) => heap_size::slice(list),
});

impl Frames {
    /// The keys that an alternative has left.
    pub fn keys(&self, a: &Alternative, used: KeySet) -> Keys<'_> {
        let order = (a.order != FREE).then(|| (&self.ranks[a.order as usize], a.from));
        Keys { used, order, next: None }
    }

    /// The number of a list that was met before.
    pub fn known_goals(&self, goals: &[ValId]) -> Option<GoalsId> {
        self.goals.get_index_of(goals).map(|i| GoalsId(i as u32))
    }

    pub fn bytes(&self) -> usize {
        // the ranks of an order take four times what it takes
        let ranks: usize = self.orders.iter().map(|order| 4 * heap_size::slice(order)).sum();
        heap_size::bytes!(self: contexts, goals, maps, objects, arrays, return_frames, orders, records, refusals)
            + ranks
    }
}
