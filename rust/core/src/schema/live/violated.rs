//! Violations of negated shapes: each negated shape of a conjunction needs a key, an old or a new one, whose value it does
//! not allow.
//!
//! A search with backtracking, shape by shape.  After as many dead ends as there are shapes the one that failed last goes
//! before all others and the search begins anew, so that one that no key can violate is found before all combinations of
//! the others are tried (Lecoutre, Sais, Tabary & Vidal, "Reasoning from last conflict(s) in constraint programming",
//! Artificial Intelligence 173, 2009).
//! Complexity: such a pass is the shapes times the keys that they name, for each dead end; each shape begins one anew at
//! most, and only then are all combinations tried, within the call's work.  Memory: for one search, the keys that its
//! shapes name and what their values must satisfy.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::object::{Conjunction, Keys};
use crate::schema::by_key::Key;
use crate::schema::object::ShapeId;
use crate::schema::value::{ExprId, SchemaExpr};
use crate::schema::{count_step, NameId, Schema};

/// Keys that were chosen, each with what its value must satisfy.
type ChosenKeys = Vec<(NameId, ExprId)>;

struct Search<'a> {
    conj: &'a Conjunction,
    keys: &'a Keys<'a>,
    /// The negated shapes in the order in which they are violated.
    order: Vec<ShapeId>,
    /// Dead ends that are left to this pass, and the shape whose was the last.
    patience: usize,
    stuck: Option<usize>,
    /// The keys that the shapes name, and what the conjunction asks of the values of keys: found once.
    named: Option<Arc<[NameId]>>,
    asked: FxHashMap<NameId, ExprId>,
}

/// Where the search stands: the shape that must not hold, what was chosen before, and how many ways there were.
struct SearchLevel<'a> {
    at: usize,
    shape: ShapeId,
    chosen: &'a ChosenKeys,
    ways: u32,
}

impl Schema {
    /// Chooses a key for each negated shape, then enough keys for the rest of the conjunction.
    pub(super) fn violate(
        &mut self,
        conj: &Conjunction,
        chosen: ChosenKeys,
        keys: &Keys,
    ) -> Option<ChosenKeys> {
        let mut order = conj.violated.clone();
        order.retain(|&shape| !self.is_violated(shape, &chosen));
        let shapes = order.len();
        let (named, asked) = (None, FxHashMap::default());
        let mut search = Search { conj, keys, order, patience: 0, stuck: None, named, asked };
        for _ in 1..shapes {
            search.patience = shapes;
            let found = self.violate_from(&mut search, 0, chosen.clone());
            match search.stuck.take() {
                Some(at) => search.order[..=at].rotate_right(1),
                None => return found,
            }
        }
        search.patience = usize::MAX;
        self.violate_from(&mut search, 0, chosen)
    }

    fn violate_from(&mut self, search: &mut Search, i: usize, chosen: ChosenKeys) -> Option<ChosenKeys> {
        count_step();
        if chosen.len() > search.conj.hi as usize {
            return None;
        }
        crate::work::spend(1 + chosen.len() as u64);
        let Some(&shape) = search.order.get(i) else {
            return self.find_distinct(search.conj, chosen, search.keys);
        };
        if self.is_violated(shape, &chosen) {
            return self.violate_from(search, i + 1, chosen);
        }
        let mut level = SearchLevel { at: i, shape, chosen: &chosen, ways: 0 };
        let mut found = self.by_chosen_key(search, &mut level);
        if found.is_none() && search.stuck.is_none() {
            found = self.by_named_key(search, &mut level);
        }
        if found.is_none() && search.stuck.is_none() && !self.only_named(shape) {
            found = self.by_other_key(search, &mut level);
        }
        if level.ways == 0 {
            search.patience -= 1;
            if search.patience == 0 {
                search.stuck = Some(i);
            }
        }
        found
    }

    /// Whether the shape plainly allows no value of some key that was chosen: no way narrows less.
    fn is_violated(&mut self, shape: ShapeId, chosen: &ChosenKeys) -> bool {
        chosen.iter().any(|&(name, own)| {
            let sub = self.shape_key(shape, &Key::Name(name));
            self.excludes(sub, own)
        })
    }

