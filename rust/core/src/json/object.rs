//! Frames of objects: which keys may come, what their values must satisfy, when the brace may close.
//!
//! Invariant: a key is offered only if some value and some end can follow it.
//! Complexity: the alternatives of a frame, once for the frame and the key.  Memory: each frame once (`frames`).

use rustc_hash::FxHashMap;

use super::frames::{GoalsId, ObjectFrameId, RecordId, RefusedKeys, ReturnFrameId};
use super::independent_keys::CountedKeys;
use super::{
    Alternative, Branches, Context, JsonMachine, ObjectFrame, ParserPhase, ReturnFrame, FREE, MAX_ORDERS,
};
use crate::automaton::{CtxId, Pos};
use crate::lexical::{TermId, Terms};
use crate::schema::by_key::Key;
use crate::schema::key_sets::{self, KeySet};
use crate::schema::live::Keys;
use crate::schema::object::Obj;
use crate::schema::options::Order;
use crate::schema::{ExprId, JsonNodeId, NameId, ObjId, ValId};
use crate::work;

/// Conjunctions from which on those that no object satisfies are sought before more are multiplied in: ten conditions
/// on one tag are a thousand, of which ten can hold.
const PRUNE_FROM: usize = 12;

/// The conjunctions that formulas multiply out to; `None`: too many.
type Products = FxHashMap<ObjId, Option<Vec<ObjId>>>;

impl JsonMachine {
    /// The frame of an object that begins under these goals.
    pub(super) fn open_object(&mut self, goals: GoalsId) -> Option<ObjectFrameId> {
        memo!(self.memos.objects, goals, {
            let list = self.frames[goals].clone();
            let mut alternatives = Vec::new();
            for (goal, &v) in list.iter().enumerate() {
                let formula = self.schema.value(v).obj;
                for (formula, order) in self.orderings(formula) {
                    let alternative = Alternative { goal: goal as u32, formula, order, from: 0 };
                    if self.alternative_is_live(&alternative, KeySet::EMPTY) {
                        alternatives.push(alternative);
                    }
                }
            }
            self.object_frame(alternatives, KeySet::EMPTY)
        })
    }

    fn alternative_is_live(&mut self, a: &Alternative, used: KeySet) -> bool {
        self.schema.object_is_live(a.formula, &self.frames.keys(a, used))
    }

    /// The formula as alternatives with one declared order each, or as it is where order is free.
    fn orderings(&mut self, formula: ObjId) -> Vec<(ObjId, u32)> {
        if formula == ObjId::FALSE {
            return Vec::new();
        }
        if self.schema.options.order == Order::Any {
            return vec![(formula, FREE)];
        }
        match self.multiply_out(formula, true, &mut FxHashMap::default()) {
            Some(list) => list
                .into_iter()
                .map(|f| {
                    let order = self.declared_order(f);
                    (f, order)
                })
                .collect(),
            None => {
                self.schema.note(
                    "not enforced: the declared order of an object whose anyOf/oneOf have too many combinations"
                        .into(),
                );
                vec![(formula, FREE)]
            }
        }
    }

    /// Disjunctions that name keys, multiplied out; `None` when that gives too many.
    fn multiply_out(&mut self, formula: ObjId, whole: bool, known: &mut Products) -> Option<Vec<ObjId>> {
        if !self.schema.branches_name_keys(formula) {
            return Some(vec![formula]);
        }
        if let Some(found) = known.get(&formula) {
            return found.clone();
        }
        let found = stacker::maybe_grow(64 << 10, 1 << 20, || self.find_product(formula, whole, known));
        known.insert(formula, found.clone());
        found
    }

