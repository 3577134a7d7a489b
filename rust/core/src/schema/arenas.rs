//! The formulas that were met so far, each kept once, and what they hold in bytes.
//!
//! Invariant: equal formulas have equal numbers, so that a formula is compared by its number; an arena only grows, and
//! the first numbers of each are constants (true, false, the empty list), see [`Schema::reserve`].
//! Complexity: a hash for each formula that is made. Memory: what the schema's parts and their combinations need that
//! texts have reached; [`Schema::bytes`] counts it, and the limits of the automaton bound it.

use indexmap::IndexSet;
use rustc_hash::FxHashMap;

use super::object::Facts;
use super::{array, Arr, ArrId, ExprId, Obj, ObjId, Schema, SchemaExpr, Shape, Value};
use crate::hash::Keyed;
use crate::held::{self, Boxed};

#[derive(Default)]
pub(crate) struct Arenas {
    pub names: IndexSet<Box<str>, Keyed>,
    pub subs: IndexSet<SchemaExpr, Keyed>,
    pub vals: IndexSet<Value, Keyed>,
    pub objs: IndexSet<Obj, Keyed>,
    pub obj_facts: Vec<Facts>,
    /// Denials of formulas over objects and arrays.
    pub not_objs: FxHashMap<ObjId, ObjId>,
    pub not_arrs: FxHashMap<ArrId, ArrId>,
    pub arrs: IndexSet<Arr, Keyed>,
    pub arr_facts: Vec<array::Facts>,
    pub shapes: IndexSet<Shape, Keyed>,
    pub lists: IndexSet<Box<[ExprId]>, Keyed>,
    counted: Counted,
}

/// What was counted of contents in boxes.
#[derive(Default)]
struct Counted {
    names: Boxed,
    subs: Boxed,
    objs: Boxed,
    arrs: Boxed,
    shapes: Boxed,
    lists: Boxed,
}

impl Arenas {
    fn bytes(&mut self) -> usize {
        self.bytes_in_boxes()
            + held::set(&self.names)
            + held::set(&self.subs)
            + held::set(&self.vals)
            + held::set(&self.objs)
            + held::set(&self.arrs)
            + held::set(&self.shapes)
            + held::set(&self.lists)
            + held::map(&self.not_objs)
            + held::map(&self.not_arrs)
            + held::list(&self.obj_facts)
            + held::list(&self.arr_facts)
    }

    fn bytes_in_boxes(&mut self) -> usize {
        let c = &mut self.counted;
        c.names.count(&self.names, |name| held::slice(name.as_bytes()))
            + c.subs.count(&self.subs, |sub| match sub {
                SchemaExpr::And(xs) | SchemaExpr::Or(xs) => held::slice(xs),
                _ => 0,
            })
            + c.objs.count(&self.objs, |obj| match obj {
                Obj::And(xs) | Obj::Or(xs) => held::slice(xs),
                Obj::Required(names) => held::slice(names),
                _ => 0,
            })
            + c.arrs.count(&self.arrs, |arr| match arr {
                Arr::And(xs) | Arr::Or(xs) => held::slice(xs),
                _ => 0,
            })
            + c.shapes
                .count(&self.shapes, |shape| 2 * held::slice(&shape.props) + held::slice(&shape.patterns))
            + c.lists.count(&self.lists, |list| held::slice(list))
    }
}

impl Schema {
    /// Bytes that the schema holds, its lexical arena included.
    pub(crate) fn bytes(&mut self) -> usize {
        self.arenas.bytes()
            + self.compiled.bytes()
            + self.patterns.bytes()
            + self.answers.bytes()
            + self.doc.bytes()
            + self.key_sets.bytes()
            + self.remembered.bytes()
            + self.lexicon.bytes()
    }
}
