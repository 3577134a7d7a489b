//! Arrays whose items are compared: which item may come next so that the array can still be completed.
//!
//! Purpose: `uniqueItems` and its negation relate items to each other, so that the language of one item depends
//! on what later ones can be: before a last item that must be "a", a unique array has no "a".
//! Invariant: an item is offered only with values after which the array can be completed.  Values of a kind with few values
//! are told apart one by one, all others count as "a value like no other": a kind with very many values always has one that
//! no other item has, so nothing is lost by that for `uniqueItems`.
//! Complexity: a search over formulas, bounded by the work of the call; arrays that may end, or that have
//! values to spare, are not searched at all.
//! Rejected: finding out when the item is complete: its first token leads to a dead end already.

use rustc_hash::FxHashSet;

use crate::schema::array::{Arr, ArrId};
use crate::schema::document::JsonNodeId;
use crate::schema::formula::Formula;
use crate::schema::value::{ExprId, SchemaExpr};
use crate::schema::{count_step, Schema};

/// Values of a finite kind that are listed to see whether enough different ones exist.
pub(super) const FEW: usize = 256;
/// Values that a search for the end of an array tells apart.
const FOLLOWED: usize = 8;

/// A formula that was reached, and the kind of an earlier item that a later one may equal.
type ReachedFormula = (ArrId, Option<ExprId>);

impl Schema {
    /// Branches (item, rest) after which the array can be completed.
    pub(crate) fn next_items(&mut self, a: ArrId) -> Vec<(ExprId, ArrId)> {
        let mut out = Vec::new();
        for (sub, rest) in self.read_item(a) {
            if self.sub_is_live(sub) {
                match self.completable(sub, rest) {
                    ExprId::FALSE => {}
                    sub => out.push((sub, rest)),
                }
            }
        }
        out
    }

    /// The values of an item after which the rest can be completed.
    fn completable(&mut self, sub: ExprId, rest: ArrId) -> ExprId {
        let wants = self.wants_duplicates(rest);
        if !self.remembers(rest) {
            return if self.array_is_live(rest) { sub } else { ExprId::FALSE };
        }
        // what is remembered never keeps a unique array from ending
        if !wants && (self.may_end(rest) || self.has_to_spare(rest)) {
            return sub;
        }
        if let Some(&known) = self.answers.completable.get(&(sub, rest)) {
            return known;
        }
        let narrowed = match self.listed(sub, FEW) {
            Some(values) => self.allowed_values(sub, rest, values),
            None if self.array_is_live(rest) => self.without_needed_values(sub, rest),
            None => {
                let repeatable_values = self.repeatable_values(sub, rest);
                self.or(&repeatable_values)
            }
        };
        if self.answers.asking.is_empty() {
            self.answers.completable.insert((sub, rest), narrowed);
        }
        narrowed
    }

    /// Those of an item's few values after which the rest can be completed.
    fn allowed_values(&mut self, sub: ExprId, rest: ArrId, values: Vec<JsonNodeId>) -> ExprId {
        let all = values.len();
        let mut good = Vec::new();
        for value in values {
            let after = self.remember(rest, value);
            if self.array_is_live(after) {
                good.push(self.sub(SchemaExpr::Const(value)));
            }
        }
        if good.len() == all {
            return sub;
        }
        self.or(&good)
    }

    /// The item without the values that a later one needs.
    fn without_needed_values(&mut self, sub: ExprId, rest: ArrId) -> ExprId {
        let mut wanted = Vec::new();
        self.needed_values(rest, &mut wanted);
        let mut bad = Vec::new();
        for value in wanted {
            let after = self.remember(rest, value);
            if !self.array_is_live(after) {
                bad.push(self.sub(SchemaExpr::Const(value)));
            }
        }
        let bad = self.or(&bad);
        let others = self.not_sub(bad);
        self.and(&[sub, others])
    }