    /// `whole`: nothing else is asked of the object, so that it tells much whether some object satisfies a conjunction.
    fn find_product(&mut self, formula: ObjId, whole: bool, known: &mut Products) -> Option<Vec<ObjId>> {
        match self.schema.object(formula).clone() {
            Obj::Or(list) => {
                let mut out = Vec::new();
                for &part in list.iter() {
                    out.extend(self.multiply_out(part, false, known)?);
                    if out.len() > MAX_ORDERS {
                        return None;
                    }
                }
                Some(out)
            }
            Obj::And(list) => {
                let mut out: Vec<Vec<ObjId>> = vec![Vec::with_capacity(list.len())];
                for &part in list.iter() {
                    if !self.schema.branches_name_keys(part) {
                        out.iter_mut().for_each(|left| left.push(part));
                        continue;
                    }
                    let ways = self.multiply_out(part, false, known)?;
                    if out.len() * ways.len() > MAX_ORDERS {
                        return None;
                    }
                    out = out
                        .iter()
                        .flat_map(|left| {
                            ways.iter().map(move |&way| {
                                let mut longer = left.clone();
                                longer.push(way);
                                longer
                            })
                        })
                        .collect();
                    if whole && out.len() > PRUNE_FROM {
                        out.retain(|parts| {
                            let so_far = self.schema.and(parts);
                            self.schema.rest_is_live(so_far)
                        });
                    }
                }
                let joined = out.iter().map(|parts| self.schema.and(parts));
                Some(joined.filter(|&f| f != ObjId::FALSE).collect())
            }
            _ => Some(vec![formula]),
        }
    }

    /// Keys in the order in which the text first names them.
    fn declared_order(&mut self, formula: ObjId) -> u32 {
        let mut names = Vec::new();
        self.schema.names_in_order(formula, &mut names);
        crate::lists::dedup(&mut names);
        let ranks: FxHashMap<NameId, u32> = names.iter().copied().zip(0..).collect();
        // an order of its own number even when it names nothing: undeclared keys are free in it
        let names: Box<[NameId]> = names.into();
        if names.is_empty() {
            return FREE;
        }
        let (i, new) = self.frames.orders.insert_full(names);
        if new {
            self.frames.ranks.push(ranks);
        }
        i as u32
    }

    fn object_frame(&mut self, mut list: Vec<Alternative>, used: KeySet) -> Option<ObjectFrameId> {
        if list.is_empty() {
            return None;
        }
        list = self.merge_alternatives(list);
        let used = self.recurring_keys(&list, used);
        let frame = ObjectFrame { alternatives: list.into(), used };
        Some(self.frames.object(frame))
    }

    /// The keys of a set that would be possible again if they were not remembered.
    fn recurring_keys(&mut self, list: &[Alternative], used: KeySet) -> KeySet {
        if !matches!(self.schema.key_sets.node(used), key_sets::KeySetNode::Fork { .. }) {
            return self.recurring_subset(0, list, used);
        }
        let refusals = list.iter().map(|a| {
            let from = if a.order == FREE { 0 } else { a.from };
            let mut atoms = Vec::new();
            self.schema.refusing(a.formula, &mut atoms);
            (a.order, from, atoms.into())
        });
        let refusals: Box<[RefusedKeys]> = refusals.collect();
        let ways = self.frames.refusals.intern(refusals);
        self.recurring_subset(ways, list, used)
    }

    /// `ways` tells all that the answer depends on, so that subtrees of sets are asked about once.
    fn recurring_subset(&mut self, ways: u32, list: &[Alternative], set: KeySet) -> KeySet {
        match self.schema.key_sets.node(set) {
            key_sets::KeySetNode::Empty => set,
            key_sets::KeySetNode::Leaf(name) if list.iter().any(|a| self.could_recur(a, name)) => set,
            key_sets::KeySetNode::Leaf(_) => KeySet::EMPTY,
            key_sets::KeySetNode::Fork { prefix, bit, without, with } => {
                memo!(self.memos.recurring, (ways, set), {
                    let (without, with) =
                        (self.recurring_subset(ways, list, without), self.recurring_subset(ways, list, with));
                    self.schema.key_sets.fork(prefix, bit, without, with)
                })
            }
        }
    }

    /// Whether a used key would be possible again if it were not remembered.
    fn could_recur(&self, a: &Alternative, name: NameId) -> bool {
        if a.order != FREE {
            if let Some(&rank) = self.frames.ranks[a.order as usize].get(&name) {
                return rank >= a.from;
            }
        }
        !self.schema.refuses_key(a.formula, name)
    }

