//! Satisfiability of formulas over arrays.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::schema::array::{Arr, ArrId, ListId, SeenId};
use crate::schema::value::{SubId, FALSE, NULL, TRUE};
use crate::schema::Schema;

/// Items that a witness may have.
const LONGEST: usize = 4096;
/// Values of a finite kind that are listed to see whether enough different ones exist.
const FEW: usize = 256;

impl Schema {
    /// Whether some array satisfies the formula.
    pub(crate) fn array_is_live(&mut self, a: ArrId) -> bool {
        if self.may_end_array(a) {
            return true;
        }
        if let Some(answer) = self.plain_array(a) {
            return answer;
        }
        self.distance_to_end(a).is_some()
    }

    /// `Length`, `Items` and `Unique` together are decided by counting.
    fn plain_array(&mut self, a: ArrId) -> Option<bool> {
        let parts = match self.array(a) {
            Arr::And(list) => list.to_vec(),
            _ => vec![a],
        };
        let (mut lo, mut layouts, mut unique) = (0, Vec::new(), None);
        for part in parts {
            match *self.array(part) {
                Arr::Length(least, _) => lo = least,
                Arr::Items { list, from, rest } => layouts.push((list, from, rest)),
                Arr::Unique(seen) => unique = Some(seen),
                _ => return None,
            }
        }
        let hi = self.array_limit(a);
        if lo > hi {
            return Some(false);
        }
        let longest = layouts.iter().map(|l| self.lists[l.0 .0 as usize].len()).max().unwrap_or(0);
        for i in 0..lo.min(longest as u32 + 1) {
            let sub = self.layout_item(&layouts, i);
            if !self.sub_is_live(sub) {
                return Some(false);
            }
        }
        match unique {
            Some(seen) if lo > 1 || lo > 0 && seen != SeenId(0) => {
                Some(self.enough_different(&layouts, lo, seen))
            }
            _ => Some(true),
        }
    }

    fn array_limit(&self, a: ArrId) -> u32 {
        match self.array(a) {
            Arr::Length(_, hi) => *hi,
            Arr::And(list) => list.iter().map(|&p| self.array_limit(p)).min().unwrap_or(u32::MAX),
            _ => u32::MAX,
        }
    }

    fn layout_item(&mut self, layouts: &[(ListId, u32, SubId)], i: u32) -> SubId {
        let subs: Vec<SubId> = layouts
            .iter()
            .map(|&(list, from, rest)| {
                self.lists[list.0 as usize].get((from + i) as usize).copied().unwrap_or(rest)
            })
            .collect();
        self.and_subs(&subs)
    }

    /// Whether the first `lo` items can be different from each other and from those seen: a matching of places
    /// with values (Kuhn). A place with as many values as there are places is never the bottleneck (Hall).
    fn enough_different(&mut self, layouts: &[(ListId, u32, SubId)], lo: u32, seen: SeenId) -> bool {
        let seen: FxHashSet<String> =
            self.seen[seen.0 as usize].iter().map(|&v| self.doc.canonical(v)).collect();
        let places = lo.min(FEW as u32);
        let mut numbers: FxHashMap<String, usize> = FxHashMap::default();
        let mut known: FxHashMap<SubId, Option<Rc<[usize]>>> = FxHashMap::default();
        let mut domains: Vec<Rc<[usize]>> = Vec::new();
        for i in 0..places {
            let sub = self.layout_item(layouts, i);
            let domain = known.entry(sub).or_insert_with(|| {
                let values = self.finite_values(sub, FEW + seen.len())?;
                let mut number = |value: String| {
                    let next = numbers.len();
                    *numbers.entry(value).or_insert(next)
                };
                Some(values.into_iter().filter(|v| !seen.contains(v)).map(&mut number).collect())
            });
            domains.extend(domain.clone().filter(|d| d.len() < places as usize));
        }
        let mut taken: FxHashMap<usize, usize> = FxHashMap::default();
        (0..domains.len()).all(|i| {
            let mut tried = FxHashSet::default();
            place(&domains, i, &mut taken, &mut tried)
        })
    }

    /// All values, as canonical texts, where they are few; `None` when there are many or none can tell.
    pub(crate) fn finite_values(&mut self, s: SubId, limit: usize) -> Option<Vec<String>> {
        let v = self.compile_or_none(s);
        let value = self.value(v).clone();
        if self.array_is_live(value.arr) || self.object_is_live(value.obj, &super::Keys::all()) {
            return None;
        }
        let mut out = Vec::new();
        for (bit, word) in [(NULL, "null"), (TRUE, "true"), (FALSE, "false")] {
            if value.consts & bit != 0 {
                out.push(word.to_string());
            }
        }
        let numbers = self.numbers(&value);
        out.extend(numbers.finite(limit)?.iter().map(|d| d.short()));
        if self.lexicon.terms.live(value.str) {
            let count = self.lexicon.terms.cardinality(value.str, limit)?;
            let words = self.lexicon.terms.finite_words(value.str);
            match words {
                Some(words) => out.extend(words.iter().map(|w| serde_json::to_string(w).expect("a string"))),
                // strings of a finite pattern: their number counts, not their text
                None => out.extend((0..count).map(|i| format!("\"\u{0}{i}\""))),
            }
        }
        (out.len() <= limit).then_some(out)
    }

    /// Number of items until the array may end, by breadth-first search over formulas.
    fn distance_to_end(&mut self, start: ArrId) -> Option<usize> {
        let mut seen = FxHashSet::from_iter([start]);
        let mut level = vec![start];
        for depth in 0.. {
            if level.iter().any(|&a| self.may_end_array(a)) {
                return Some(depth);
            }
            let mut next = Vec::new();
            for a in level {
                if !self.spend() {
                    return Some(depth);
                }
                for (sub, rest) in self.read_item(a) {
                    if !seen.contains(&rest) && self.sub_is_live(sub) {
                        seen.insert(rest);
                        next.push(rest);
                    }
                }
            }
            if next.is_empty() {
                return None;
            }
            level = next;
        }
        None
    }

    /// A short array, as compact JSON.
    pub(super) fn array_witness(&mut self, a: ArrId) -> Option<String> {
        self.array_rest_witness(a).map(|items| format!("[{}]", items.join(",")))
    }

    /// Items that bring the array to an end.
    pub(crate) fn array_rest_witness(&mut self, mut a: ArrId) -> Option<Vec<String>> {
        let mut items = Vec::new();
        while !self.may_end_array(a) {
            if items.len() > LONGEST {
                return None;
            }
            let mut best: Option<(usize, SubId, ArrId)> = None;
            for (sub, rest) in self.read_item(a) {
                if !self.sub_is_live(sub) || !self.array_is_live(rest) {
                    continue;
                }
                let left = match self.plain_array(rest) {
                    Some(_) => 0,
                    None => self.distance_to_end(rest)?,
                };
                if best.is_none_or(|b| left < b.0) {
                    best = Some((left, sub, rest));
                }
            }
            let (_, sub, rest) = best?;
            let v = self.compile_or_none(sub);
            let text = self.witness(v)?;
            a = rest;
            if self.remembers(a) {
                let value = self.constant_of_text(&text)?;
                a = self.remember(a, value);
            }
            items.push(text.to_string());
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
        if tried.insert(value) && taken.get(&value).copied().is_none_or(|o| place(domains, o, taken, tried)) {
            taken.insert(value, i);
            return true;
        }
    }
    false
}