    /// The values of later items that have few of them.
    fn needed_values(&mut self, a: ArrId, out: &mut Vec<JsonNodeId>) {
        let subs: Vec<ExprId> = match self.array(a).clone() {
            Arr::And(list) | Arr::Or(list) => {
                list.iter().for_each(|&part| self.needed_values(part, out));
                return;
            }
            Arr::Items { list, from, rest } | Arr::NotItems { list, from, rest } => {
                let list = &self.arenas.lists[list.0 as usize];
                list.iter().skip(from as usize).take(FEW).chain([&rest]).copied().collect()
            }
            Arr::Contains { sub, .. } => vec![sub],
            _ => return,
        };
        for sub in subs {
            let values = self.listed(sub, FEW).unwrap_or_default();
            out.extend(values);
            crate::lists::sort_unique(out);
            if out.len() > FEW {
                out.truncate(FEW);
                return;
            }
        }
    }

    /// What an item of this kind can be so that a later one equals it and the array ends.
    fn repeatable_values(&mut self, sub: ExprId, rest: ArrId) -> Vec<ExprId> {
        let mut out = Vec::new();
        let mut seen = FxHashSet::from_iter([rest]);
        let mut todo = vec![rest];
        while let Some(a) = todo.pop() {
            count_step();
            for (next, rest) in self.read_item(a) {
                if !self.sub_is_live(next) {
                    continue;
                }
                if self.wants_duplicates(rest) {
                    let both = self.and(&[sub, next]);
                    let after_duplicate = self.after_duplicate(rest);
                    if !out.contains(&both) && self.sub_is_live(both) && self.array_is_live(after_duplicate) {
                        if both == sub {
                            return vec![sub];
                        }
                        out.push(both);
                    }
                }
                if seen.insert(rest) {
                    todo.push(rest);
                }
            }
        }
        out
    }

    /// The formula after two items were equal.
    fn after_duplicate(&mut self, a: ArrId) -> ArrId {
        self.replaced(a, Self::remembers, &mut |this, atom| match this.array(atom) {
            Arr::Unique(_) => ArrId::FALSE,
            Arr::NotUnique(_) => ArrId::TRUE,
            _ => atom,
        })
    }

    /// Number of items until the array may end, by breadth-first search over formulas; `repeated`: an item that was
    /// read already and that a later one may equal.
    pub(super) fn distance_to_end(&mut self, start: ArrId, repeated: Option<ExprId>) -> Option<usize> {
        let start = (start, repeated);
        let mut seen = FxHashSet::from_iter([start]);
        let mut level = vec![start];
        let mut best: Option<usize> = None;
        for depth in 0.. {
            if best.is_some_and(|best| best <= depth) {
                return best;
            }
            let mut next = Vec::new();
            for (a, repeated) in level {
                if self.may_end(a) {
                    return Some(depth);
                }
                match self.plain_array(a) {
                    Some(true) => {
                        let left = depth + a.facts(self).least as usize;
                        best = Some(best.map_or(left, |b| b.min(left)));
                        continue;
                    }
                    Some(false) => continue,
                    None => {}
                }
                count_step();
                for (sub, rest) in self.read_item(a) {
                    if self.sub_is_live(sub) {
                        self.successors(sub, rest, repeated, &mut next);
                    }
                }
            }
            next.retain(|reached| reached.0 != ArrId::FALSE && seen.insert(*reached));
            if next.is_empty() {
                return best;
            }
            level = next;
        }
        None
    }

    /// What an item leads to: each of few values apart, else a value like no other, or one that is paired.
    fn successors(
        &mut self,
        sub: ExprId,
        rest: ArrId,
        repeated: Option<ExprId>,
        out: &mut Vec<ReachedFormula>,
    ) {
        if !self.remembers(rest) {
            return out.push((rest, None));
        }
        if let (Some(repeated), true) = (repeated, self.wants_duplicates(rest)) {
            let both = self.and(&[repeated, sub]);
            if self.sub_is_live(both) {
                let after_duplicate = self.after_duplicate(rest);
                out.push((after_duplicate, None));
            }
        }
        match self.listed(sub, FOLLOWED) {
            Some(values) => {
                for value in values {
                    let after = self.remember(rest, value);
                    out.push((after, repeated));
                }
            }
            None => {
                out.push((rest, repeated));
                if repeated.is_none() && self.wants_duplicates(rest) {
                    out.push((rest, Some(sub)));
                }
            }
        }
    }
}
