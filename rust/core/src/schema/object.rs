//! Formulas over objects; their derivative by a key is in [`super::by_key`].
//!
//! The keywords of one schema that speak of its properties are one atom, a [`Shape`]: a key selects what its
//! value must satisfy.  An atom per property was rejected: 2,000 properties would be rebuilt at each key.
//! Invariant: equal formulas have equal numbers; operands stand in the order of the schema's text.
//! Complexity: what the form tells ([`FormulaFacts`]) is found once a formula.  Memory: each formula once (`arenas`).

use super::by_key::Key;
use super::decide::Leaf;
use super::distinct::{Distinct, Phase};
use super::document::JsonNodeId;
use super::formula::{expression, Formula, FormulaFacts, Formulas, Op};
use super::value::ExprId;
use super::{NameId, Schema};
use crate::lexical::TermId;

expression!(
    /// The number of a formula over objects.
    ObjId, Obj in objs.forms by obj, merged
);

fn merged(schema: &mut Schema, op: Op, list: &mut Vec<ObjId>) -> Option<ObjId> {
    match op {
        Op::And => schema.merge_conjuncts(list),
        Op::Or => {
            schema.absorb(list);
            None
        }
    }
}

/// The number of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeId(pub u32);

/// What each key's value must satisfy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Named keys, in the order of the text.
    pub props: Box<[(NameId, ExprId)]>,
    /// The same, sorted by name's number.
    pub sorted: Box<[(NameId, ExprId)]>,
    pub patterns: Box<[(TermId, ExprId)]>,
    /// For keys that are neither named nor match a pattern.
    pub rest: ExprId,
    /// How many of the named keys, from the first on, count for the declared order.
    pub declared: u32,
    /// The schema that says so.
    pub node: JsonNodeId,
}

/// A positive formula; operands of `And` and `Or` stand in the order of the schema's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Obj {
    True,
    False,
    /// Every property satisfies what the shape says of its key.
    Shape(ShapeId),
    /// Some property does not.
    NotShape(ShapeId),
    /// These keys are there; sorted.
    Required(Box<[NameId]>),
    /// This key is not there.
    Absent(NameId),
    /// The number of properties lies in `lo..=hi`.
    Count(u32, u32),
    /// It differs from others.
    Distinct(Distinct),
    And(Box<[ObjId]>),
    Or(Box<[ObjId]>),
}

impl Formula for ObjId {
    type Form = Obj;

    fn formulas(schema: &mut Schema) -> &mut Formulas<Obj, Self> {
        &mut schema.arenas.objs
    }

    fn facts(self, schema: &Schema) -> FormulaFacts {
        schema.arenas.objs.facts[self.0 as usize]
    }

    fn facts_of_atom(self, schema: &Schema) -> FormulaFacts {
        let facts = |ends, wants_key| FormulaFacts { ends, wants_key, ..FormulaFacts::default() };
        match schema.object(self) {
            Obj::True | Obj::Absent(_) => facts(true, false),
            Obj::Shape(s) => FormulaFacts { names: schema.shape(*s).declared > 0, ..facts(true, false) },
            Obj::False | Obj::Required(_) => facts(false, false),
            Obj::NotShape(_) => facts(false, true),
            Obj::Count(lo, _) => FormulaFacts { least: *lo, ..facts(*lo == 0, *lo > 0) },
            Obj::Distinct(apart) => FormulaFacts {
                decided_by_value: matches!(apart.phase, Phase::At(_)),
                ..facts(apart.phase != Phase::Whatever, true)
            },
            Obj::And(_) | Obj::Or(_) => unreachable!("an atom"),
        }
    }

    fn leaf(self, schema: &mut Schema, key: Option<&Key>) -> Leaf<Self> {
        schema.object_leaf(self, key.expect("a property has a key"))
    }

    fn leaf_branches(self, schema: &mut Schema, key: Option<&Key>) -> Vec<(ExprId, Self)> {
        let mut leaf = self.leaf(schema, key);
        // branches that exclude each other where that is cheap to say: a discriminator then leaves one
        // branch for each of its values instead of one for each set of them
        if leaf.regardless.is_some() && schema.is_flat(leaf.sub) {
            leaf.regardless = None;
        }
        schema.leaf_branches(leaf)
    }

