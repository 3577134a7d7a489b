//! Formulas over arrays, and their derivative by an item.

use super::by_key::MAX_BRANCHES;
use super::decide::Leaf;
use super::document::JId;
use super::used::KeySet;
use super::value::{dedup, SubId};
use super::Schema;

/// The number of a formula over arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrId(pub u32);

impl ArrId {
    pub const TRUE: ArrId = ArrId(0);
    pub const FALSE: ArrId = ArrId(1);
}

/// What the form of a formula over arrays tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    /// The array may end here.
    pub ends: bool,
    /// Finished items must be remembered; an item may have to be equal to an earlier one.
    pub remembers: bool,
    pub wants_duplicates: bool,
    /// Atoms and operations, those that are named twice counted twice.
    pub size: u32,
}

/// The number of an interned list of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListId(pub u32);

/// A positive formula about the items that are still to come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Arr {
    True,
    False,
    /// The next items satisfy the list from `from` on, later ones `rest`.
    Items {
        list: ListId,
        from: u32,
        rest: SubId,
    },
    /// Some item does not.
    NotItems {
        list: ListId,
        from: u32,
        rest: SubId,
    },
    /// The number of items lies in `lo..=hi`.
    Length(u32, u32),
    /// The number of items that satisfy `sub` lies in `lo..=hi`.
    Contains {
        sub: SubId,
        lo: u32,
        hi: u32,
    },
    /// The items differ from each other and from those seen.
    Unique(KeySet),
    /// Two items are equal, or one equals one that was seen.
    NotUnique(KeySet),
    And(Box<[ArrId]>),
    Or(Box<[ArrId]>),
}

impl Schema {
    pub(crate) fn arr(&mut self, arr: Arr) -> ArrId {
        if let Arr::And(list) | Arr::Or(list) = &arr {
            crate::work::spend(8 + 2 * list.len() as u64);
        }
        let facts = self.array_facts(&arr);
        let (i, new) = self.arenas.arrs.insert_full(arr);
        if new {
            self.arenas.arr_facts.push(facts);
        }
        ArrId(i as u32)
    }

    /// What the form of a formula tells, from what is known of its operands, as for objects.
    fn array_facts(&self, arr: &Arr) -> Facts {
        let of = |a: &ArrId| self.arenas.arr_facts[a.0 as usize];
        let join = |list: &[ArrId], all: bool| Facts {
            ends: if all { list.iter().all(|a| of(a).ends) } else { list.iter().any(|a| of(a).ends) },
            remembers: list.iter().any(|a| of(a).remembers),
            wants_duplicates: list.iter().any(|a| of(a).wants_duplicates),
            size: list.iter().fold(1u32, |n, a| n.saturating_add(of(a).size)),
        };
        let plain = |ends| Facts { ends, size: 1, ..Facts::default() };
        match arr {
            Arr::True | Arr::Items { .. } => plain(true),
            Arr::False | Arr::NotItems { .. } => plain(false),
            Arr::Length(lo, _) | Arr::Contains { lo, .. } => plain(*lo == 0),
            Arr::Unique(_) => Facts { remembers: true, ..plain(true) },
            Arr::NotUnique(_) => Facts { remembers: true, wants_duplicates: true, ..plain(false) },
            Arr::And(list) => join(list, true),
            Arr::Or(list) => join(list, false),
        }
    }

    pub(crate) fn arr_facts(&self, a: ArrId) -> Facts {
        self.arenas.arr_facts[a.0 as usize]
    }

    pub(crate) fn array(&self, id: ArrId) -> &Arr {
        &self.arenas.arrs[id.0 as usize]
    }

    pub(crate) fn list(&mut self, list: Vec<SubId>) -> ListId {
        ListId(self.arenas.lists.insert_full(list.into()).0 as u32)
    }

    pub(crate) fn items(&mut self, list: ListId, from: u32, rest: SubId) -> ArrId {
        let done = from as usize >= self.arenas.lists[list.0 as usize].len();
        match (done, rest) {
            (true, SubId::TRUE) => ArrId::TRUE,
            (true, _) => self.arr(Arr::Items { list: ListId(0), from: 0, rest }),
            _ => self.arr(Arr::Items { list, from, rest }),
        }
    }

