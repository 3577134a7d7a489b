//! The derivative of a formula over objects by a key.
//!
//! Reading a key turns a formula into branches "the value satisfies S, the rest of the object R".
//! Complexity: a conjunction multiplies the branches of its parts, up to [`MAX_BRANCHES`]; those that no value can
//! take are sought from [`PRUNE_FROM`] on.

use super::decide::Leaf;
use super::object::{Obj, ObjId, ShapeId};
use super::value::SubId;
use super::{ArrId, NameId, Schema};
use crate::lexical::TermId;

/// A key: a text, or all texts of a class that the formula can't tell apart.
pub enum Key<'a> {
    Name(NameId),
    /// Which of these patterns match; named by no shape.
    Cell(&'a [(TermId, bool)]),
}

impl Schema {
    /// What the shape asks of the value of a key.
    pub(crate) fn shape_key(&mut self, s: ShapeId, key: &Key) -> SubId {
        let shape = &self.arenas.shapes[s.0 as usize];
        let named = match key {
            Key::Name(name) => {
                shape.sorted.binary_search_by_key(name, |p| p.0).ok().map(|i| shape.sorted[i].1)
            }
            Key::Cell(_) => None,
        };
        if shape.patterns.is_empty() {
            return named.unwrap_or(shape.rest);
        }
        let (patterns, rest) = (shape.patterns.clone(), shape.rest);
        let mut parts: Vec<SubId> = named.into_iter().collect();
        let mut declared = named.is_some();
        for (pattern, sub) in patterns.iter() {
            let matches = match key {
                Key::Name(name) => self.key_matches(*pattern, *name),
                Key::Cell(cell) => cell.iter().any(|c| c.0 == *pattern && c.1),
            };
            if matches {
                declared = true;
                parts.push(*sub);
            }
        }
        if !declared {
            return rest;
        }
        self.and_subs(&parts)
    }

    /// Branches (value, rest) of a formula when a property with this key is read.
    pub(crate) fn read_key(&mut self, o: ObjId, key: &Key) -> Vec<(SubId, ObjId)> {
        self.decide(o, Some(key)).unwrap_or_else(|| self.multiply(o, key, &mut Known::default()))
    }

    /// What an atom says of the value of this key.
    pub(super) fn object_leaf(&mut self, o: ObjId, key: &Key) -> Leaf<ObjId> {
        crate::work::spend(10);
        match self.object(o).clone() {
            Obj::Shape(s) => Leaf::asks(self.shape_key(s, key), o),
            Obj::NotShape(s) => {
                let sub = self.shape_key(s, key);
                let held = match key {
                    Key::Name(name) => self.violated_later(s, *name),
                    Key::Cell(_) => o,
                };
                Leaf { sub, held, failed: ObjId::TRUE, always: Some(held) }
            }
            Obj::Required(names) => match key {
                Key::Name(name) if names.binary_search(name).is_ok() => {
                    Leaf::sure(self.required(names.iter().copied().filter(|n| n != name).collect()))
                }
                _ => Leaf::sure(o),
            },
            Obj::Absent(name) => match key {
                Key::Name(n) if *n == name => Leaf::sure(ObjId::FALSE),
                _ => Leaf::sure(o),
            },
            Obj::Count(_, 0) => Leaf::sure(ObjId::FALSE),
            Obj::Count(lo, hi) => {
                let hi = if hi == u32::MAX { hi } else { hi - 1 };
                Leaf::sure(self.count(lo.saturating_sub(1), hi))
            }
            Obj::Apart(apart) => self.apart_leaf(apart, key),
            Obj::True | Obj::False | Obj::And(_) | Obj::Or(_) => Leaf::sure(o),
        }
    }

    /// The branches, with disjunctions multiplied out.
    fn multiply(&mut self, o: ObjId, key: &Key, known: &mut Known) -> Vec<(SubId, ObjId)> {
        if let Some(found) = known.get(&o) {
            return found.clone();
        }
        match self.object(o).clone() {
            Obj::And(list) => self.multiply_conjunction(&list, key, known),
            Obj::Or(list) => {
                let mut out = Vec::new();
                for &part in list.iter() {
                    out.extend(self.multiply_part(part, key, known));
                }
                self.merge_branches(out)
            }
            _ => {
                let mut leaf = self.object_leaf(o, key);
                // branches that exclude each other where that is cheap to say: a discriminator then leaves one
                // branch for each of its values instead of one for each set of them
                if leaf.always.is_some() && self.is_flat(leaf.sub) {
                    leaf.always = None;
                }
                self.leaf_branches(leaf)
            }
        }
    }

    /// The branches of a part, which the formula may hold more than once.
    fn multiply_part(&mut self, o: ObjId, key: &Key, known: &mut Known) -> Vec<(SubId, ObjId)> {
        let found = stacker::maybe_grow(64 << 10, 1 << 20, || self.multiply(o, key, known));
        if matches!(self.object(o), Obj::And(_) | Obj::Or(_)) {
            known.insert(o, found.clone());
        }
        found
    }

    /// Whether an expression says nothing of what is inside arrays and objects.
    fn is_flat(&mut self, sub: SubId) -> bool {
        let v = self.compile_or_none(sub);
        let value = self.value(v);
        let (arr, obj) = (value.arr, value.obj);
        (arr == ArrId::TRUE || arr == ArrId::FALSE) && (obj == ObjId::TRUE || obj == ObjId::FALSE)
    }

