//! What expressions and the formulas over objects and arrays have in common: "and" and "or" over atoms.
//!
//! Purpose: numbering, what the form tells ([`FormulaFacts`]), flattening, absorption, denial and the replacing of atoms are written
//! once; what the atoms say is in [`super::value`], [`super::object`] and [`mod@super::array`].
//! Invariant: the operands of an operation are two or more, distinct, no constants, and no operation of the same kind.
//! Complexity: the operands that are named; absorption is quadratic in them, up to [`ABSORBED`].
//! Memory: what is made stays in `arenas`, each formula once.

use std::hash::Hash;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::by_key::Key;
use super::decide::Leaf;
use super::value::ExprId;
use super::Schema;
use crate::hash::Keyed;
use crate::heap_size::{self, Interner};
use crate::work;

/// Operands of a disjunction up to which those that another makes superfluous are sought.
const ABSORBED: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    And,
    Or,
}

impl Op {
    /// What it becomes under "not" (De Morgan).
    fn other(self) -> Self {
        match self {
            Op::And => Op::Or,
            Op::Or => Op::And,
        }
    }
}

/// The number of an operation on others, or of an atom.
pub trait Expression: Copy + Eq + Ord + Hash {
    const TRUE: Self;
    const FALSE: Self;
    fn numbered(number: u32) -> Self;
    /// `None`: an atom.
    fn operands(self, schema: &Schema) -> Option<(Op, &[Self])>;
    /// The operation on two or more, which [`Schema::joined`] has put in order.
    fn operation(schema: &mut Schema, op: Op, list: Box<[Self]>) -> Self;
    /// Joins operands that are simpler as one; `Some`: all of them come to this.
    fn merge(schema: &mut Schema, op: Op, list: &mut Vec<Self>) -> Option<Self>;
}

/// The number of formulas of a kind, of which the first two are constants: how operations stand among them, by what
/// function they are made, and what operands are joined by.
macro_rules! expression {
    ($(#[$doc:meta])* $id:ident, $form:ident in $($arena:ident).+ by $make:ident, $merge:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $id(pub u32);

        impl $id {
            pub const TRUE: $id = $id(0);
            pub const FALSE: $id = $id(1);
        }

        impl $crate::schema::formula::Expression for $id {
            const TRUE: Self = $id::TRUE;
            const FALSE: Self = $id::FALSE;

            fn numbered(number: u32) -> Self {
                $id(number)
            }

            fn operands(self, schema: &Schema) -> Option<(Op, &[Self])> {
                match &schema.arenas.$($arena).+[self.0 as usize] {
                    $form::And(list) => Some((Op::And, list)),
                    $form::Or(list) => Some((Op::Or, list)),
                    _ => None,
                }
            }

            fn operation(schema: &mut Schema, op: Op, list: Box<[Self]>) -> Self {
                schema.$make(match op {
                    Op::And => $form::And(list),
                    Op::Or => $form::Or(list),
                })
            }

            fn merge(schema: &mut Schema, op: Op, list: &mut Vec<Self>) -> Option<Self> {
                $merge(schema, op, list)
            }
        }
    };
}
pub(crate) use expression;

/// What the form of a formula tells, found once from what is known of its operands: walks of a formula would visit a part
/// as often as it is named, which doubles with each level of a tower of `oneOf`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormulaFacts {
    /// The object or array may end here.
    pub ends: bool,
    /// An object may need a key that the formula does not name: one more, or one of a pattern.
    pub wants_key: bool,
    /// It names keys for the declared order; some disjunction does.
    pub names: bool,
    pub branches: bool,
    /// The value that is read decides about it.
    pub decided_by_value: bool,
    /// Finished items must be remembered; an item may have to be equal to an earlier one.
    pub remembers: bool,
    pub wants_duplicates: bool,
    /// Properties or items that must come at least, as far as one atom alone says.
    pub least: u32,
    /// Operations, and atoms over arrays; those that are named twice are counted twice.
    pub size: u32,
}