    fn not_items(&mut self, list: ListId, from: u32, rest: SubId) -> ArrId {
        match self.items(list, from, rest) {
            ArrId::TRUE => ArrId::FALSE,
            id => match *self.array(id) {
                Arr::Items { list, from, rest } => self.arr(Arr::NotItems { list, from, rest }),
                _ => unreachable!("items() gives Items"),
            },
        }
    }

    pub(crate) fn length(&mut self, lo: u32, hi: u32) -> ArrId {
        match (lo, hi) {
            (0, u32::MAX) => ArrId::TRUE,
            _ if lo > hi => ArrId::FALSE,
            _ => self.arr(Arr::Length(lo, hi)),
        }
    }

    pub(crate) fn contains(&mut self, sub: SubId, lo: u32, hi: u32) -> ArrId {
        match (lo, hi, sub) {
            (0, u32::MAX, _) => ArrId::TRUE,
            _ if lo > hi => ArrId::FALSE,
            (_, _, SubId::TRUE) => self.length(lo, hi),
            (0, _, SubId::FALSE) => ArrId::TRUE,
            (_, _, SubId::FALSE) => ArrId::FALSE,
            _ => self.arr(Arr::Contains { sub, lo, hi }),
        }
    }

    pub(crate) fn and_arrays(&mut self, list: &[ArrId]) -> ArrId {
        let mut flat: Vec<ArrId> = Vec::new();
        for &a in list {
            match self.array(a) {
                Arr::True => {}
                Arr::False => return ArrId::FALSE,
                Arr::And(inner) => flat.extend(inner.iter()),
                _ => flat.push(a),
            }
        }
        dedup(&mut flat);
        let lengths: Vec<(u32, u32)> = flat
            .iter()
            .filter_map(|&a| match self.array(a) {
                Arr::Length(lo, hi) => Some((*lo, *hi)),
                _ => None,
            })
            .collect();
        if lengths.len() > 1 {
            let lo = lengths.iter().map(|l| l.0).max().unwrap_or(0);
            let hi = lengths.iter().map(|l| l.1).min().unwrap_or(u32::MAX);
            flat.retain(|&a| !matches!(self.arenas.arrs[a.0 as usize], Arr::Length(..)));
            match self.length(lo, hi) {
                ArrId::FALSE => return ArrId::FALSE,
                merged => flat.push(merged),
            }
        }
        // the order of operands means nothing for arrays: sorted, so that equal formulas meet
        flat.sort_unstable();
        match flat.len() {
            0 => ArrId::TRUE,
            1 => flat[0],
            _ => self.arr(Arr::And(flat.into())),
        }
    }

    pub(crate) fn or_arrays(&mut self, list: &[ArrId]) -> ArrId {
        let mut flat: Vec<ArrId> = Vec::new();
        for &a in list {
            match self.array(a) {
                Arr::False => {}
                Arr::True => return ArrId::TRUE,
                Arr::Or(inner) => flat.extend(inner.iter()),
                _ => flat.push(a),
            }
        }
        crate::work::spend(1 + flat.len() as u64 / 2);
        flat.sort_unstable();
        flat.dedup();
        let parts = |a: ArrId| -> Vec<ArrId> {
            match self.array(a) {
                Arr::And(inner) => inner.to_vec(),
                _ => vec![a],
            }
        };
        if (2..=64).contains(&flat.len()) {
            let all: Vec<Vec<ArrId>> = flat.iter().map(|&a| parts(a)).collect();
            let mut looked = 0;
            let mut weaker = |i: usize, j: usize| {
                let mut held = |p: &ArrId| {
                    looked += 1 + all[i].len() as u64 / 8;
                    all[i].contains(p)
                };
                j != i && all[j].iter().all(&mut held) && (all[j].len() < all[i].len() || j < i)
            };
            let keep: Vec<bool> = (0..all.len()).map(|i| !(0..all.len()).any(|j| weaker(i, j))).collect();
            crate::work::spend(looked);
            let mut at = 0;
            flat.retain(|_| {
                at += 1;
                keep[at - 1]
            });
        }
        match flat.len() {
            0 => ArrId::FALSE,
            1 => flat[0],
            _ => self.arr(Arr::Or(flat.into())),
        }
    }