    fn excludes(&mut self, sub: ExprId, own: ExprId) -> bool {
        sub == ExprId::FALSE
            || self.is_tag(sub) && self.is_tag(own) && {
                let (sub, own) = (self.compile_or_refuse(sub), self.compile_or_refuse(own));
                self.plainly_apart(sub, own)
            }
    }

    /// Whether an expression names its values: they are told apart without building what other schemas say.
    fn is_tag(&self, expr: ExprId) -> bool {
        match &self.arenas.subs[expr.0 as usize] {
            SchemaExpr::Const(_) => true,
            SchemaExpr::Node(node, _) => {
                ["const", "enum"].iter().any(|key| self.doc.key(*node, key).is_some())
            }
            SchemaExpr::And(parts) => parts.iter().any(|&part| self.is_tag(part)),
            _ => false,
        }
    }

    /// Takes a way and goes on with the next shape. `Some`: the answer, which is none where the pass has ended.
    fn take(
        &mut self,
        search: &mut Search,
        level: &mut SearchLevel,
        next: ChosenKeys,
    ) -> Option<Option<ChosenKeys>> {
        level.ways += 1;
        let found = self.violate_from(search, level.at + 1, next);
        (found.is_some() || search.stuck.is_some()).then_some(found)
    }

    fn by_chosen_key(&mut self, search: &mut Search, level: &mut SearchLevel) -> Option<ChosenKeys> {
        let SearchLevel { shape, chosen, .. } = *level;
        for at in 0..chosen.len() {
            let (name, own) = chosen[at];
            let Some(both) = self.violation(shape, &Key::Name(name), |_| own) else { continue };
            let mut next = chosen.clone();
            next[at].1 = both;
            if let Some(answer) = self.take(search, level, next) {
                return answer;
            }
        }
        None
    }

    fn by_named_key(&mut self, search: &mut Search, level: &mut SearchLevel) -> Option<ChosenKeys> {
        let SearchLevel { shape, chosen, .. } = *level;
        let named = match &search.named {
            _ if self.only_named(shape) => self.shape(shape).props.iter().map(|p| p.0).collect(),
            Some(known) => known.clone(),
            None => search.named.insert(self.named(search.conj).into()).clone(),
        };
        for &name in named.iter() {
            crate::work::spend(2 + chosen.len() as u64 / 32);
            if chosen.iter().any(|c| c.0 == name) || !self.may_add(search.conj, name, search.keys) {
                continue;
            }
            let key = Key::Name(name);
            let (shapes, asked) = (&search.conj.shapes, &mut search.asked);
            let own = |this: &mut Self| *asked.entry(name).or_insert_with(|| this.value_at(shapes, &key));
            let Some(both) = self.violation(shape, &key, own) else { continue };
            let mut next = chosen.clone();
            next.push((name, both));
            if let Some(answer) = self.take(search, level, next) {
                return answer;
            }
        }
        None
    }

    fn by_other_key(&mut self, search: &mut Search, level: &mut SearchLevel) -> Option<ChosenKeys> {
        let SearchLevel { shape, chosen, .. } = *level;
        for (cell, term) in self.cells(search.conj).iter().map(|c| (&c.0, c.1)) {
            let key = Key::Cell(cell);
            let own = |this: &mut Self| this.value_at(&search.conj.shapes, &key);
            let Some(both) = self.violation(shape, &key, own) else { continue };
            let Some(name) = self.fresh(search.conj, term, chosen, search.keys) else { continue };
            let mut next = chosen.clone();
            next.push((name, both));
            if let Some(answer) = self.take(search, level, next) {
                return answer;
            }
        }
        None
    }

    /// Whether no key can violate the shape but those that it names.
    fn only_named(&self, shape: ShapeId) -> bool {
        let shape = self.shape(shape);
        shape.patterns.is_empty() && shape.rest == ExprId::TRUE
    }

    /// The values at a key that a shape does not allow, where some of its own are among them.
    fn violation(
        &mut self,
        shape: ShapeId,
        key: &Key,
        own: impl FnOnce(&mut Self) -> ExprId,
    ) -> Option<ExprId> {
        let sub = self.shape_key(shape, key);
        if sub == ExprId::TRUE {
            return None;
        }
        let own = own(self);
        let both = if self.excludes(sub, own) {
            own
        } else {
            let not = self.not_sub(sub);
            self.and(&[own, not])
        };
        self.sub_is_live(both).then_some(both)
    }
}
