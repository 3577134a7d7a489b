//! What the machine holds, in bytes.

use super::JsonMachine;
use crate::held::{self, Boxed};

/// What was counted of contents in boxes.
#[derive(Default)]
pub(super) struct Counted {
    goals: Boxed,
    maps: Boxed,
    objects: Boxed,
    arrays: Boxed,
    pendings: Boxed,
    orders: Boxed,
    records: Boxed,
    forgetful: Boxed,
}

impl JsonMachine {
    /// Bytes of contexts, frames and what is remembered of them, the schema's included.
    pub(super) fn bytes_held(&mut self) -> usize {
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
        let interned = held::set(&self.nodes)
            + held::set(&self.goals)
            + held::set(&self.maps)
            + held::set(&self.objects)
            + held::set(&self.arrays)
            + held::set(&self.pendings)
            + held::set(&self.records)
            + held::set(&self.nears)
            + held::set(&self.forgetful);
        let known = held::map(&self.keys)
            + held::map(&self.pendings_of)
            + held::map(&self.kept)
            + held::map(&self.scalars)
            + held::map(&self.starts)
            + held::map(&self.closes)
            + held::map(&self.opened)
            + held::map(&self.white)
            + held::map(&self.generic)
            + held::map(&self.twins)
            + held::map(&self.nears_of)
            + held::map(&self.special)
            + held::map(&self.roomy)
            + held::map(&self.tails);
        // texts of remembered items and pieces of ways: short; a set's texts are those of its names
        let named: usize = self.named.keys().map(|names| 64 + 4 * names.len()).sum();
        let texts = 64 * (self.recalled.len() + self.tails.len()) + named;
        interned + boxed + known + texts + self.schema.bytes()
    }
}