    fn merge_alternatives(&mut self, list: Vec<Alternative>) -> Vec<Alternative> {
        let list = list.into_iter().map(|a| ((a.goal, a.order, a.from), a.formula)).collect();
        let merged = self.schema.or_by(list).into_iter();
        merged.map(|((goal, order, from), formula)| Alternative { goal, formula, order, from }).collect()
    }

    /// The language of the keys that may come next.
    pub(super) fn key_term(&mut self, frame: ObjectFrameId) -> TermId {
        memo!(self.memos.keys, frame, {
            let object = self.frames[frame].clone();
            let mut parts = Vec::new();
            for a in object.alternatives.iter() {
                let term = self.alternative_keys(a, object.used);
                parts.push(term);
            }
            let guard = self.schema.patterns.guard;
            let term = self.terms().or(&parts);
            let term = self.terms().and(&[term, guard]);
            self.terms().prune(term)
        })
    }

    /// Whether a key may come: the first named one that may is enough, and the language of all is not made.
    pub(super) fn has_key(&mut self, frame: ObjectFrameId) -> bool {
        if let Some(&known) = self.memos.keys.get(&frame) {
            return known != Terms::EMPTY;
        }
        memo!(self.memos.has_keys, frame, {
            let object = self.frames[frame].clone();
            self.schema.patterns.guard == Terms::ALL
                && object.alternatives.iter().any(|a| self.names_a_key(a, object.used))
                || self.key_term(frame) != Terms::EMPTY
        })
    }

    fn names_a_key(&mut self, a: &Alternative, used: KeySet) -> bool {
        let (names, _, simple) = self.unused_keys(a, used);
        names.into_iter().any(|name| self.name_possible(a, used, name, &simple))
    }

    /// The keys and patterns that an alternative names.
    fn unused_keys(&mut self, a: &Alternative, used: KeySet) -> (Vec<NameId>, Vec<TermId>, CountedKeys) {
        let (mut names, mut patterns) = (Vec::new(), Vec::new());
        self.schema.all_names(a.formula, &mut names);
        crate::lists::dedup(&mut names);
        self.schema.all_patterns(a.formula, &mut patterns);
        crate::lists::sort_unique(&mut patterns);
        let simple = self.simple(a, &names, used, patterns.is_empty());
        names.retain(|&name| !self.schema.key_sets.contains(used, name));
        (names, patterns, simple)
    }

    fn name_possible(&mut self, a: &Alternative, used: KeySet, name: NameId, simple: &CountedKeys) -> bool {
        self.key_possible(a, used, &Key::Name(name), Some(name), simple)
    }

    fn alternative_keys(&mut self, a: &Alternative, used: KeySet) -> TermId {
        let (names, patterns, simple) = self.unused_keys(a, used);
        let (allowed, refused): (Vec<NameId>, Vec<NameId>) =
            names.into_iter().partition(|&name| self.name_possible(a, used, name, &simple));
        let mut cells = Vec::new();
        for (cell, term) in self.schema.cells_of(&patterns).iter() {
            if self.key_possible(a, used, &Key::Cell(cell), None, &simple) {
                cells.push(*term);
            }
        }
        let words = |this: &mut Self, list: &[NameId]| {
            let texts = list.iter().map(|&n| this.schema.name_text(n).into()).collect();
            this.terms().words(texts)
        };
        let cells = self.terms().or(&cells);
        if cells == Terms::EMPTY {
            return words(self, &allowed);
        }
        let no = words(self, &refused);
        let used = self.schema.used_term(used);
        let (no, unused) = (self.terms().not(no), self.terms().not(used));
        let others = self.terms().and(&[cells, no, unused]);
        if cells == Terms::ALL {
            return others;
        }
        let words = words(self, &allowed);
        self.terms().or(&[words, others])
    }

