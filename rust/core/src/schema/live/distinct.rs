//! Satisfiability of objects that must differ from others: a key with more values than there are of those is enough;
//! else the values are tried, and then one key more.

use super::object::{Conjunction, Keys};
use crate::schema::by_key::Key;
use crate::schema::distinct::{Distinct, Phase};
use crate::schema::document::JsonNodeId;
use crate::schema::key_sets::KeySet;
use crate::schema::value::{ExprId, SchemaExpr};
use crate::schema::{count_step, NameId, Schema};

/// Keys that were chosen, each with what its value must satisfy.
type ChosenKeys = Vec<(NameId, ExprId)>;

impl Schema {
    /// An object of the chosen keys and as many more as the count asks for, or as it takes to differ from all that the
    /// conjunction tells it apart from.
    pub(super) fn find_distinct(
        &mut self,
        conj: &Conjunction,
        chosen: ChosenKeys,
        keys: &Keys,
    ) -> Option<ChosenKeys> {
        let filled = self.fill(conj, chosen.clone(), keys)?;
        // a value that is read later is not known yet
        let told = |a: &&Distinct| !matches!(a.phase, Phase::At(_));
        let list: Vec<Distinct> = conj.apart.iter().filter(told).copied().collect();
        if list.is_empty() {
            return Some(filled);
        }
        self.distinct_values(&list, &filled).or_else(|| {
            stacker::maybe_grow(64 << 10, 1 << 20, || self.distinct_object(conj, &list, chosen, keys, 0))
        })
    }

    /// `from`: the first of the keys that shapes name which may be added.
    fn distinct_object(
        &mut self,
        conj: &Conjunction,
        list: &[Distinct],
        chosen: ChosenKeys,
        keys: &Keys,
        from: usize,
    ) -> Option<ChosenKeys> {
        count_step();
        if chosen.len() > conj.hi as usize {
            return None;
        }
        if chosen.len() >= conj.lo as usize {
            if let Some(found) = self.distinct_values(list, &chosen) {
                return Some(found);
            }
        }
        for (i, name) in self.named(conj).into_iter().enumerate().skip(from) {
            if chosen.iter().any(|c| c.0 == name) || !self.may_add(conj, name, keys) {
                continue;
            }
            let sub = self.value_at(&conj.shapes, &Key::Name(name));
            if self.sub_is_live(sub) {
                let more = chosen.iter().copied().chain([(name, sub)]).collect();
                if let Some(found) = self.distinct_object(conj, list, more, keys, i + 1) {
                    return Some(found);
                }
            }
        }
        for (cell, term) in self.cells(conj).iter().map(|c| (&c.0, c.1)) {
            let sub = self.value_at(&conj.shapes, &Key::Cell(cell));
            if !self.sub_is_live(sub) {
                continue;
            }
            let Some(name) = self.fresh(conj, term, &chosen, keys) else { continue };
            let more = chosen.iter().copied().chain([(name, sub)]).collect();
            // named keys come before others, so that no set of keys is tried twice
            if let Some(found) = self.distinct_object(conj, list, more, keys, usize::MAX) {
                return Some(found);
            }
        }
        None
    }

    /// Values of exactly these keys that no object of the sets has.
    fn distinct_values(&mut self, list: &[Distinct], chosen: &ChosenKeys) -> Option<ChosenKeys> {
        let new = |this: &Self, a: &Distinct, name| {
            !this.key_sets.intersects(a.items, this.remembered.with_key(name))
        };
        let list: Vec<Distinct> =
            list.iter().filter(|a| !chosen.iter().any(|c| new(self, a, c.0))).copied().collect();
        let size: usize = list.iter().map(|a| self.key_sets.len(a.items)).sum();
        if list.is_empty() {
            return Some(chosen.clone());
        }
        for at in 0..chosen.len() {
            let (name, sub) = chosen[at];
            if self.has_more(sub, size) {
                let mut parts = vec![sub];
                parts.extend(list.iter().map(|a| self.sub(SchemaExpr::Differs(a.items, name))));
                let mut found = chosen.clone();
                found[at].1 = self.and(&parts);
                return Some(found);
            }
        }
        if list.iter().any(|a| a.phase == Phase::Whatever) {
            return None;
        }
        let mut alike = Vec::new();
        for a in &list {
            let size = self.remembered.of_size(self.key_sets.len(a.read) + chosen.len());
            let mut items = self.key_sets.intersection(a.items, size);
            for &(name, _) in chosen {
                items = self.key_sets.intersection(items, self.remembered.with_key(name));
            }
            alike.push(items);
        }
        let mut found = chosen.clone();
        self.other_values(&alike, &mut found, 0, size).then_some(found)
    }

    /// Whether an expression has more than so many values.
    fn has_more(&mut self, sub: ExprId, count: usize) -> bool {
        // few different limits, since each that is larger is counted anew
        let limit = (count + 1).next_power_of_two();
        self.finite_values(sub, limit).is_none_or(|values| values.len() > count)
    }

    /// Chooses values from the i-th key on, so that no object is left that has all of them.
    fn other_values(&mut self, alike: &[KeySet], chosen: &mut ChosenKeys, i: usize, most: usize) -> bool {
        crate::work::spend(4);
        if alike.iter().all(|&items| items == KeySet::EMPTY) {
            return true;
        }
        let Some(&(name, sub)) = chosen.get(i) else { return false };
        let values: Vec<JsonNodeId> = self.listed(sub, most).unwrap_or_default();
        for value in values {
            let same = self.remembered.with_value(name, value);
            let left: Vec<KeySet> =
                alike.iter().map(|&items| self.key_sets.intersection(items, same)).collect();
            chosen[i].1 = self.sub(SchemaExpr::Const(value));
            if self.other_values(&left, chosen, i + 1, most) {
                return true;
            }
        }
        chosen[i].1 = sub;
        false
    }

    pub(super) fn may_add(&self, conj: &Conjunction, name: NameId, keys: &Keys) -> bool {
        keys.allow(&self.key_sets, name) && !conj.absent.contains(&name)
    }
}