impl FormulaFacts {
    fn joined(op: Op, operands: impl Iterator<Item = FormulaFacts>) -> FormulaFacts {
        let all = op == Op::And;
        let start = FormulaFacts { ends: all, size: 1, ..FormulaFacts::default() };
        operands.fold(start, |a, b| FormulaFacts {
            ends: if all { a.ends && b.ends } else { a.ends || b.ends },
            wants_key: a.wants_key || b.wants_key,
            names: a.names || b.names,
            branches: a.branches || if all { b.branches } else { b.names },
            decided_by_value: a.decided_by_value || b.decided_by_value,
            remembers: a.remembers || b.remembers,
            wants_duplicates: a.wants_duplicates || b.wants_duplicates,
            least: if all { a.least.max(b.least) } else { 0 },
            size: a.size.saturating_add(b.size),
        })
    }
}

/// The formulas of a kind by their numbers, what each tells, and what it denies where that is known.
pub struct Formulas<T, F> {
    pub forms: Interner<T, Keyed>,
    pub facts: Vec<FormulaFacts>,
    denials: FxHashMap<F, F>,
}

impl<T, F> Default for Formulas<T, F> {
    fn default() -> Self {
        Formulas { forms: Interner::default(), facts: Vec::new(), denials: FxHashMap::default() }
    }
}

impl<T, F> heap_size::Table for Formulas<T, F> {
    fn bytes(&self) -> usize {
        heap_size::bytes!(self: forms, facts, denials)
    }
}

/// Formulas whose atoms each ask about one expression of the next value.
pub trait Formula: Expression {
    type Form: Eq + Hash + heap_size::Owned;
    fn formulas(schema: &mut Schema) -> &mut Formulas<Self::Form, Self>;
    /// What the form tells.
    fn facts(self, schema: &Schema) -> FormulaFacts;
    fn facts_of_atom(self, schema: &Schema) -> FormulaFacts;
    /// What an atom says of the value of a key, or of the next item.
    fn leaf(self, schema: &mut Schema, key: Option<&Key>) -> Leaf<Self>;
    /// The branches of an atom, two at most.
    fn leaf_branches(self, schema: &mut Schema, key: Option<&Key>) -> Vec<(ExprId, Self)> {
        let leaf = self.leaf(schema, key);
        schema.leaf_branches(leaf)
    }
    fn not_atom(self, schema: &mut Schema) -> Self;
    /// Whether something could satisfy it, as far as it pays to ask before branches multiply.
    fn may_be_live(self, schema: &mut Schema) -> bool;
}

impl Schema {
    /// The formula of a form.
    pub(super) fn formula<F: Formula>(&mut self, form: F::Form) -> F {
        let (number, new) = F::formulas(self).forms.insert_full(form);
        let formula = F::numbered(number as u32);
        if new {
            let facts = match formula.operands(self) {
                Some((op, list)) => FormulaFacts::joined(op, list.iter().map(|operand| operand.facts(self))),
                None => formula.facts_of_atom(self),
            };
            F::formulas(self).facts.push(facts);
        }
        if let Some((_, list)) = formula.operands(self) {
            work::spend(8 + 2 * list.len() as u64);
        }
        formula
    }

    /// Whether the object or array may end here.
    pub(crate) fn may_end<F: Formula>(&self, f: F) -> bool {
        f.facts(self).ends
    }

    /// What lies below a range, or above it.
    pub(super) fn outside<F: Expression>(
        &mut self,
        (lo, hi): (u32, u32),
        range: impl Fn(&mut Self, u32, u32) -> F,
    ) -> F {
        let below = if lo > 0 { range(self, 0, lo - 1) } else { F::FALSE };
        let above = if hi < u32::MAX { range(self, hi + 1, u32::MAX) } else { F::FALSE };
        self.or(&[below, above])
    }

    pub(crate) fn and<F: Expression>(&mut self, list: &[F]) -> F {
        self.joined(Op::And, list)
    }

    pub(crate) fn or<F: Expression>(&mut self, list: &[F]) -> F {
        self.joined(Op::Or, list)
    }

    /// The disjunction of those with one key, for each key.
    pub(crate) fn or_by<K: Copy + Eq + Hash, F: Expression>(&mut self, list: Vec<(K, F)>) -> Vec<(K, F)> {
        if list.len() < 2 {
            return list;
        }
        let mut by_key: IndexMap<K, Vec<F>, FxBuildHasher> = IndexMap::default();
        list.into_iter().for_each(|(key, f)| by_key.entry(key).or_default().push(f));
        by_key.into_iter().map(|(key, list)| (key, self.or(&list))).collect()
    }