    pub(crate) fn not_array(&mut self, a: ArrId) -> ArrId {
        if let Some(&known) = self.arenas.not_arrs.get(&a) {
            return known;
        }
        let not = stacker::maybe_grow(64 << 10, 1 << 20, || self.find_not_array(a));
        self.arenas.not_arrs.insert(a, not);
        if not != ArrId::TRUE && not != ArrId::FALSE {
            self.arenas.not_arrs.entry(not).or_insert(a);
        }
        not
    }

    fn find_not_array(&mut self, a: ArrId) -> ArrId {
        match self.array(a).clone() {
            Arr::True => ArrId::FALSE,
            Arr::False => ArrId::TRUE,
            Arr::Items { list, from, rest } => self.not_items(list, from, rest),
            Arr::NotItems { list, from, rest } => self.items(list, from, rest),
            Arr::Length(lo, hi) => {
                let below = if lo > 0 { self.length(0, lo - 1) } else { ArrId::FALSE };
                let above = if hi < u32::MAX { self.length(hi + 1, u32::MAX) } else { ArrId::FALSE };
                self.or_arrays(&[below, above])
            }
            Arr::Contains { sub, lo, hi } => {
                let below = if lo > 0 { self.contains(sub, 0, lo - 1) } else { ArrId::FALSE };
                let above = if hi < u32::MAX { self.contains(sub, hi + 1, u32::MAX) } else { ArrId::FALSE };
                self.or_arrays(&[below, above])
            }
            Arr::Unique(seen) => self.arr(Arr::NotUnique(seen)),
            Arr::NotUnique(seen) => self.arr(Arr::Unique(seen)),
            Arr::And(list) => {
                let list: Vec<ArrId> = list.iter().map(|&x| self.not_array(x)).collect();
                self.or_arrays(&list)
            }
            Arr::Or(list) => {
                let list: Vec<ArrId> = list.iter().map(|&x| self.not_array(x)).collect();
                self.and_arrays(&list)
            }
        }
    }

    /// Whether finished items must be remembered.
    pub(crate) fn remembers(&self, a: ArrId) -> bool {
        self.arr_facts(a).remembers
    }

    /// Whether an item may have to be equal to an earlier one.
    pub(crate) fn wants_duplicates(&self, a: ArrId) -> bool {
        self.arr_facts(a).wants_duplicates
    }

    /// The formula after an item with this value was read and found good.
    pub(crate) fn remember(&mut self, a: ArrId, value: JId) -> ArrId {
        match self.array(a).clone() {
            Arr::Unique(seen) => {
                let seen = self.with_seen(seen, value);
                self.arr(Arr::Unique(seen))
            }
            Arr::NotUnique(seen) => {
                let seen = self.with_seen(seen, value);
                self.arr(Arr::NotUnique(seen))
            }
            Arr::And(list) => {
                let list: Vec<ArrId> = list.iter().map(|&x| self.remember(x, value)).collect();
                self.and_arrays(&list)
            }
            Arr::Or(list) => {
                let list: Vec<ArrId> = list.iter().map(|&x| self.remember(x, value)).collect();
                self.or_arrays(&list)
            }
            _ => a,
        }
    }

    /// Branches (item, rest) when an item is read.
    pub(crate) fn read_item(&mut self, a: ArrId) -> Vec<(SubId, ArrId)> {
        self.decide(a, None).unwrap_or_else(|| self.multiply_items(a))
    }

