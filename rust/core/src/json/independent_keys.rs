//! Objects whose keys do not depend on each other: which of them may come is counted, not searched for.
//!
//! Invariant: the answers are those of a search.  Complexity: the keys that the object names.  Memory: none is kept.

use super::{Alternative, JsonMachine};
use crate::lexical::Terms;
use crate::schema::by_key::Key;
use crate::schema::key_sets::KeySet;
use crate::schema::{ExprId, NameId, Simple};

/// The atoms of an alternative whose keys are counted, with the room that its count needs.
pub(super) type CountedKeys = Option<(Simple, Option<RemainingKeys>)>;

/// The keys that may still come, for a count that must be reached.
pub(super) struct RemainingKeys {
    /// Ranks of the declared ones, sorted.
    ranks: Vec<u32>,
    /// Named keys without a rank.
    unranked: usize,
    /// Keys that nobody names may come too.
    unnamed: bool,
}

impl RemainingKeys {
    /// Keys that may follow one after which `from` is the least rank.
    fn after(&self, from: u32, ranked: bool) -> usize {
        let later = self.ranks.len() - self.ranks.partition_point(|&rank| rank < from);
        match self.unnamed {
            true => usize::MAX,
            false => later + self.unranked - !ranked as usize,
        }
    }
}

impl JsonMachine {
    /// The alternative's atoms, with the room that its count needs; `None` where keys depend on each other, or the
    /// room can't be counted.
    pub(super) fn simple(
        &mut self,
        a: &Alternative,
        names: &[NameId],
        used: KeySet,
        plain: bool,
    ) -> CountedKeys {
        let mut simple = self.schema.simple_parts(a.formula)?;
        let ranks = &self.frames.ranks[a.order as usize];
        simple.due = simple.required.iter().filter_map(|name| ranks.get(name).copied()).collect();
        simple.due.sort_unstable();
        // the key that is read counts as one
        if simple.least < 2 {
            return Some((simple, None));
        }
        if !plain || self.schema.patterns.guard != Terms::ALL {
            return None;
        }
        let unnamed = self.value_is_live(&simple, &Key::Cell(&[]));
        let (mut ranks, mut unranked) = (Vec::new(), 0);
        for &name in names {
            let open =
                !self.schema.key_sets.contains(used, name) && simple.absent.binary_search(&name).is_err();
            if open && self.value_is_live(&simple, &Key::Name(name)) {
                match self.frames.ranks[a.order as usize].get(&name) {
                    Some(&rank) => ranks.extend((rank >= a.from).then_some(rank)),
                    None => unranked += 1,
                }
            }
        }
        ranks.sort_unstable();
        Some((simple, Some(RemainingKeys { ranks, unranked, unnamed })))
    }

    /// Whether the alternative lives on after this key, where `from` is then the least rank.
    pub(super) fn is_live_after_key(
        &mut self,
        a: &Alternative,
        (simple, room): &(Simple, Option<RemainingKeys>),
        key: &Key,
        name: Option<NameId>,
        from: u32,
    ) -> bool {
        if name.is_some_and(|n| simple.absent.binary_search(&n).is_ok()) {
            return false;
        }
        let ranks = &self.frames.ranks[a.order as usize];
        let required = name.filter(|n| simple.required.binary_search(n).is_ok());
        let own = required.is_some() as usize;
        // the key itself is no longer due
        let read = required.and_then(|n| ranks.get(&n)).is_some_and(|&rank| rank < from) as usize;
        if simple.due.partition_point(|&rank| rank < from) > read
            || simple.required.len() + 1 - own > simple.most as usize
        {
            return false;
        }
        let ranked = name.is_none_or(|n| ranks.contains_key(&n));
        self.value_is_live(simple, key)
            && room
                .as_ref()
                .is_none_or(|room| room.after(from, ranked).saturating_add(1) >= simple.least as usize)
    }

    fn value_is_live(&mut self, simple: &Simple, key: &Key) -> bool {
        let subs: Vec<ExprId> = simple.shapes.iter().map(|&s| self.schema.shape_key(s, key)).collect();
        let sub = self.schema.and(&subs);
        self.schema.sub_is_live(sub)
    }
}
