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
use super::formula::{Expression, Op};
use super::object::ObjId;
use super::used::KeySet;
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

/// The number of an expression over schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

impl ExprId {
    pub const TRUE: ExprId = ExprId(0);
    pub const FALSE: ExprId = ExprId(1);
}

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

impl Expression for ExprId {
    const TRUE: Self = ExprId::TRUE;
    const FALSE: Self = ExprId::FALSE;

    fn operands(self, schema: &Schema) -> Option<(Op, &[Self])> {
        match &schema.arenas.subs[self.0 as usize] {
            SchemaExpr::And(list) => Some((Op::And, list)),
            SchemaExpr::Or(list) => Some((Op::Or, list)),
            _ => None,
        }
    }

    fn operation(schema: &mut Schema, op: Op, list: Box<[Self]>) -> Self {
        schema.sub(match op {
            Op::And => SchemaExpr::And(list),
            Op::Or => SchemaExpr::Or(list),
        })
    }

    fn merge(_: &mut Schema, _: Op, _: &mut Vec<Self>) -> Option<Self> {
        None
    }
}

impl Schema {
    pub(crate) fn value_of(&mut self, value: Value) -> ValId {
        ValId(self.arenas.vals.insert_full(value).0 as u32)
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

    pub fn and_values(&mut self, a: ValId, b: ValId) -> ValId {
        if a == b || b == ValId::TRUE {
            return a;
        }
        if a == ValId::TRUE {
            return b;
        }
        work::spend(8);
        let (x, y) = (self.value(a).clone(), self.value(b).clone());
        let set = if x.set == y.set && x.num == y.num || x.num && x.set.is_none() || !y.num {
            self.numbers(&y)
        } else {
            let both = self.numbers(&x).intersect(&self.numbers(&y));
            both.unwrap_or_else(|| many_pieces())
        };
        let v = Value {
            consts: x.consts & y.consts,
            str: self.lexicon.terms.and(&[x.str, y.str]),
            arr: self.and(&[x.arr, y.arr]),
            obj: self.and(&[x.obj, y.obj]),
            ..Value::none()
        };
        let v = self.with_numbers(v, set);
        self.value_of(v)
    }

    pub fn or_values(&mut self, a: ValId, b: ValId) -> ValId {
        if a == b || b == ValId::FALSE {
            return a;
        }
        if a == ValId::FALSE {
            return b;
        }
        work::spend(8);
        let (x, y) = (self.value(a).clone(), self.value(b).clone());
        let set = self.numbers(&x).union(&self.numbers(&y));
        let v = Value {
            consts: x.consts | y.consts,
            str: self.lexicon.terms.or(&[x.str, y.str]),
            arr: self.or(&[x.arr, y.arr]),
            obj: self.or(&[x.obj, y.obj]),
            ..Value::none()
        };
        let v = self.with_numbers(v, set);
        self.value_of(v)
    }

    /// All of the formulas; at once, since each conjunction copies all its operands.
    pub(crate) fn and_all(&mut self, list: &[ValId]) -> ValId {
        work::spend(2 * list.len() as u64);
        let parts: Vec<Value> = list.iter().map(|&v| self.value(v).clone()).collect();
        if parts.len() < 2 {
            return list.first().copied().unwrap_or(ValId::TRUE);
        }
        let mut set = self.numbers(&parts[0]);
        for part in &parts[1..] {
            if !(set.is_empty() || part.num && part.set.is_none()) {
                set = set.intersect(&self.numbers(part)).unwrap_or_else(|| many_pieces());
            }
        }
        let v = Value {
            consts: parts.iter().fold(CONSTS, |bits, part| bits & part.consts),
            str: self.lexicon.terms.and(&parts.iter().map(|part| part.str).collect::<Vec<_>>()),
            arr: self.and(&parts.iter().map(|part| part.arr).collect::<Vec<_>>()),
            obj: self.and(&parts.iter().map(|part| part.obj).collect::<Vec<_>>()),
            ..Value::none()
        };
        let v = self.with_numbers(v, set);
        self.value_of(v)
    }

    /// Any of the formulas; at once, since each union looks at all its operands.
    pub(crate) fn or_all(&mut self, list: &[ValId]) -> ValId {
        let parts: Vec<Value> = list.iter().map(|&v| self.value(v).clone()).collect();
        if parts.len() < 2 {
            return list.first().copied().unwrap_or(ValId::FALSE);
        }
        let sets: Vec<NumSet> = parts.iter().filter(|part| part.num).map(|part| self.numbers(part)).collect();
        let set = NumSet::union_of(&sets.iter().collect::<Vec<_>>());
        let v = Value {
            consts: parts.iter().fold(0, |bits, part| bits | part.consts),
            str: self.lexicon.terms.or(&parts.iter().map(|part| part.str).collect::<Vec<_>>()),
            arr: self.or(&parts.iter().map(|part| part.arr).collect::<Vec<_>>()),
            obj: self.or(&parts.iter().map(|part| part.obj).collect::<Vec<_>>()),
            ..Value::none()
        };
        let v = self.with_numbers(v, set);
        self.value_of(v)
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
        ExprId(self.arenas.subs.insert_full(sub).0 as u32)
    }

    /// The expression of a schema node; booleans at once.
    pub fn node_sub(&mut self, node: JsonNodeId) -> ExprId {
        match self.doc.get(node) {
            Json::Bool(true) => ExprId::TRUE,
            Json::Bool(false) => ExprId::FALSE,
            Json::Object(entries) if entries.is_empty() => ExprId::TRUE,
            _ => self.sub(SchemaExpr::Node(node, self.scopes.now)),
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
        if let Some(&known) = self.compiled.of.get(&s) {
            return Ok(known);
        }
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
        let value = value?;
        self.compiled.of.insert(s, value);
        Ok(value)
    }

    fn compile_new(&mut self, s: ExprId) -> Result<ValId> {
        match self.arenas.subs[s.0 as usize].clone() {
            SchemaExpr::True => Ok(ValId::TRUE),
            SchemaExpr::False => Ok(ValId::FALSE),
            SchemaExpr::Node(node, scope) => {
                let inner = self.enter(scope, node);
                let outer = std::mem::replace(&mut self.scopes.now, inner);
                let value = super::keywords::compile(self, node);
                self.scopes.now = outer;
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

pub(super) fn many_pieces() -> ! {
    work::refuse(Error::limit(
        "the numbers that the schema allows fall into too many pieces; simplify its ranges",
    ))
}
