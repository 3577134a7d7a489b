//! Formulas over values, by type.
//!
//! Types exclude each other, so any boolean combination of constraints is a tuple: which of null, true, false;
//! a set of numbers; a language of strings; a formula over arrays; one over objects.  Conjunction, disjunction
//! and complement work member by member (Attouche et al., VLDB 2022, with their typed atoms grouped).  Formulas
//! refer to the values inside arrays and objects by [`SchemaExpr`]: an expression over schema nodes that is turned into
//! a [`Value`] only when such a value is reached.
//! Invariant: equal tuples have equal numbers; an expression that needs itself at once is refused.
//! Complexity: a hash a tuple.  Memory: each once (`arenas`, `compiled`).

use super::array::ArrId;
use super::document::{Json, JsonNodeId};
use super::formula::{expression, Op};
use super::key_sets::KeySet;
use super::object::ObjId;
use super::{count_step, NameId, Schema};
use crate::error::{Error, Kind, Result};
use crate::lexical::number::set::{NumSet, NumSetId};
use crate::lexical::{TermId, Terms};
use crate::work;

/// null, true, false as bits.
pub const NULL: u8 = 1;
pub const TRUE: u8 = 2;
pub const FALSE: u8 = 4;
pub const CONSTS: u8 = 7;

/// The number of a formula over values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValId(pub u32);

impl ValId {
    pub const TRUE: ValId = ValId(0);
    pub const FALSE: ValId = ValId(1);
}

expression!(
    /// The number of an expression over schemas.
    ExprId, SchemaExpr in subs by sub, |_, _, _: &mut Vec<ExprId>| None
);

/// An expression over schemas, not yet looked into.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SchemaExpr {
    True,
    False,
    /// A schema, under the dynamic scope by which it is reached (0 where no reference depends on that).
    Node(JsonNodeId, u32),
    /// Equal to this JSON value.
    Const(JsonNodeId),
    /// Equal to one of these values.
    Seen(KeySet),
    /// Different from what each of these objects has at a key.
    Differs(KeySet, NameId),
    Not(ExprId),
    /// Nested at most so many levels.
    Flat(u32),
    And(Box<[ExprId]>),
    Or(Box<[ExprId]>),
}

/// What is allowed, type by type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    pub consts: u8,
    /// Numbers at all; `set` says which (`None`: every one).
    pub num: bool,
    pub set: Option<NumSetId>,
    pub str: TermId,
    pub arr: ArrId,
    pub obj: ObjId,
}

impl Value {
    pub fn none() -> Self {
        Value { consts: 0, num: false, set: None, str: Terms::EMPTY, arr: ArrId::FALSE, obj: ObjId::FALSE }
    }
}

/// What an operation on no formulas is.
fn unit(op: Op) -> ValId {
    match op {
        Op::And => ValId::TRUE,
        Op::Or => ValId::FALSE,
    }
}

/// Operands of a conjunction or a disjunction, type by type.
#[derive(Default)]
pub(super) struct Operands {
    pub consts: Vec<u8>,
    pub numbers: Vec<NumSet>,
    pub strings: Vec<TermId>,
    pub arrays: Vec<ArrId>,
    pub objects: Vec<ObjId>,
}

impl Operands {
    pub fn add(&mut self, schema: &Schema, value: ValId) {
        let v = schema.value(value);
        self.consts.push(v.consts);
        self.numbers.push(schema.numbers(v));
        self.strings.push(v.str);
        self.arrays.push(v.arr);
        self.objects.push(v.obj);
    }

    pub fn join(self, schema: &mut Schema, op: Op) -> ValId {
        let set = match op {
            Op::And => both(&self.numbers),
            Op::Or => {
                NumSet::union_of(&self.numbers.iter().filter(|set| !set.is_empty()).collect::<Vec<_>>())
            }
        };
        let terms = &mut schema.lexicon.terms;
        let v = Value {
            consts: match op {
                Op::And => self.consts.iter().fold(CONSTS, |all, bits| all & bits),
                Op::Or => self.consts.iter().fold(0, |all, bits| all | bits),
            },
            str: match op {
                Op::And => terms.and(&self.strings),
                Op::Or => terms.or(&self.strings),
            },
            arr: schema.joined(op, &self.arrays),
            obj: schema.joined(op, &self.objects),
            ..Value::none()
        };
        let v = schema.with_numbers(v, set);
        schema.value_of(v)
    }
}

