//! Which keys a formula over objects names, requires and refuses, as far as its form tells.
//!
//! Invariant: what is said is true of every object; "as far as its form tells" is less than the truth, never more.
//! Complexity: the parts of the formula, each once.  Memory: none of its own.

use rustc_hash::FxHashSet;

use super::formula::{Expression, Formula};
use super::object::Obj;
use super::value::ExprId;
use super::{NameId, ObjId, Schema, ShapeId};
use crate::lexical::TermId;

impl Schema {
    /// Whether some disjunction of the formula names keys for the declared order.
    pub(crate) fn branches_name_keys(&self, o: ObjId) -> bool {
        o.facts(self).branches
    }

    /// The atoms of a formula, each once, in the order of the text.
    pub(super) fn atoms(&self, o: ObjId) -> Vec<ObjId> {
        let Some((_, list)) = o.operands(self) else { return vec![o] };
        // operands are there once
        if list.iter().all(|x| x.operands(self).is_none()) {
            return list.to_vec();
        }
        let (mut out, mut todo) = (Vec::new(), vec![o]);
        let mut seen: FxHashSet<ObjId> = FxHashSet::default();
        while let Some(o) = todo.pop() {
            match self.object(o) {
                Obj::And(list) | Obj::Or(list) => {
                    todo.extend(list.iter().rev().copied().filter(|&x| !seen.contains(&x)));
                    seen.insert(o);
                }
                _ if seen.insert(o) => out.push(o),
                _ => {}
            }
        }
        out
    }

    /// The keys that the shapes of a conjunction declare, in the order of the text.
    pub(crate) fn names_in_order(&self, o: ObjId, out: &mut Vec<NameId>) {
        match self.object(o) {
            Obj::Shape(s) => {
                let shape = self.shape(*s);
                out.extend(shape.props[..shape.declared as usize].iter().map(|p| p.0))
            }
            Obj::And(list) => list.iter().for_each(|&x| self.names_in_order(x, out)),
            _ => {}
        }
    }

    /// Every key that the formula names in any way.
    pub(crate) fn all_names(&self, o: ObjId, out: &mut Vec<NameId>) {
        for atom in self.atoms(o) {
            match self.object(atom) {
                Obj::Shape(s) | Obj::NotShape(s) => out.extend(self.shape(*s).props.iter().map(|p| p.0)),
                Obj::Required(names) => out.extend(names.iter()),
                Obj::Absent(name) => out.push(*name),
                Obj::Distinct(apart) => out.extend(self.distinct_names(*apart)),
                _ => {}
            }
        }
    }

    pub(crate) fn all_patterns(&self, o: ObjId, out: &mut Vec<TermId>) {
        for atom in self.atoms(o) {
            if let Obj::Shape(s) | Obj::NotShape(s) = self.object(atom) {
                out.extend(self.shape(*s).patterns.iter().map(|p| p.0));
            }
        }
    }

    /// Whether a shape of the conjunction forbids the key outright, as far as that is plain to see.
    pub(crate) fn refuses_key(&self, o: ObjId, name: NameId) -> bool {
        match self.object(o) {
            Obj::Shape(s) => {
                let shape = self.shape(*s);
                match shape.sorted.binary_search_by_key(&name, |p| p.0) {
                    Ok(i) => shape.sorted[i].1 == ExprId::FALSE,
                    Err(_) => shape.rest == ExprId::FALSE && shape.patterns.is_empty(),
                }
            }
            Obj::Absent(n) => *n == name,
            Obj::And(list) => list.iter().any(|&x| self.refuses_key(x, name)),
            _ => false,
        }
    }

    /// The atoms that [`Schema::refuses_key`] looks at.
    pub(crate) fn refusing(&self, o: ObjId, out: &mut Vec<ObjId>) {
        match self.object(o) {
            Obj::Shape(_) | Obj::Absent(_) => out.push(o),
            Obj::And(list) => list.iter().for_each(|&x| self.refusing(x, out)),
            _ => {}
        }
    }

    /// The atoms of a conjunction of shapes, required and absent keys and a count; `None` for others.
    pub(crate) fn simple_parts(&self, o: ObjId) -> Option<Simple> {
        let parts = self.conjuncts(o);
        let mut simple = Simple {
            shapes: Vec::new(),
            required: Vec::new(),
            due: Vec::new(),
            absent: Vec::new(),
            least: 0,
            most: u32::MAX,
        };
        for part in parts {
            match self.object(part) {
                Obj::True => {}
                Obj::Shape(s) => simple.shapes.push(*s),
                Obj::Required(names) => simple.required = names.to_vec(),
                Obj::Absent(name) => simple.absent.push(*name),
                Obj::Count(lo, hi) => (simple.least, simple.most) = (*lo, *hi),
                _ => return None,
            }
        }
        simple.absent.sort_unstable();
        Some(simple)
    }
}

/// The atoms of such a formula: shapes, required and absent keys, bounds on the count.
pub(crate) struct Simple {
    pub shapes: Vec<ShapeId>,
    /// Sorted.
    pub required: Vec<NameId>,
    /// Ranks of those that the alternative's order names, sorted.
    pub due: Vec<u32>,
    /// Sorted.
    pub absent: Vec<NameId>,
    pub least: u32,
    pub most: u32,
}
