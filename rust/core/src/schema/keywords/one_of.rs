//! `oneOf`: exactly one of several formulas.
//!
//! Two branches that no value satisfies both need not exclude each other. Which those are is asked for each pair,
//! but of branches that a required key's constants tell apart (a discriminator) only those with a constant in
//! common are asked: linear in the branches, where all pairs of 400 took half a second.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::hash::KeyedMap;
use crate::lexical::Terms;
use crate::schema::by_key::Key;
use crate::schema::object::{Obj, ObjId, ShapeId};
use crate::schema::value::{ExprId, ValId};
use crate::schema::{ArrId, NameId, Schema};

/// Branches from which on a discriminator is looked for.
const SOME: usize = 4;
/// Pairs of branches that are asked whether they exclude each other.
const MOST_PAIRS: usize = 20_000;
/// Constants that the discriminator of one branch may have.
const MOST_CONSTANTS: usize = 32;

impl Schema {
    /// Exactly one of the formulas holds.
    pub(super) fn exactly_one(&mut self, list: &[ValId]) -> ValId {
        let apart = self.told_apart(list);
        let mut disjoint: FxHashMap<(usize, usize), bool> = FxHashMap::default();
        let mut denied: Vec<Option<ValId>> = vec![None; list.len()];
        let mut each = Vec::with_capacity(list.len());
        for (i, &v) in list.iter().enumerate() {
            let mut only = vec![v];
            let others = match &apart {
                Some(near) => near[i].clone(),
                None => (0..list.len()).filter(|&j| j != i).collect(),
            };
            for j in others {
                crate::work::spend(4);
                let pair = (i.min(j), i.max(j));
                let are_disjoint = match disjoint.get(&pair) {
                    Some(&known) => known,
                    // "and not the other" is always right: that they exclude each other only makes it needless
                    None if disjoint.len() >= MOST_PAIRS => false,
                    None => *disjoint.entry(pair).or_insert(self.provably_disjoint(v, list[j])),
                };
                if !are_disjoint {
                    only.push(*denied[j].get_or_insert_with(|| self.not_value(list[j])));
                }
            }
            each.push(self.and_all(&only));
        }
        self.or_all(&each)
    }

    /// For each branch those that share a constant of the discriminator with it; `None` where there is none.
    fn told_apart(&mut self, list: &[ValId]) -> Option<Vec<Vec<usize>>> {
        if list.len() < SOME {
            return None;
        }
        let tags: Option<Vec<_>> = list.iter().map(|&v| self.tags(v)).collect();
        let tags = tags?;
        let mut names = tags[0].keys().copied().collect::<Vec<NameId>>();
        names.retain(|name| tags.iter().all(|of| of.contains_key(name)));
        let holders = |name: &NameId| {
            let mut by_constant: KeyedMap<&str, Vec<usize>> = KeyedMap::default();
            for (i, of) in tags.iter().enumerate() {
                of[name].iter().for_each(|constant| by_constant.entry(constant).or_default().push(i));
            }
            by_constant
        };
        let crowd = |name: &NameId| holders(name).values().map(|v| v.len() * v.len()).sum::<usize>();
        let best = names.into_iter().min_by_key(crowd)?;
        let by_constant = holders(&best);
        let near = |i: usize| {
            let shared = tags[i][&best].iter().flat_map(|constant| by_constant[&**constant].iter().copied());
            let mut near: Vec<usize> =
                shared.filter(|&j| j != i).collect::<FxHashSet<_>>().into_iter().collect();
            near.sort_unstable();
            near
        };
        Some((0..list.len()).map(near).collect())
    }

    /// The required keys of an object whose values are a few constants, and those; `None` for what is not only
    /// objects.
    fn tags(&mut self, v: ValId) -> Option<FxHashMap<NameId, Vec<Box<str>>>> {
        let value = self.value(v).clone();
        if value.consts != 0 || value.num || value.str != Terms::EMPTY || value.arr != ArrId::FALSE {
            return None;
        }
        let (names, shapes) = self.asked_of_all(value.obj)?;
        let mut tags = FxHashMap::default();
        for name in names {
            let subs: Vec<ExprId> = shapes.iter().map(|&s| self.shape_key(s, &Key::Name(name))).collect();
            let sub = self.and(&subs);
            // met again while it is being compiled: nothing is known of it yet
            let Ok(found) = self.compile(sub) else { continue };
            if let Some(constants) = self.constants_of(found) {
                tags.insert(name, constants);
            }
        }
        Some(tags)
    }

    /// Keys that are required and shapes that hold in any case.
    fn asked_of_all(&self, o: ObjId) -> Option<(Vec<NameId>, Vec<ShapeId>)> {
        let parts = self.conjuncts(o);
        let (mut names, mut shapes) = (Vec::new(), Vec::new());
        for part in parts {
            match self.object(part) {
                Obj::Required(list) => names.extend(list.iter().copied()),
                Obj::Shape(s) => shapes.push(*s),
                _ => {}
            }
        }
        Some((names, shapes))
    }

    /// The texts of a value that is one of a few strings, `true`, `false` and `null`.
    fn constants_of(&self, v: ValId) -> Option<Vec<Box<str>>> {
        let value = self.value(v);
        if value.num || value.arr != ArrId::FALSE || value.obj != ObjId::FALSE {
            return None;
        }
        let mut constants = match value.str {
            Terms::EMPTY => Vec::new(),
            term => self.lexicon.terms.finite_words(term)?,
        };
        constants.iter_mut().for_each(|word| *word = format!("\"{word}").into());
        let bits = (0..8).filter(|bit| value.consts >> bit & 1 == 1);
        constants.extend(bits.map(|bit| Box::from(bit.to_string())));
        (constants.len() <= MOST_CONSTANTS).then_some(constants)
    }
}