/// The numbers that are in all sets.
fn both(sets: &[NumSet]) -> NumSet {
    let mut out = NumSet::all();
    for set in sets {
        if !(out.is_empty() || set.is_all() || *set == out) {
            out = out.intersect(set).unwrap_or_else(|| many_pieces());
        }
    }
    out
}

impl Schema {
    pub(crate) fn value_of(&mut self, value: Value) -> ValId {
        ValId(self.arenas.vals.intern(value))
    }

    pub fn value(&self, id: ValId) -> &Value {
        &self.arenas.vals[id.0 as usize]
    }

    pub(crate) fn numbers(&self, v: &Value) -> NumSet {
        match (v.num, v.set) {
            (false, _) => NumSet::empty(),
            (true, None) => NumSet::all(),
            (true, Some(set)) => self.lexicon.terms.numbers.sets.get(set).clone(),
        }
    }

    pub(crate) fn with_numbers(&mut self, mut v: Value, set: NumSet) -> Value {
        v.num = !set.is_empty();
        v.set = if set.is_empty() || set.is_all() {
            None
        } else {
            Some(self.lexicon.terms.numbers.sets.intern(set))
        };
        v
    }

    /// Both of the formulas.
    pub fn and_values(&mut self, a: ValId, b: ValId) -> ValId {
        self.join_two(Op::And, a, b)
    }

    /// One of the formulas, or both.
    pub fn or_values(&mut self, a: ValId, b: ValId) -> ValId {
        self.join_two(Op::Or, a, b)
    }

    fn join_two(&mut self, op: Op, a: ValId, b: ValId) -> ValId {
        let unit = unit(op);
        if a == b || b == unit {
            return a;
        }
        if a == unit {
            return b;
        }
        work::spend(8);
        self.join_values(op, &[a, b])
    }

    /// All of the formulas, or any; at once, since each operation copies all its operands.
    pub(crate) fn join_values(&mut self, op: Op, list: &[ValId]) -> ValId {
        if list.len() < 2 {
            return list.first().copied().unwrap_or(unit(op));
        }
        let mut members = Operands::default();
        list.iter().for_each(|&v| members.add(self, v));
        members.join(self, op)
    }

    pub(crate) fn and_all(&mut self, list: &[ValId]) -> ValId {
        work::spend(2 * list.len() as u64);
        self.join_values(Op::And, list)
    }

    pub(crate) fn or_all(&mut self, list: &[ValId]) -> ValId {
        self.join_values(Op::Or, list)
    }

    pub fn not_value(&mut self, a: ValId) -> ValId {
        work::spend(8);
        let x = self.value(a).clone();
        let set = self.numbers(&x).complement().unwrap_or_else(|| many_pieces());
        let v = Value {
            consts: !x.consts & CONSTS,
            str: self.lexicon.terms.not(x.str),
            arr: self.not(x.arr),
            obj: self.not(x.obj),
            ..Value::none()
        };
        let v = self.with_numbers(v, set);
        self.value_of(v)
    }

    pub fn sub(&mut self, sub: SchemaExpr) -> ExprId {
        work::spend(2);
        ExprId(self.arenas.subs.intern(sub))
    }

    /// The expression of a schema node; booleans at once.
    pub fn node_sub(&mut self, node: JsonNodeId) -> ExprId {
        match self.doc.get(node) {
            Json::Bool(true) => ExprId::TRUE,
            Json::Bool(false) => ExprId::FALSE,
            Json::Object(entries) if entries.is_empty() => ExprId::TRUE,
            _ => self.sub(SchemaExpr::Node(node, self.scopes.current)),
        }
    }

    /// Values that are nested at most so many levels; scalars have none.
    pub(crate) fn flat(&mut self, levels: u32) -> ExprId {
        self.sub(SchemaExpr::Flat(levels))
    }

    fn flat_value(&mut self, levels: u32) -> ValId {
        let (mut arr, mut obj) = (ArrId::FALSE, ObjId::FALSE);
        if levels > 0 {
            let below = self.flat(levels - 1);
            let none = self.list(Vec::new());
            arr = self.items(none, 0, below);
            obj = self.shape_atom(Vec::new(), Vec::new(), below, None, self.resolver.root());
        }
        self.value_of(Value { consts: CONSTS, num: true, set: None, str: Terms::ALL, arr, obj })
    }

    pub fn not_sub(&mut self, s: ExprId) -> ExprId {
        match self.arenas.subs[s.0 as usize] {
            SchemaExpr::True => ExprId::FALSE,
            SchemaExpr::False => ExprId::TRUE,
            SchemaExpr::Not(inner) => inner,
            _ => self.sub(SchemaExpr::Not(s)),
        }
    }

