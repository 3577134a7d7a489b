//! Objects that must differ from others: the items of a unique array from those before them.
//!
//! A set of n objects written out is a conjunction of n disjunctions, and deciding that is a search.  Here it is one
//! atom: the objects that the one being read may still become, as a trie, and the keys that it has in common with
//! them.  A key keeps those that have it with the same value.  The value is known when it is complete; so a key has one
//! branch, however many objects are remembered.  Values after which the object could only become one of the set are
//! excluded beforehand ([`Schema::deciding_values`]).
//! Invariant: an object that is read to its end is never in the set: where nothing but the end would make it one,
//! the formula asks for one key more.
//! Complexity: a key costs the objects that agree with it so far, usually none after the first.
//! Memory: an entry for each key and value of the objects that were met.

use rustc_hash::{FxHashMap, FxHashSet};

use super::by_key::Key;
use super::decide::Leaf;
use super::document::{Json, JsonNodeId};
use super::formula::Formula;
use super::key_sets::KeySet;
use super::object::{Obj, ObjId};
use super::value::{ExprId, SchemaExpr, ValId};
use super::{NameId, Schema};
use crate::error::Result;
use crate::heap_size;

/// What is left of an object differs from what is left of each of these after the keys that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Distinct {
    /// Objects that have the keys that were read, with the same values, and others.
    pub items: KeySet,
    pub read: KeySet,
    pub phase: Phase,
}

/// How much of the next key is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nothing.
    Between,
    /// It was read; its value decides.
    At(NameId),
    /// Its value may be that of any of the objects.
    Whatever,
}

/// The objects that were met, by what they hold.
#[derive(Default)]
pub(crate) struct Remembered {
    known: FxHashSet<JsonNodeId>,
    with_key: FxHashMap<NameId, KeySet>,
    with_value: FxHashMap<(NameId, JsonNodeId), KeySet>,
    by_size: FxHashMap<usize, KeySet>,
    /// Different values of a key.
    values: FxHashMap<NameId, Vec<JsonNodeId>>,
    /// The objects of a set of values.
    objects: FxHashMap<KeySet, KeySet>,
}

heap_size::tables!(Remembered: with_key, with_value, by_size, objects;
    this => (this.known.capacity() + this.with_value.len()) * 8);

impl Remembered {
    pub(crate) fn with_key(&self, name: NameId) -> KeySet {
        self.with_key.get(&name).copied().unwrap_or(KeySet::EMPTY)
    }

    pub(crate) fn with_value(&self, name: NameId, value: JsonNodeId) -> KeySet {
        self.with_value.get(&(name, value)).copied().unwrap_or(KeySet::EMPTY)
    }

    pub(crate) fn of_size(&self, keys: usize) -> KeySet {
        self.by_size.get(&keys).copied().unwrap_or(KeySet::EMPTY)
    }
}

impl Schema {
    /// A set of values with one more.
    pub(crate) fn with_seen(&mut self, seen: KeySet, value: JsonNodeId) -> KeySet {
        self.note_object(value);
        self.key_sets.with(seen, NameId(value.0))
    }

    /// The values of a set.
    pub(crate) fn seen_values(&self, seen: KeySet) -> Vec<JsonNodeId> {
        let names = self.key_sets.names(seen);
        crate::work::spend(names.len() as u64);
        names.into_iter().map(|n| JsonNodeId(n.0)).collect()
    }

    /// Equal to one of the values.
    pub(crate) fn one_of(&mut self, seen: KeySet) -> ExprId {
        match seen {
            KeySet::EMPTY => ExprId::FALSE,
            _ => self.sub(SchemaExpr::Seen(seen)),
        }
    }

    fn note_object(&mut self, value: JsonNodeId) {
        let Json::Object(entries) = self.doc.get(value).clone() else { return };
        if !self.remembered.known.insert(value) {
            return;
        }
        let own = NameId(value.0);
        for (key, inner) in entries.iter() {
            let (name, inner) = (self.name(key), self.unique_constant(*inner));
            let before = self.remembered.with_value(name, inner);
            if before == KeySet::EMPTY {
                self.remembered.values.entry(name).or_default().push(inner);
            }
            let more = self.key_sets.with(before, own);
            self.remembered.with_value.insert((name, inner), more);
            let more = self.key_sets.with(self.remembered.with_key(name), own);
            self.remembered.with_key.insert(name, more);
        }
        let more = self.key_sets.with(self.remembered.of_size(entries.len()), own);
        self.remembered.by_size.insert(entries.len(), more);
    }

    /// The values that are none of these; from those of the set that it grew from, where that is known.
    pub(crate) fn none_of(&mut self, seen: KeySet) -> Result<ValId> {
        let is_object = |this: &Self, value: JsonNodeId| matches!(this.doc.get(value), Json::Object(_));
        let before = self.key_sets.parent(seen).filter(|&(_, last)| is_object(self, JsonNodeId(last.0)));
        let before = before.and_then(|(set, last)| {
            let sub = self.one_of(set);
            let sub = self.not_sub(sub);
            Some((*self.compiled.of.get(&sub)?, *self.remembered.objects.get(&set)?, last))
        });
        let (others, objects) = match before {
            Some((others, objects, last)) => (others, self.key_sets.with(objects, last)),
            None => {
                let values = self.seen_values(seen);
                let (objects, others): (Vec<JsonNodeId>, _) =
                    values.into_iter().partition(|&v| is_object(self, v));
                let others = self.one_of_constants(&others)?;
                let mut set = KeySet::EMPTY;
                for value in objects {
                    set = self.with_seen(set, value);
                }
                (self.not_value(others), set)
            }
        };
        self.remembered.objects.insert(seen, objects);
        let mut value = self.value(others).clone();
        value.obj = self.distinct(objects, KeySet::EMPTY);
        Ok(self.value_of(value))
    }

