//! The derivative of a formula over objects by a key.
//!
//! Purpose: what each atom says of the value of a key, and what is left of it; [`super::branches`] puts them together.
//! Complexity: the patterns of a shape. Memory: whether rests can be satisfied is remembered.

use super::decide::Leaf;
use super::object::{Obj, ObjId, ShapeId};
use super::value::ExprId;
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
    pub(crate) fn shape_key(&mut self, s: ShapeId, key: &Key) -> ExprId {
        crate::work::spend(1);
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
        let mut parts: Vec<ExprId> = named.into_iter().collect();
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
        self.and(&parts)
    }

    /// Branches (value, rest) of a formula when a property with this key is read.
    pub(crate) fn read_key(&mut self, o: ObjId, key: &Key) -> Vec<(ExprId, ObjId)> {
        self.branches(o, Some(key))
    }

    /// What an atom says of the value of this key.
    pub(super) fn object_leaf(&mut self, o: ObjId, key: &Key) -> Leaf<ObjId> {
        crate::work::spend(10);
        match self.object(o).clone() {
            Obj::Shape(s) => Leaf::asks(self.shape_key(s, key), o),
            Obj::NotShape(s) => {
                let sub = self.shape_key(s, key);
                let when_true = match key {
                    Key::Name(name) => self.violated_later(s, *name),
                    Key::Cell(_) => o,
                };
                Leaf { sub, when_true, when_false: ObjId::TRUE, regardless: Some(when_true) }
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
            Obj::Distinct(apart) => self.distinct_leaf(apart, key),
            Obj::True | Obj::False | Obj::And(_) | Obj::Or(_) => Leaf::sure(o),
        }
    }

    /// Whether an expression says nothing of what is inside arrays and objects.
    pub(super) fn is_flat(&mut self, sub: ExprId) -> bool {
        let v = self.compile_or_refuse(sub);
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
        let left = |list: &[(NameId, ExprId)]| -> Vec<(NameId, ExprId)> {
            list.iter().map(|&(n, sub)| (n, if n == name { ExprId::TRUE } else { sub })).collect()
        };
        let props = left(&shape.props);
        // the key stays named, so that it does not fall to `rest`
        let rest = self.shape_atom(props, shape.patterns.to_vec(), shape.rest, None, shape.node);
        self.not(rest)
    }

    /// Whether an object of its own could satisfy the formula; memoised.
    pub(crate) fn rest_is_live(&mut self, o: ObjId) -> bool {
        if let Some(&known) = self.answers.rests.get(&o) {
            return known;
        }
        let answer = self.object_is_live(o, &super::live::Keys::all());
        // a "no" inside another question may rest on what that question assumes
        if answer || !self.is_asking() {
            self.answers.rests.insert(o, answer);
        }
        answer
    }
}

/// Named keys up to which a violated shape is written anew when one of them was read.
const FEW_PROPS: usize = 32;
