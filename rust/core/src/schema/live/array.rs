//! Satisfiability of formulas over arrays.
//!
//! Places and values are counted where a formula has no other atoms than a number of items, what they are and that they
//! differ (a matching, Kuhn 1955; a place with more values than there are places is never the bottleneck, Hall 1935);
//! others are searched by levels ([`super::seen_items`]).
//! Invariant: "no" is said only of what no array satisfies; questions that are too large are refused.
//! Complexity: up to [`PLACES`] places with as many values.  Memory: one question's.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::seen_items::FEW;
use crate::hash::{KeyedMap, KeyedSet};
use crate::schema::array::{Arr, ArrId, ItemSchemasId};
use crate::schema::key_sets::KeySet;
use crate::schema::value::{ExprId, ValId};
use crate::schema::Schema;
use crate::work;

/// Items that a witness may have.
const LONGEST: usize = 4096;
/// Items that must differ for which values are sought one by one.
const PLACES: u32 = 1024;
/// Values of a kind that are counted; more are taken for enough.
const MOST_VALUES: usize = 100_000;
/// Bytes of an item that later ones must differ from.
const REMEMBERED: usize = 1 << 16;

/// The number of items, what they are, and the earlier ones that each must differ from, as they do from each other.
pub(super) struct PlainArray {
    pub lo: u32,
    pub hi: u32,
    pub layouts: Vec<(ItemSchemasId, u32, ExprId)>,
    pub unique: Option<KeySet>,
}

impl Schema {
    /// Whether some array satisfies the formula.
    pub(crate) fn array_is_live(&mut self, a: ArrId) -> bool {
        if self.may_end(a) {
            return true;
        }
        if let Some(answer) = self.plain_array(a) {
            return answer;
        }
        self.distance_to_end(a, None).is_some()
    }

    /// `Length`, `Items` and `Unique` together are decided by counting.
    pub(super) fn plain_array(&mut self, a: ArrId) -> Option<bool> {
        let PlainArray { lo, hi, layouts, unique } = self.plain_parts(a)?;
        if lo > hi {
            return Some(false);
        }
        let longest = layouts.iter().map(|l| self.arenas.lists[l.0 .0 as usize].len()).max().unwrap_or(0);
        for i in 0..lo.min(longest as u32 + 1) {
            let sub = self.layout_item(&layouts, i);
            if !self.sub_is_live(sub) {
                return Some(false);
            }
        }
        match unique {
            Some(seen) if lo > 1 || lo > 0 && seen != KeySet::EMPTY => {
                Some(self.enough_different(&layouts, lo, seen))
            }
            _ => Some(true),
        }
    }

    /// What a formula asks that says nothing else of its items; `None`: it says more.
    pub(super) fn plain_parts(&self, a: ArrId) -> Option<PlainArray> {
        let mut plain = PlainArray { lo: 0, hi: u32::MAX, layouts: Vec::new(), unique: None };
        for part in self.conjuncts(a) {
            match *self.array(part) {
                Arr::True => {}
                Arr::Length(lo, hi) => (plain.lo, plain.hi) = (lo, hi),
                Arr::Items { list, from, rest } => plain.layouts.push((list, from, rest)),
                Arr::Unique(seen) => plain.unique = Some(seen),
                _ => return None,
            }
        }
        Some(plain)
    }

    pub(super) fn layout_item(&mut self, layouts: &[(ItemSchemasId, u32, ExprId)], i: u32) -> ExprId {
        let subs: Vec<ExprId> = layouts
            .iter()
            .map(|&(list, from, rest)| {
                self.arenas.lists[list.0 as usize].get((from + i) as usize).copied().unwrap_or(rest)
            })
            .collect();
        self.and(&subs)
    }

    /// Whether one value more or less makes no difference to an array: every place that must be filled has more
    /// values than there are places.
    pub(super) fn has_to_spare(&mut self, a: ArrId) -> bool {
        let Some(PlainArray { lo, layouts, unique, .. }) = self.plain_parts(a) else { return false };
        let spare = unique.map_or(0, |known| self.key_sets.len(known)) + lo as usize + 1;
        let mut last = None;
        (0..lo.min(FEW as u32)).all(|i| {
            let sub = self.layout_item(&layouts, i);
            if last == Some(sub) {
                return true;
            }
            last = Some(sub);
            self.sub_is_live(sub) && self.finite_values(sub, spare).is_none_or(|v| v.len() > spare)
        })
    }

