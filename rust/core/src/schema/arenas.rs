//! The arenas of formulas: each formula that was met, once, and their bytes.
//!
//! Invariant: equal formulas have equal numbers, so that a formula is compared by its number; an arena only grows, and
//! the first numbers of each are constants (true, false, the empty list), see [`Schema::reserve`].
//! Complexity: a hash for each formula that is made. Memory: what the schema's parts and their combinations need that
//! texts have reached; [`Schema::bytes`] counts it, and the limits of the automaton bound it.

use super::formula::Formulas;
use super::{Arr, ArrId, ExprId, Obj, ObjId, Schema, SchemaExpr, Shape, Value};
use crate::hash::Keyed;
use crate::heap_size::{self, Interner};

#[derive(Default)]
pub(crate) struct Arenas {
    pub names: Interner<Box<str>, Keyed>,
    pub subs: Interner<SchemaExpr, Keyed>,
    pub vals: Interner<Value, Keyed>,
    pub objs: Formulas<Obj, ObjId>,
    pub arrs: Formulas<Arr, ArrId>,
    pub shapes: Interner<Shape, Keyed>,
    pub lists: Interner<Box<[ExprId]>, Keyed>,
}

heap_size::plain!(Value);

heap_size::owned!(SchemaExpr, this => match this {
    SchemaExpr::And(xs) | SchemaExpr::Or(xs) => heap_size::slice(xs),
    _ => 0,
});

heap_size::owned!(Obj, this => match this {
    Obj::And(xs) | Obj::Or(xs) => heap_size::slice(xs),
    Obj::Required(names) => heap_size::slice(names),
    _ => 0,
});

heap_size::owned!(Arr, this => match this {
    Arr::And(xs) | Arr::Or(xs) => heap_size::slice(xs),
    _ => 0,
});

heap_size::owned!(Shape, this => 2 * heap_size::slice(&this.props) + heap_size::slice(&this.patterns));

heap_size::tables!(Arenas: names, subs, vals, objs, arrs, shapes, lists);

impl Schema {
    /// Bytes that the schema holds, its lexical arena included.
    pub(crate) fn bytes(&self) -> usize {
        heap_size::bytes!(self: arenas, compiled, patterns, answers, key_sets, remembered)
            + self.doc.bytes()
            + self.lexicon.bytes()
    }
}