    /// The formula of an expression. Memoised; an expression that needs itself at once is refused.
    pub fn compile(&mut self, s: ExprId) -> Result<ValId> {
        Ok(memo!(self.compiled.of, s, {
            if self.compiled.under_way.contains(&s) {
                let place = match self.arenas.subs[s.0 as usize] {
                    SchemaExpr::Node(node, _) => self.doc.pointer(node),
                    _ => String::new(),
                };
                return Err(Error::new(
                    Kind::InvalidSchema,
                    "the schema refers to itself without a property or item in between, which means nothing",
                )
                .at(&place)
                .keyword("$ref"));
            }
            count_step();
            self.compiled.under_way.push(s);
            let value = stacker::maybe_grow(128 << 10, 2 << 20, || self.compile_new(s));
            self.compiled.under_way.pop();
            value?
        }))
    }

    fn compile_new(&mut self, s: ExprId) -> Result<ValId> {
        match self.arenas.subs[s.0 as usize].clone() {
            SchemaExpr::True => Ok(ValId::TRUE),
            SchemaExpr::False => Ok(ValId::FALSE),
            SchemaExpr::Node(node, scope) => {
                let inner = self.enter(scope, node);
                let outer = std::mem::replace(&mut self.scopes.current, inner);
                let value = super::keywords::compile(self, node);
                self.scopes.current = outer;
                let value = value?;
                if *self.compiled.origin.entry(value).or_insert(node) != node {
                    self.compiled.more_origins.push((value, node));
                }
                Ok(value)
            }
            SchemaExpr::Const(json) => self.constant(json),
            SchemaExpr::Seen(set) => {
                let values = self.seen_values(set);
                self.one_of_constants(&values)
            }
            SchemaExpr::Differs(items, name) => self.differs(items, name),
            SchemaExpr::Flat(levels) => Ok(self.flat_value(levels)),
            SchemaExpr::Not(inner) => {
                if let SchemaExpr::Seen(set) = self.arenas.subs[inner.0 as usize] {
                    return self.none_of(set);
                }
                let v = self.compile(inner)?;
                Ok(self.not_value(v))
            }
            SchemaExpr::And(list) => {
                let parts: Vec<ValId> = list.iter().map(|&part| self.compile(part)).collect::<Result<_>>()?;
                let v = self.and_all(&parts);
                // what a schema and other conditions come to is still said by that schema
                let schema = |p: &&ExprId| matches!(self.arenas.subs[p.0 as usize], SchemaExpr::Node(..));
                let said = list
                    .iter()
                    .filter(schema)
                    .find_map(|p| self.compiled.origin.get(self.compiled.of.get(p)?));
                if let Some(&node) = said {
                    if *self.compiled.origin.entry(v).or_insert(node) != node {
                        self.compiled.more_origins.push((v, node));
                    }
                }
                Ok(v)
            }
            SchemaExpr::Or(list) => {
                // values that items must differ from come by the hundreds: joined at once
                let constant = |part: &ExprId| match self.arenas.subs[part.0 as usize] {
                    SchemaExpr::Const(json) => Some(json),
                    _ => None,
                };
                let constants: Vec<JsonNodeId> = list.iter().filter_map(constant).collect();
                let others: Vec<ExprId> = list.iter().copied().filter(|p| constant(p).is_none()).collect();
                let mut v = self.one_of_constants(&constants)?;
                for &part in &others {
                    let next = self.compile(part)?;
                    v = self.or_values(v, next);
                }
                Ok(v)
            }
        }
    }

    /// The formula of an expression in the middle of a search, which an error ends.
    pub(crate) fn compile_or_refuse(&mut self, s: ExprId) -> ValId {
        self.compile(s).unwrap_or_else(|e| work::refuse(e))
    }

    /// "Equal to this value" for a text that was read.
    pub(crate) fn constant_of_text(&mut self, text: &str) -> Option<JsonNodeId> {
        let node = self.doc.parse(text).ok()?;
        Some(self.unique_constant(node))
    }

    /// The node that stands for all values equal to this one.
    pub(crate) fn unique_constant(&mut self, node: JsonNodeId) -> JsonNodeId {
        let text: Box<str> = self.doc.canonical(node).into();
        *self.compiled.constants.entry(text).or_insert(node)
    }
}

fn many_pieces() -> ! {
    work::refuse(Error::limit(
        "the numbers that the schema allows fall into too many pieces; simplify its ranges",
    ))
}