    /// What is left differs from what is left of each of these, after keys in which they agree.
    fn distinct(&mut self, items: KeySet, read: KeySet) -> ObjId {
        let whole = self.remembered.of_size(self.key_sets.len(read));
        let whole = self.key_sets.intersection(items, whole);
        let items = self.key_sets.difference(items, whole);
        let mut parts = Vec::new();
        if whole != KeySet::EMPTY {
            parts.push(self.count(1, u32::MAX));
        }
        if items != KeySet::EMPTY {
            parts.push(self.obj(Obj::Distinct(Distinct { items, read, phase: Phase::Between })));
        }
        self.and(&parts)
    }

    pub(super) fn distinct_leaf(&mut self, apart: Distinct, key: &Key) -> Leaf<ObjId> {
        match key {
            Key::Name(name) if self.key_sets.intersects(apart.items, self.remembered.with_key(*name)) => {
                Leaf::sure(self.obj(Obj::Distinct(Distinct { phase: Phase::At(*name), ..apart })))
            }
            _ => Leaf::sure(ObjId::TRUE),
        }
    }

    /// "Is one of these", written out.
    pub(super) fn not_distinct(&mut self, apart: Distinct) -> ObjId {
        let mut list = Vec::new();
        for item in self.seen_values(apart.items) {
            let Json::Object(entries) = self.doc.get(item).clone() else { continue };
            let mut props = Vec::new();
            for (key, value) in entries.iter() {
                let name = self.name(key);
                if !self.key_sets.contains(apart.read, name) {
                    props.push((name, self.constant_sub(*value)));
                }
            }
            let names = props.iter().map(|p| p.0).collect();
            let shape = self.shape_atom(props, Vec::new(), ExprId::FALSE, None, item);
            let required = self.required(names);
            list.push(self.and(&[shape, required]));
        }
        self.or(&list)
    }

    /// Whether the value that was just read decides about what is left.
    pub(crate) fn is_decided_by_value(&self, o: ObjId) -> bool {
        o.facts(self).decided_by_value
    }

    /// The formula after the value of a key; `None`: one that no object of the sets has.
    pub(crate) fn after_value(&mut self, o: ObjId, value: Option<JsonNodeId>) -> ObjId {
        self.decided_by_value(o, &mut |this, apart, name| {
            let Some(value) = value else { return ObjId::TRUE };
            let same = this.remembered.with_value(name, value);
            let items = this.key_sets.intersection(apart.items, same);
            let read = this.key_sets.with(apart.read, name);
            this.distinct(items, read)
        })
    }

    /// The formula before the value of a key, where it must not matter which of the objects' values that is.
    pub(crate) fn after_any_value(&mut self, o: ObjId) -> ObjId {
        self.decided_by_value(o, &mut |this, apart, _| {
            this.obj(Obj::Distinct(Distinct { phase: Phase::Whatever, ..apart }))
        })
    }

    fn decided_by_value(
        &mut self,
        o: ObjId,
        how: &mut dyn FnMut(&mut Self, Distinct, NameId) -> ObjId,
    ) -> ObjId {
        self.replaced(o, Self::is_decided_by_value, &mut |this, atom| match *this.object(atom) {
            Obj::Distinct(apart) => match apart.phase {
                Phase::At(name) => how(this, apart, name),
                Phase::Between | Phase::Whatever => atom,
            },
            _ => atom,
        })
    }

    /// The values that the objects of the sets have at the key that was read.
    pub(crate) fn deciding_values(&self, o: ObjId) -> Vec<JsonNodeId> {
        let mut out = Vec::new();
        for atom in self.atoms(o) {
            if let Obj::Distinct(Distinct { items, phase: Phase::At(name), .. }) = *self.object(atom) {
                out.extend(self.values_at(items, name));
            }
        }
        crate::lists::sort_unique(&mut out);
        out
    }

    /// The values of a key in the objects of a set.
    pub(super) fn values_at(&self, items: KeySet, name: NameId) -> Vec<JsonNodeId> {
        let Some(values) = self.remembered.values.get(&name) else { return Vec::new() };
        crate::work::spend(values.len() as u64);
        let in_set = |&&v: &&JsonNodeId| self.key_sets.intersects(items, self.remembered.with_value(name, v));
        values.iter().filter(in_set).copied().collect()
    }

    /// A value of this key that none of the objects has.
    pub(super) fn differs(&mut self, items: KeySet, name: NameId) -> Result<ValId> {
        let mut values = KeySet::EMPTY;
        for value in self.values_at(items, name) {
            values = self.with_seen(values, value);
        }
        let sub = self.one_of(values);
        let sub = self.not_sub(sub);
        self.compile(sub)
    }

    /// The keys in which the object may agree with one of the set.
    pub(super) fn distinct_names(&self, apart: Distinct) -> Vec<NameId> {
        let mut names: Vec<NameId> = self.remembered.with_key.keys().copied().collect();
        names.retain(|&n| {
            !self.key_sets.contains(apart.read, n)
                && self.key_sets.intersects(apart.items, self.remembered.with_key(n))
        });
        names.sort_unstable();
        names
    }
}