    /// What an atom says of the next item.
    pub(super) fn array_leaf(&mut self, a: ArrId) -> Leaf<ArrId> {
        match self.array(a).clone() {
            Arr::Items { list, from, rest } => {
                Leaf::asks(self.item_at(list, from, rest), self.items(list, from + 1, rest))
            }
            Arr::NotItems { list, from, rest } => {
                let sub = self.item_at(list, from, rest);
                let held = self.not_items(list, from + 1, rest);
                Leaf { sub, held, failed: ArrId::TRUE, always: Some(held) }
            }
            Arr::Length(_, 0) => Leaf::sure(ArrId::FALSE),
            Arr::Length(lo, hi) => {
                let hi = if hi == u32::MAX { hi } else { hi - 1 };
                Leaf::sure(self.length(lo.saturating_sub(1), hi))
            }
            Arr::Contains { sub, hi: 0, .. } => Leaf { sub, held: ArrId::FALSE, failed: a, always: None },
            Arr::Contains { sub, lo, hi } => {
                let fewer = if hi == u32::MAX { hi } else { hi - 1 };
                let held = self.contains(sub, lo.saturating_sub(1), fewer);
                // counting one too few never helps, so "not" need not be shown
                Leaf { sub, held, failed: a, always: (hi == u32::MAX).then_some(a) }
            }
            Arr::Unique(seen) => {
                let sub = self.one_of(seen);
                Leaf { sub, held: ArrId::FALSE, failed: a, always: None }
            }
            Arr::NotUnique(seen) => {
                let sub = self.one_of(seen);
                Leaf { sub, held: ArrId::TRUE, failed: a, always: Some(a) }
            }
            Arr::True | Arr::False | Arr::And(_) | Arr::Or(_) => Leaf::sure(a),
        }
    }

    /// The branches, with disjunctions multiplied out.
    fn multiply_items(&mut self, a: ArrId) -> Vec<(SubId, ArrId)> {
        match self.array(a).clone() {
            Arr::And(list) => {
                let mut out = vec![(SubId::TRUE, ArrId::TRUE)];
                for &part in list.iter() {
                    let branches = self.multiply_items(part);
                    if out.len() * branches.len() > MAX_BRANCHES {
                        self.too_many_branches();
                        return Vec::new();
                    }
                    let mut next = Vec::new();
                    for &(s, r) in &out {
                        for &(t, q) in &branches {
                            let both = (self.and_subs(&[s, t]), self.and_arrays(&[r, q]));
                            if both.0 != SubId::FALSE && both.1 != ArrId::FALSE {
                                next.push(both);
                            }
                        }
                    }
                    out = self.merge_items(next);
                    if out.len() > super::by_key::PRUNE_FROM {
                        out.retain(|b| self.sub_is_live(b.0));
                    }
                }
                out
            }
            Arr::Or(list) => {
                let mut out = Vec::new();
                for &part in list.iter() {
                    out.extend(self.multiply_items(part));
                }
                self.merge_items(out)
            }
            _ => {
                let leaf = self.array_leaf(a);
                self.leaf_branches(leaf)
            }
        }
    }

    fn item_at(&self, list: ListId, from: u32, rest: SubId) -> SubId {
        self.arenas.lists[list.0 as usize].get(from as usize).copied().unwrap_or(rest)
    }

    fn merge_items(&mut self, list: Vec<(SubId, ArrId)>) -> Vec<(SubId, ArrId)> {
        if list.len() < 2 {
            return list;
        }
        let mut by_rest: indexmap::IndexMap<ArrId, Vec<SubId>> = Default::default();
        for (s, r) in list {
            by_rest.entry(r).or_default().push(s);
        }
        let mut by_sub: indexmap::IndexMap<SubId, Vec<ArrId>> = Default::default();
        for (r, subs) in by_rest {
            let s = self.or_subs(&subs);
            by_sub.entry(s).or_default().push(r);
        }
        by_sub.into_iter().map(|(s, rests)| (s, self.or_arrays(&rests))).collect()
    }

    /// Whether the array may end here.
    pub(crate) fn may_end_array(&self, a: ArrId) -> bool {
        self.arr_facts(a).ends
    }
}