    /// "Some property does not" once a named key was read: it can't come again, so it violates nothing more.
    fn violated_later(&mut self, s: ShapeId, name: NameId) -> ObjId {
        let shape = self.shape(s);
        let found = shape.sorted.binary_search_by_key(&name, |p| p.0).is_ok();
        if !found || shape.props.len() > FEW_PROPS {
            return self.obj(Obj::NotShape(s));
        }
        let shape = shape.clone();
        let left = |list: &[(NameId, SubId)]| -> Vec<(NameId, SubId)> {
            list.iter().map(|&(n, sub)| (n, if n == name { SubId::TRUE } else { sub })).collect()
        };
        let props = left(&shape.props);
        // the key stays named, so that it does not fall to `rest`
        let rest = self.shape_atom(props, shape.patterns.to_vec(), shape.rest, None, shape.node);
        self.not_object(rest)
    }

    fn multiply_conjunction(&mut self, list: &[ObjId], key: &Key, known: &mut Known) -> Vec<(SubId, ObjId)> {
        if self.late() {
            return Vec::new();
        }
        // parts with one branch are joined first; only the others multiply
        let mut subs = Vec::new();
        let mut rests = Vec::new();
        let mut several: Vec<Vec<(SubId, ObjId)>> = Vec::new();
        for &part in list {
            let branches = self.multiply_part(part, key, known);
            match branches.len() {
                0 => return Vec::new(),
                1 => {
                    subs.push(branches[0].0);
                    rests.push(branches[0].1);
                }
                _ => several.push(branches),
            }
        }
        let mut out = vec![(self.and_subs(&subs), self.and_objects(&rests))];
        for branches in several {
            if out.len() * branches.len() > MAX_BRANCHES {
                self.too_many_branches();
                return Vec::new();
            }
            let mut next = Vec::with_capacity(out.len() * branches.len());
            for &(s, r) in &out {
                for &(t, q) in &branches {
                    if self.late() {
                        return Vec::new();
                    }
                    let both = (self.and_subs(&[s, t]), self.and_objects(&[r, q]));
                    if both.0 != SubId::FALSE && both.1 != ObjId::FALSE {
                        next.push(both);
                    }
                }
            }
            out = self.merge_branches(next);
            if out.len() > PRUNE_FROM {
                out = self.condense(out);
            }
        }
        out
    }

    /// Branches whose values or rests nothing can be are dropped, and those with equal values joined: "is a, and
    /// not b" equals "is a" once it is looked into, so discriminated branches collapse before they multiply.
    fn condense(&mut self, list: Vec<(SubId, ObjId)>) -> Vec<(SubId, ObjId)> {
        let mut by_value: indexmap::IndexMap<super::ValId, (SubId, Vec<ObjId>)> = Default::default();
        for (sub, rest) in list {
            let v = self.compile_or_none(sub);
            if self.is_live(v) && self.rest_is_live(rest) {
                by_value.entry(v).or_insert((sub, Vec::new())).1.push(rest);
            }
        }
        by_value.into_values().map(|(sub, rests)| (sub, self.or_objects(&rests))).collect()
    }

    /// Whether an object of its own could satisfy the formula; memoised.
    fn rest_is_live(&mut self, o: ObjId) -> bool {
        if let Some(&known) = self.answers.rests.get(&o) {
            return known;
        }
        let answer = self.object_is_live(o, &super::live::Keys::all());
        // a "no" inside another question may rest on what that question assumes
        if self.error.is_none() && (answer || self.answers.asking.is_empty()) {
            self.answers.rests.insert(o, answer);
        }
        answer
    }

    pub(crate) fn too_many_branches(&mut self) {
        self.error.get_or_insert_with(|| {
            crate::Error::limit(format!(
                "one property or item has more than {MAX_BRANCHES} ways to satisfy the schema; simplify its anyOf/oneOf"
            ))
        });
    }

    /// Branches with the same rest are one; so are those with the same value.
    fn merge_branches(&mut self, list: Vec<(SubId, ObjId)>) -> Vec<(SubId, ObjId)> {
        if list.len() < 2 {
            return list;
        }
        let mut by_rest: indexmap::IndexMap<ObjId, Vec<SubId>> = Default::default();
        for (s, r) in list {
            by_rest.entry(r).or_default().push(s);
        }
        let mut by_sub: indexmap::IndexMap<SubId, Vec<ObjId>> = Default::default();
        for (r, subs) in by_rest {
            let s = self.or_subs(&subs);
            by_sub.entry(s).or_default().push(r);
        }
        by_sub.into_iter().map(|(s, rests)| (s, self.or_objects(&rests))).collect()
    }
}

/// The branches of parts of one formula.
type Known = rustc_hash::FxHashMap<ObjId, Vec<(SubId, ObjId)>>;

/// Branches from which on those that no value can take are sought before more are multiplied in.
pub const PRUNE_FROM: usize = 24;

/// Named keys up to which a violated shape is written anew when one of them was read.
const FEW_PROPS: usize = 32;

/// Ways that one value may combine with the rest of its object or array.
pub const MAX_BRANCHES: usize = 4096;