    /// Whether the alternative lives on after this key.
    fn key_possible(
        &mut self,
        a: &Alternative,
        used: KeySet,
        key: &Key,
        name: Option<NameId>,
        simple: &CountedKeys,
    ) -> bool {
        work::spend(4);
        let Some(from) = self.rank_after(a, name) else { return false };
        if let Some(simple) = simple {
            return self.is_live_after_key(a, simple, key, name, from);
        }
        if let Some(name) = name {
            // one way is enough: no need for all the branches of the key
            let there = self.schema.required(vec![name]);
            let formula = self.schema.and(&[a.formula, there]);
            let keys = Keys { next: Some(name), ..self.frames.keys(&Alternative { from, ..*a }, used) };
            return self.schema.object_is_live(formula, &keys);
        }
        self.schema.read_key(a.formula, key).into_iter().any(|(sub, rest)| {
            let next = Alternative { formula: rest, from, ..*a };
            self.schema.sub_is_live(sub) && self.alternative_is_live(&next, used)
        })
    }

    /// The least rank that may follow a key; `None` when the key comes too late.
    fn rank_after(&self, a: &Alternative, name: Option<NameId>) -> Option<u32> {
        if a.order == FREE {
            return Some(0);
        }
        let ranks = &self.frames.ranks[a.order as usize];
        match name.and_then(|n| ranks.get(&n)) {
            Some(&rank) if rank < a.from => None,
            Some(&rank) => Some(rank + 1),
            None => Some(ranks.len() as u32),
        }
    }

    /// What a property with this key leads to.
    pub(super) fn return_frame(&mut self, frame: ObjectFrameId, name: NameId) -> Option<ReturnFrameId> {
        memo!(self.memos.return_frames, (frame, name), self.find_return_frame(frame, name))
    }

    fn find_return_frame(&mut self, frame: ObjectFrameId, name: NameId) -> Option<ReturnFrameId> {
        let object = self.frames[frame].clone();
        if self.schema.key_sets.contains(object.used, name) {
            return None;
        }
        let used = self.schema.key_sets.with(object.used, name);
        let mut goals: Vec<ValId> = Vec::new();
        let mut branches = Vec::new();
        for a in object.alternatives.iter() {
            let Some(from) = self.rank_after(a, Some(name)) else { continue };
            for (sub, rest) in self.schema.read_key(a.formula, &Key::Name(name)) {
                let next = Alternative { formula: rest, from, ..*a };
                if !self.schema.sub_is_live(sub) || !self.alternative_is_live(&next, used) {
                    continue;
                }
                let sub = self.without_duplicates(sub, &next, used);
                if !self.schema.sub_is_live(sub) {
                    continue;
                }
                let v = self.schema.compile_or_refuse(sub);
                branches.push((goal_index(&mut goals, v), next));
            }
        }
        if branches.is_empty() {
            return None;
        }
        let return_frame =
            ReturnFrame { goals: goals.into(), branches: Branches::Object(branches.into()), used, start: 0 };
        Some(self.frames.return_frame(return_frame))
    }

    pub(super) fn resume_object(
        &mut self,
        context: Context,
        satisfied: &[u32],
        record: RecordId,
    ) -> Option<Pos> {
        let &ReturnFrame { start, used, .. } = &self.frames[context.return_frame()];
        let branches = self.frames[context.return_frame()].properties().iter();
        let satisfied = |goal: &u32| satisfied.binary_search(goal).is_ok();
        let mut list: Vec<Alternative> = branches.filter(|(goal, _)| satisfied(goal)).map(|b| b.1).collect();
        if start != 0 {
            self.generic.texts_closed += 1;
            let value = self.read_value(start, record);
            for next in &mut list {
                next.formula = self.schema.after_value(next.formula, value);
            }
            list.retain(|next| self.alternative_is_live(next, used));
        }
        let frame = self.object_frame(list, used)?;
        let ctx = self.ctx(ParserPhase::ObjectAfter, context.parent, frame, record, context.depth);
        Some(self.pos(ctx))
    }

