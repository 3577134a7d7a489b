//! Branches of a formula by multiplying out: what the next value satisfies, and what is left of the formula then.
//!
//! Purpose: reading a key or an item turns a formula into branches "the value satisfies S, the rest is R".  Formulas
//! whose disjunctions would give too many are decided instead ([`super::decide`]).
//! Invariant: a value and a rest satisfy the formula together where they satisfy some branch.
//! Complexity: a conjunction multiplies the branches of its parts, up to [`MAX_BRANCHES`]; from [`PRUNE_FROM`] on, branches
//! that no value can take are searched for and dropped.  Memory: the branches of each part, for one call.

use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use super::by_key::Key;
use super::formula::{Formula, Op};
use super::value::{ExprId, ValId};
use super::{count_step, Schema};

/// The branches of parts of one formula.
type BranchMemo<F> = FxHashMap<F, Vec<(ExprId, F)>>;

/// Branches from which on those that no value can take are sought before more are multiplied in.
const PRUNE_FROM: usize = 24;

/// Ways that one value may combine with the rest of its object or array.
const MAX_BRANCHES: usize = 4096;

impl Schema {
    /// Branches (value, rest) of a formula when the value of a key, or an item, is read.
    pub(super) fn branches<F: Formula>(&mut self, f: F, key: Option<&Key>) -> Vec<(ExprId, F)> {
        self.decide(f, key).unwrap_or_else(|| self.multiply(f, key, &mut BranchMemo::default()))
    }

    fn multiply<F: Formula>(
        &mut self,
        f: F,
        key: Option<&Key>,
        known: &mut BranchMemo<F>,
    ) -> Vec<(ExprId, F)> {
        if let Some(found) = known.get(&f) {
            return found.clone();
        }
        match f.operands(self).map(|(op, list)| (op, list.to_vec())) {
            Some((Op::And, list)) => self.multiply_conjunction(&list, key, known),
            Some((Op::Or, list)) => {
                let mut out = Vec::new();
                for part in list {
                    out.extend(self.multiply_part(part, key, known));
                }
                self.merge_branches(out)
            }
            None => f.leaf_branches(self, key),
        }
    }

    /// The branches of a part, which the formula may hold more than once.
    fn multiply_part<F: Formula>(
        &mut self,
        f: F,
        key: Option<&Key>,
        known: &mut BranchMemo<F>,
    ) -> Vec<(ExprId, F)> {
        let found = stacker::maybe_grow(64 << 10, 1 << 20, || self.multiply(f, key, known));
        if f.operands(self).is_some() {
            known.insert(f, found.clone());
        }
        found
    }

    fn multiply_conjunction<F: Formula>(
        &mut self,
        list: &[F],
        key: Option<&Key>,
        known: &mut BranchMemo<F>,
    ) -> Vec<(ExprId, F)> {
        count_step();
        // parts with one branch are joined first; only the others multiply
        let mut subs = Vec::new();
        let mut rests = Vec::new();
        let mut several: Vec<Vec<(ExprId, F)>> = Vec::new();
        for &part in list {
            let branches = self.multiply_part(part, key, known);
            match branches.len() {
                0 => return Vec::new(),
                1 => {
                    subs.push(branches[0].0);
                    rests.push(branches[0].1);
                }
                _ => several.push(branches),
            }
        }
        let mut out = vec![(self.and(&subs), self.and(&rests))];
        for branches in several {
            if out.len() * branches.len() > MAX_BRANCHES {
                too_many_branches();
            }
            let mut next = Vec::with_capacity(out.len() * branches.len());
            for &(s, r) in &out {
                for &(t, q) in &branches {
                    count_step();
                    let both = (self.and(&[s, t]), self.and(&[r, q]));
                    if both.0 != ExprId::FALSE && both.1 != F::FALSE {
                        next.push(both);
                    }
                }
            }
            out = self.merge_branches(next);
            if out.len() > PRUNE_FROM {
                out = self.condense(out);
            }
        }
        out
    }

    /// Branches whose values or rests nothing can be are dropped, and those with equal values joined: "is a, and
    /// not b" equals "is a" once it is looked into, so discriminated branches collapse before they multiply.
    fn condense<F: Formula>(&mut self, list: Vec<(ExprId, F)>) -> Vec<(ExprId, F)> {
        let mut by_value: IndexMap<ValId, (ExprId, Vec<F>)> = Default::default();
        for (sub, rest) in list {
            let v = self.compile_or_refuse(sub);
            if self.is_live(v) && rest.may_be_live(self) {
                by_value.entry(v).or_insert((sub, Vec::new())).1.push(rest);
            }
        }
        by_value.into_values().map(|(sub, rests)| (sub, self.or(&rests))).collect()
    }

    /// Branches with the same rest are one; so are those with the same value.
    fn merge_branches<F: Formula>(&mut self, list: Vec<(ExprId, F)>) -> Vec<(ExprId, F)> {
        let by_rest = self.or_by(list.into_iter().map(|(s, r)| (r, s)).collect());
        self.or_by(by_rest.into_iter().map(|(r, s)| (s, r)).collect())
    }
}

fn too_many_branches() -> ! {
    crate::work::refuse(crate::Error::limit(format!(
        "one property or item has more than {MAX_BRANCHES} ways to satisfy the schema; simplify its anyOf/oneOf"
    )))
}