    fn not_atom(self, schema: &mut Schema) -> Self {
        match schema.object(self).clone() {
            Obj::True => ObjId::FALSE,
            Obj::False => ObjId::TRUE,
            Obj::Shape(s) => schema.obj(Obj::NotShape(s)),
            Obj::NotShape(s) => schema.obj(Obj::Shape(s)),
            Obj::Required(names) => {
                let absent: Vec<ObjId> = names.iter().map(|&n| schema.obj(Obj::Absent(n))).collect();
                schema.or(&absent)
            }
            Obj::Absent(n) => schema.required(vec![n]),
            Obj::Distinct(apart) => schema.not_distinct(apart),
            Obj::Count(lo, hi) => schema.outside((lo, hi), Schema::count),
            Obj::And(_) | Obj::Or(_) => unreachable!("an atom"),
        }
    }

    fn may_be_live(self, schema: &mut Schema) -> bool {
        schema.rest_is_live(self)
    }
}

impl Schema {
    pub(crate) fn obj(&mut self, obj: Obj) -> ObjId {
        self.formula(obj)
    }

    pub(crate) fn object(&self, id: ObjId) -> &Obj {
        &self.arenas.objs.forms[id.0 as usize]
    }

    pub(crate) fn shape(&self, id: ShapeId) -> &Shape {
        &self.arenas.shapes[id.0 as usize]
    }

    pub(crate) fn shape_atom(
        &mut self,
        props: Vec<(NameId, ExprId)>,
        patterns: Vec<(TermId, ExprId)>,
        rest: ExprId,
        declared: Option<usize>,
        node: JsonNodeId,
    ) -> ObjId {
        let declared = declared.unwrap_or(0) as u32;
        let trivial = rest == ExprId::TRUE
            && props.iter().all(|p| p.1 == ExprId::TRUE)
            && patterns.iter().all(|p| p.1 == ExprId::TRUE);
        if trivial && declared == 0 {
            return ObjId::TRUE;
        }
        let mut sorted = props.clone();
        sorted.sort();
        let shape = Shape {
            props: props.into(),
            sorted: sorted.into(),
            patterns: patterns.into(),
            rest,
            declared,
            node,
        };
        let id = ShapeId(self.arenas.shapes.intern(shape));
        self.obj(Obj::Shape(id))
    }

    pub(crate) fn required(&mut self, mut names: Vec<NameId>) -> ObjId {
        crate::lists::sort_unique(&mut names);
        if names.is_empty() {
            return ObjId::TRUE;
        }
        self.obj(Obj::Required(names.into()))
    }

    pub(crate) fn count(&mut self, lo: u32, hi: u32) -> ObjId {
        match (lo, hi) {
            (0, u32::MAX) => ObjId::TRUE,
            _ if lo > hi => ObjId::FALSE,
            _ => self.obj(Obj::Count(lo, hi)),
        }
    }

    /// One `Required`, one `Count`; `False` where a key is required and absent.
    fn merge_conjuncts(&mut self, flat: &mut Vec<ObjId>) -> Option<ObjId> {
        let mut required: Vec<NameId> = Vec::new();
        let mut absent: Vec<NameId> = Vec::new();
        let (mut lo, mut hi, mut counts, mut requireds) = (0, u32::MAX, 0, 0);
        for &o in flat.iter() {
            match self.object(o) {
                Obj::Required(names) => {
                    required.extend(names.iter());
                    requireds += 1;
                }
                Obj::Absent(name) => absent.push(*name),
                Obj::Count(a, b) => {
                    lo = lo.max(*a);
                    hi = hi.min(*b);
                    counts += 1;
                }
                _ => {}
            }
        }
        crate::work::spend((absent.len() * required.len() / 8) as u64);
        if absent.iter().any(|n| required.contains(n)) || lo > hi {
            return Some(ObjId::FALSE);
        }
        if requireds > 1 || counts > 1 {
            flat.retain(|&o| match self.arenas.objs.forms[o.0 as usize] {
                Obj::Required(_) => requireds < 2,
                Obj::Count(..) => counts < 2,
                _ => true,
            });
            if requireds > 1 {
                let merged = self.required(required);
                flat.push(merged);
            }
            if counts > 1 {
                let merged = self.count(lo, hi);
                flat.push(merged);
            }
        }
        None
    }
}