    /// The values of a property without those after which the object could only become one that it must differ from.
    fn without_duplicates(&mut self, sub: ExprId, next: &Alternative, used: KeySet) -> ExprId {
        if !self.schema.is_decided_by_value(next.formula) {
            return sub;
        }
        let whatever = Alternative { formula: self.schema.after_any_value(next.formula), ..*next };
        if self.alternative_is_live(&whatever, used) {
            return sub;
        }
        let (mut bad, mut known) = (KeySet::EMPTY, FxHashMap::default());
        for value in self.schema.deciding_values(next.formula) {
            let formula = self.schema.after_value(next.formula, Some(value));
            let after = Alternative { formula, ..*next };
            if !*known.entry(formula).or_insert_with(|| self.alternative_is_live(&after, used)) {
                bad = self.schema.with_seen(bad, value);
            }
        }
        let bad = self.schema.one_of(bad);
        let good = self.schema.not_sub(bad);
        self.schema.and(&[sub, good])
    }

    /// The value of a property whose text begins at an offset of the record, where a remembered one may be like it.
    fn read_value(&mut self, start: u32, record: RecordId) -> Option<JsonNodeId> {
        if !record.holds_text() {
            return None;
        }
        let text = self.frames[record][start as usize - 1..].to_vec();
        self.schema.constant_of_text(std::str::from_utf8(&text).ok()?)
    }

    /// The goals that hold if the object ends here.
    pub(super) fn object_goals(&self, frame: ObjectFrameId) -> Vec<u32> {
        let object = &self.frames[frame];
        let ended = object.alternatives.iter().filter(|a| self.schema.may_end(a.formula));
        let mut goals: Vec<u32> = ended.map(|a| a.goal).collect();
        crate::lists::sort_unique(&mut goals);
        goals
    }

    /// After the colon: the value of a property.
    pub(super) fn property_value(&mut self, context: Context, return_frame: ReturnFrameId) -> Pos {
        let mut return_frame = return_frame;
        if self.frames[return_frame].properties().iter().any(|b| self.schema.is_decided_by_value(b.1.formula))
        {
            return_frame = self.recorded_from_end(return_frame, context.record);
        }
        let goals = self.frames[return_frame].goals.clone();
        let goals = self.goal_list(&goals);
        let parent =
            self.ctx(ParserPhase::ReturnObject, context.parent, return_frame, RecordId::NONE, context.depth);
        let ctx = self.ctx(ParserPhase::Value, parent, goals, context.record, context.depth);
        self.pos(ctx)
    }

    /// What a value leads to whose text begins where a record ends.
    pub(super) fn recorded_from_end(
        &mut self,
        return_frame: ReturnFrameId,
        record: RecordId,
    ) -> ReturnFrameId {
        let start = self.frames[record].len() as u32 + 1;
        let known = ReturnFrame { start, ..self.frames[return_frame].clone() };
        self.frames.return_frame(known)
    }

    /// The context after a complete key.
    pub(super) fn after_key(&mut self, ctx: CtxId, text: &[u8]) -> Option<Pos> {
        let context = self.context(ctx);
        let name = if text.contains(&b'\\') {
            let quoted = format!("\"{}\"", std::str::from_utf8(text).ok()?);
            let text: String = serde_json::from_str(&quoted).ok()?;
            self.schema.name(&text)
        } else {
            self.schema.name(std::str::from_utf8(text).ok()?)
        };
        let return_frame = self.return_frame(context.object(), name)?;
        let mut record = context.record;
        if record.holds_text() {
            let mut more = text.to_vec();
            more.push(b'"');
            record = self.record(record, &more);
        }
        let next = self.ctx(ParserPhase::Colon, context.parent, return_frame, record, context.depth);
        Some(self.pos(next))
    }
}

/// The number of a goal in the list, added where it is new.
pub(super) fn goal_index(goals: &mut Vec<ValId>, v: ValId) -> u32 {
    match goals.iter().position(|&g| g == v) {
        Some(i) => i as u32,
        None => {
            goals.push(v);
            goals.len() as u32 - 1
        }
    }
}
