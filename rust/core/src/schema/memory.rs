//! What a schema's arenas hold, in bytes.

use super::{Arr, Obj, Schema, Sub};
use crate::held::{self, Boxed};

/// What was counted of contents in boxes.
#[derive(Default)]
pub(crate) struct Counted {
    names: Boxed,
    subs: Boxed,
    objs: Boxed,
    arrs: Boxed,
    shapes: Boxed,
    lists: Boxed,
}

impl Schema {
    /// Bytes that the schema holds, its lexical arena included.
    pub(crate) fn bytes(&mut self) -> usize {
        let c = &mut self.counted;
        let boxed = c.names.count(&self.names, |name| held::slice(name.as_bytes()))
            + c.subs.count(&self.subs, |sub| match sub {
                Sub::And(xs) | Sub::Or(xs) => held::slice(xs),
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
            + c.lists.count(&self.lists, |list| held::slice(list));
        let arenas = held::set(&self.names)
            + held::set(&self.subs)
            + held::set(&self.vals)
            + held::set(&self.objs)
            + held::set(&self.arrs)
            + held::set(&self.shapes)
            + held::set(&self.lists);
        let known = held::map(&self.constants)
            + held::map(&self.compiled)
            + held::map(&self.origin)
            + held::list(&self.more_origins)
            + held::map(&self.parsed)
            + held::map(&self.patterns)
            + held::map(&self.formats)
            + held::map(&self.matches)
            + held::map(&self.cells)
            + held::map(&self.lives)
            + held::map(&self.completable)
            + held::map(&self.rests)
            + held::map(&self.finite)
            + held::map(&self.not_objs)
            + held::map(&self.not_arrs)
            + held::list(&self.obj_facts)
            + held::list(&self.arr_facts)
            + held::map(&self.witnesses) * 2;
        arenas
            + boxed
            + known
            + self.doc.bytes()
            + self.key_sets.bytes()
            + self.remembered.bytes()
            + self.lexicon.bytes()
    }
}