    /// Whether the first `lo` items can be different from each other and from those seen: a matching of places
    /// with values (Kuhn). A place with as many values as there are places is never the bottleneck (Hall).
    fn enough_different(&mut self, layouts: &[(ItemSchemasId, u32, ExprId)], lo: u32, seen: KeySet) -> bool {
        let known = self.key_sets.len(seen);
        if lo > PLACES {
            return self.enough_alike(layouts, lo, known);
        }
        let places = lo;
        // spelled where a place has few values: nothing else is compared with them
        let mut texts: Option<KeyedSet<String>> = None;
        let mut numbers: KeyedMap<String, usize> = KeyedMap::default();
        let mut met: FxHashMap<ExprId, Option<Rc<[usize]>>> = FxHashMap::default();
        let mut domains: Vec<Rc<[usize]>> = Vec::new();
        for i in 0..places {
            let sub = self.layout_item(layouts, i);
            let domain = met.entry(sub).or_insert_with(|| {
                let values = self.finite_values(sub, places as usize + known)?;
                let texts = texts.get_or_insert_with(|| {
                    self.seen_values(seen).into_iter().map(|v| self.doc.canonical(v)).collect()
                });
                let mut number = |value: String| {
                    let next = numbers.len();
                    *numbers.entry(value).or_insert(next)
                };
                Some(values.iter().filter(|v| !texts.contains(*v)).cloned().map(&mut number).collect())
            });
            domains.extend(domain.clone().filter(|d| d.len() < places as usize));
        }
        let mut taken: FxHashMap<usize, usize> = FxHashMap::default();
        (0..domains.len()).all(|i| {
            let mut tried = FxHashSet::default();
            place(&domains, i, &mut taken, &mut tried)
        })
    }

    /// The same for very many places: each kind of item must have as many values as there are places, or the question
    /// is too large.
    fn enough_alike(&mut self, layouts: &[(ItemSchemasId, u32, ExprId)], lo: u32, known: usize) -> bool {
        let longest = layouts.iter().map(|l| self.arenas.lists[l.0 .0 as usize].len()).max().unwrap_or(0);
        let mut kinds: Vec<ExprId> =
            (0..=lo.min(longest as u32)).map(|i| self.layout_item(layouts, i)).collect();
        crate::lists::dedup(&mut kinds);
        let needed = lo as usize + known;
        let most = needed.min(MOST_VALUES);
        let enough =
            |this: &mut Self, kind: ExprId| this.finite_values(kind, most).is_none_or(|v| v.len() >= needed);
        if kinds.iter().all(|&kind| enough(self, kind)) {
            return true;
        }
        if kinds.len() > 1 {
            crate::work::refuse(crate::Error::limit(format!(
                "more than {PLACES} items of several kinds must differ from each other; simplify minItems or prefixItems"
            )));
        }
        false
    }

    /// Items that bring the array to an end.
    pub(crate) fn array_rest_witness(&mut self, mut a: ArrId) -> Option<Vec<ValId>> {
        let mut items = Vec::new();
        while !self.may_end(a) {
            if items.len() > LONGEST {
                return None;
            }
            let mut best: Option<(usize, ExprId, ArrId)> = None;
            for (sub, rest) in self.next_items(a) {
                let left = match self.distance_to_end(rest, None) {
                    Some(left) => left,
                    None => self.distance_to_end(rest, Some(sub))?,
                };
                if best.is_none_or(|b| left < b.0) {
                    best = Some((left, sub, rest));
                }
            }
            let (_, sub, rest) = best?;
            let v = self.compile_or_refuse(sub);
            let value = self.witness(v)?;
            a = rest;
            if self.remembers(a) {
                let text = self.spelled(&value, REMEMBERED)?;
                let value = self.constant_of_text(&text)?;
                a = self.remember(a, value);
            }
            items.push(v);
        }
        Some(items)
    }
}

/// An augmenting path of Kuhn's matching from a place.
fn place(
    domains: &[Rc<[usize]>],
    i: usize,
    taken: &mut FxHashMap<usize, usize>,
    tried: &mut FxHashSet<usize>,
) -> bool {
    for &value in domains[i].iter() {
        work::spend(2);
        if tried.insert(value) && taken.get(&value).copied().is_none_or(|o| place(domains, o, taken, tried)) {
            taken.insert(value, i);
            return true;
        }
    }
    false
}
