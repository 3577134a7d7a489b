//! The contexts, frames and lists of goals that texts have reached, each kept once, and what the machine holds in bytes.
//!
//! Invariant: equal contexts have equal numbers, so that a context is compared by its number; a table only grows, and the
//! first order and the first two records are constants.
//! Complexity: a hash for each that is made. Memory: what live texts have reached; [`JsonMachine::bytes_held`] counts it,
//! and an automaton past its budget begins anew.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{object, JsonMachine, Node, ObjectFrame, Pending};
use crate::hash::Keyed;
use crate::held::{self, Boxed};
use crate::schema::{ArrId, NameId, ValId};

pub(super) struct Frames {
    pub nodes: IndexSet<Node, FxBuildHasher>,
    /// Lists of goals, and of positions of a tuple.
    pub goals: IndexSet<Box<[ValId]>, FxBuildHasher>,
    pub maps: IndexSet<Box<[u32]>, FxBuildHasher>,
    pub objects: IndexSet<ObjectFrame, FxBuildHasher>,
    pub arrays: IndexSet<Box<[(u32, ArrId)]>, FxBuildHasher>,
    pub pendings: IndexSet<Pending, FxBuildHasher>,
    pub orders: IndexSet<Box<[NameId]>, FxBuildHasher>,
    pub ranks: Vec<FxHashMap<NameId, u32>>,
    pub records: IndexSet<Box<[u8]>, Keyed>,
    /// What tells which used keys could come again.
    pub forgetful: IndexSet<Box<[object::Refusals]>, FxBuildHasher>,
    counted: Counted,
}

/// What was counted of contents in boxes.
#[derive(Default)]
struct Counted {
    goals: Boxed,
    maps: Boxed,
    objects: Boxed,
    arrays: Boxed,
    pendings: Boxed,
    orders: Boxed,
    records: Boxed,
    forgetful: Boxed,
}

impl Default for Frames {
    fn default() -> Self {
        Frames {
            nodes: IndexSet::default(),
            goals: IndexSet::default(),
            maps: IndexSet::default(),
            objects: IndexSet::default(),
            arrays: IndexSet::default(),
            pendings: IndexSet::default(),
            orders: IndexSet::from_iter([Box::default()]),
            ranks: vec![FxHashMap::default()],
            // the second is the record of [`JsonMachine::OTHER`]: no text is like it
            records: IndexSet::from_iter([Box::from([]), Box::from([0])]),
            forgetful: IndexSet::default(),
            counted: Counted::default(),
        }
    }
}

impl Frames {
    fn bytes(&mut self) -> usize {
        let c = &mut self.counted;
        let boxed = c.goals.count(&self.goals, |g| held::slice(g))
            + c.maps.count(&self.maps, |m| held::slice(m))
            + c.objects.count(&self.objects, |o| held::slice(&o.alternatives))
            + c.arrays.count(&self.arrays, |a| held::slice(a))
            + c.pendings.count(&self.pendings, |p| held::slice(&p.goals) + held::slice(&p.branches))
            // an order and its ranks
            + c.orders.count(&self.orders, |o| 5 * held::slice(o))
            + c.records.count(&self.records, |r| held::slice(r))
            + c.forgetful.count(&self.forgetful, |f| held::slice(f));
        boxed
            + held::set(&self.nodes)
            + held::set(&self.goals)
            + held::set(&self.maps)
            + held::set(&self.objects)
            + held::set(&self.arrays)
            + held::set(&self.pendings)
            + held::set(&self.records)
            + held::set(&self.forgetful)
    }
}

impl JsonMachine {
    /// Bytes of contexts, frames and what is remembered of them, the schema's included.
    pub(super) fn bytes_held(&mut self) -> usize {
        self.frames.bytes()
            + self.answers.bytes()
            + self.alike.bytes()
            + held::map(&self.tails)
            // pieces of ways are short
            + 64 * self.tails.len()
            + self.schema.bytes()
    }
}