    pub(super) fn joined<F: Expression>(&mut self, op: Op, list: &[F]) -> F {
        let (neutral, deciding) = match op {
            Op::And => (F::TRUE, F::FALSE),
            Op::Or => (F::FALSE, F::TRUE),
        };
        crate::work::spend(1);
        let mut others = list.iter().filter(|&&f| f != neutral);
        let Some(&first) = others.next() else { return neutral };
        if others.all(|&f| f == first) {
            return first;
        }
        let mut flat: Vec<F> = Vec::with_capacity(list.len());
        for &f in list {
            match f.operands(self) {
                _ if f == neutral => {}
                _ if f == deciding => return deciding,
                Some((own, inner)) if own == op => flat.extend(inner),
                _ => flat.push(f),
            }
        }
        crate::lists::dedup(&mut flat);
        if flat.len() > 1 {
            if let Some(all) = F::merge(self, op, &mut flat) {
                return all;
            }
        }
        match flat[..] {
            [] => neutral,
            [one] => one,
            _ => F::operation(self, op, flat.into()),
        }
    }

    fn parts<F: Expression>(&self, f: F) -> Option<(Op, Vec<F>)> {
        f.operands(self).map(|(op, list)| (op, list.to_vec()))
    }

    /// The operands of a conjunction; what is none is the only one.
    pub(crate) fn conjuncts<F: Expression>(&self, f: F) -> Vec<F> {
        match f.operands(self) {
            Some((Op::And, list)) => list.to_vec(),
            _ => vec![f],
        }
    }

    /// What the formula denies. A part that a formula holds twice is denied once.
    pub(crate) fn not<F: Formula>(&mut self, f: F) -> F {
        if let Some(&known) = F::formulas(self).denials.get(&f) {
            return known;
        }
        let not = stacker::maybe_grow(64 << 10, 1 << 20, || match self.parts(f) {
            None => f.not_atom(self),
            Some((op, list)) => {
                let list: Vec<F> = list.into_iter().map(|part| self.not(part)).collect();
                self.joined(op.other(), &list)
            }
        });
        F::formulas(self).denials.insert(f, not);
        if not != F::TRUE && not != F::FALSE {
            F::formulas(self).denials.entry(not).or_insert(f);
        }
        not
    }

    /// The formula with other atoms, in the parts that are `meant`.
    pub(super) fn replaced<F: Expression>(
        &mut self,
        f: F,
        meant: fn(&Self, F) -> bool,
        how: &mut dyn FnMut(&mut Self, F) -> F,
    ) -> F {
        if !meant(self, f) {
            return f;
        }
        work::spend(4);
        let Some((op, list)) = self.parts(f) else { return how(self, f) };
        let list: Vec<F> = list.into_iter().map(|part| self.replaced(part, meant, how)).collect();
        self.joined(op, &list)
    }

    /// `X | (X & Y)` is `X`.
    pub(super) fn absorb<F: Expression>(&self, flat: &mut Vec<F>) {
        if flat.len() > ABSORBED {
            return;
        }
        let parts = |&f: &F| {
            let mut parts = self.conjuncts(f);
            parts.sort_unstable();
            parts
        };
        let all: Vec<Vec<F>> = flat.iter().map(parts).collect();
        let mut looked = 0;
        let mut weaker = |i: usize, j: usize| {
            let mut is_operand = |p: &F| {
                looked += 1;
                all[i].binary_search(p).is_ok()
            };
            // j asks for no more than i does
            all[j].len() <= all[i].len()
                && all[j].iter().all(&mut is_operand)
                && (all[j].len() < all[i].len() || j < i)
        };
        let keep: Vec<bool> =
            (0..all.len()).map(|i| !(0..all.len()).any(|j| j != i && weaker(i, j))).collect();
        work::spend((all.len() * all.len() / 8) as u64 + looked);
        let mut at = 0;
        flat.retain(|_| {
            at += 1;
            keep[at - 1]
        });
    }
}
