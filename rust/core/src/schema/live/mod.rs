//! Satisfiability: which formulas some value satisfies, and a short one that does.
//!
//! A least fixpoint over formulas, by depth-first search: a formula that is being asked about counts as
//! unsatisfiable where it is met again, so a schema that requires itself has no finite document.  "Yes" is
//! final at once (it rests on nothing provisional); "no" is final when nothing above it was assumed, and is
//! asked again otherwise.  A search ends with the call's work ([`crate::work`]): what is not decided by then fails the
//! call, since a guess would lead a text into a dead end.
//! Memory: an answer for each formula that was asked about.

mod array;
mod distinct;
pub(crate) mod finite;
pub(crate) mod object;
pub(crate) mod remaining_bound;
mod seen_items;
mod syntactic;
mod violated;
mod witness;

pub use object::Keys;
pub use witness::Witness;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::document::JsonNodeId;
use super::object::{Obj, ObjId};
use super::value::{ExprId, SchemaExpr, ValId};
use super::{ArrId, Schema};
use crate::heap_size;

/// What was found of formulas, and what is being asked.
#[derive(Default)]
pub(crate) struct LivenessMemos {
    lives: FxHashMap<ValId, bool>,
    /// Formulas that are being asked about, and how deep in the search.
    pub(super) asking: FxHashMap<ValId, usize>,
    /// The depth of the outermost formula that was met again, [`usize::MAX`] where none was; set as a question begins.
    lowest: usize,
    pub(super) rests: FxHashMap<ObjId, bool>,
    finite: FxHashMap<ExprId, finite::KnownValues>,
    /// The values of an item after which the rest of the array can be completed.
    completable: FxHashMap<(ExprId, ArrId), ExprId>,
    witnesses: FxHashMap<ValId, Option<Arc<Witness>>>,
    remaining_bound: remaining_bound::RemainingBounds,
}

heap_size::tables!(LivenessMemos: lives, rests, finite, completable, witnesses, remaining_bound;
    this => heap_size::bytes!(this: lives, rests, finite, completable, witnesses));

impl Schema {
    /// Whether some value satisfies the formula.
    pub fn is_live(&mut self, v: ValId) -> bool {
        if let Some(&known) = self.answers.lives.get(&v) {
            return known;
        }
        let value = self.value(v).clone();
        if value.consts != 0 || value.num || self.lexicon.terms.live(value.str) {
            self.answers.lives.insert(v, true);
            return true;
        }
        if let Some(&depth) = self.answers.asking.get(&v) {
            self.answers.lowest = self.answers.lowest.min(depth);
            return false;
        }
        let outermost = self.answers.asking.is_empty();
        let depth = self.answers.asking.len();
        self.answers.asking.insert(v, depth);
        let above = std::mem::replace(&mut self.answers.lowest, usize::MAX);
        let answer = stacker::maybe_grow(256 << 10, 4 << 20, || {
            self.array_is_live(value.arr) || self.object_is_live(value.obj, &Keys::all())
        });
        self.answers.asking.remove(&v);
        let final_no = self.answers.lowest >= depth;
        if answer || final_no {
            self.answers.lives.insert(v, answer);
        }
        self.answers.lowest = if answer || final_no { above } else { above.min(self.answers.lowest) };
        if outermost {
            self.answers.lowest = usize::MAX;
        }
        answer
    }

    /// Whether this is asked inside another question, so that a "no" may rest on what that one assumes.
    pub(super) fn is_asking(&self) -> bool {
        !self.answers.asking.is_empty()
    }

    pub(crate) fn sub_is_live(&mut self, s: ExprId) -> bool {
        if s == ExprId::TRUE {
            return true;
        }
        if let Some(&v) = self.compiled.of.get(&s) {
            return self.is_live(v);
        }
        if let SchemaExpr::Node(node, _) = self.arenas.subs[s.0 as usize] {
            if self.plainly_live(node) {
                return true;
            }
        }
        let v = self.compile_or_refuse(s);
        self.is_live(v)
    }

    /// Whether no value satisfies both, as far as it is seen without looking into nested schemas.
    pub(crate) fn provably_disjoint(&mut self, a: ValId, b: ValId) -> bool {
        let both = self.and_values(a, b);
        self.syntactically_empty(both, 3)
    }

    fn syntactically_empty(&mut self, v: ValId, depth: u32) -> bool {
        let value = self.value(v).clone();
        value.consts == 0
            && !value.num
            && !self.lexicon.terms.live(value.str)
            && value.arr == ArrId::FALSE
            && self.objects_clash(value.obj, depth)
    }

    /// A required key whose value nothing can be.
    fn objects_clash(&mut self, o: ObjId, depth: u32) -> bool {
        let parts = match self.object(o) {
            Obj::False => return true,
            Obj::And(list) if depth > 0 => list.to_vec(),
            _ => return false,
        };
        let mut names = Vec::new();
        let mut shapes = Vec::new();
        for part in parts {
            match self.object(part) {
                Obj::Required(list) => names.extend(list.iter().copied()),
                Obj::Shape(s) => shapes.push(*s),
                _ => {}
            }
        }
        names.into_iter().any(|name| {
            let subs: Vec<ExprId> =
                shapes.iter().map(|&s| self.shape_key(s, &super::by_key::Key::Name(name))).collect();
            let sub = self.and(&subs);
            match self.compile(sub) {
                Ok(v) => self.syntactically_empty(v, depth - 1),
                // met again while it is being compiled: nothing is known of it yet
                Err(_) => false,
            }
        })
    }

    /// The schema node that an unsatisfiable schema's error names.
    pub(crate) fn blame(&mut self, root: JsonNodeId) -> JsonNodeId {
        let mut at = root;
        for _ in 0..64 {
            let Some(next) = self.blame_step(at) else { return at };
            at = next;
        }
        at
    }

    fn blame_step(&mut self, at: JsonNodeId) -> Option<JsonNodeId> {
        let mut inner: Vec<JsonNodeId> = Vec::new();
        if let Some(required) = self.doc.key(at, "required") {
            let names: Vec<Box<str>> =
                self.doc.items(required).iter().filter_map(|&n| self.doc.str(n).map(Into::into)).collect();
            let props = self.doc.key(at, "properties");
            inner.extend(names.iter().filter_map(|n| props.and_then(|p| self.doc.key(p, n))));
        }
        inner.extend(self.doc.key(at, "allOf").iter().flat_map(|&all| self.doc.items(all)));
        inner.into_iter().find(|&node| {
            let sub = self.node_sub(node);
            sub == ExprId::FALSE || !self.sub_is_live(sub)
        })
    }
}
