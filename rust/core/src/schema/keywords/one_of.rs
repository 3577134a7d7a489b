//! `oneOf`: exactly one of several formulas.
//!
//! Two branches that no value satisfies both need not exclude each other. Which those are is asked for each pair,
//! but of branches that are constants, or that a required key's constants tell apart (a discriminator), only those with
//! a constant in common are asked: linear in the branches, where all pairs of 400 took half a second.

use rustc_hash::FxHashMap;

use crate::hash::KeyedMap;
use crate::lexical::number::decimal::Decimal;
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
/// Pairs of branches that share a constant, from which on those are not listed: 8 MB.
const MOST_SHARED: usize = 1 << 20;
/// Branches that are no constants beside those that are.
const FEW_OTHERS: usize = 16;

/// A value that is equal to none but itself.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Constant {
    Text(Box<str>),
    Number(Decimal),
    /// `true`, `false` or `null`.
    Bit(u8),
}

impl Schema {
    /// Exactly one of the formulas holds.
    pub(super) fn exactly_one(&mut self, list: &[ValId]) -> ValId {
        let apart = self.exclude_each_other(list);
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

    /// For each branch those that share a constant with it; `None` where constants don't tell.
    fn exclude_each_other(&mut self, list: &[ValId]) -> Option<Vec<Vec<usize>>> {
        if list.len() < SOME {
            return None;
        }
        let own: Vec<Option<Vec<Constant>>> = list.iter().map(|&v| self.constants_of(v)).collect();
        let others: Vec<usize> = (0..list.len()).filter(|&i| own[i].is_none()).collect();
        if others.len() <= FEW_OTHERS && others.len() * 2 < list.len() {
            let mut near = SharedConstants::new(own.iter().map(|c| c.as_deref().unwrap_or(&[]))).near()?;
            for (i, near) in near.iter_mut().enumerate() {
                match &own[i] {
                    Some(_) => near.extend(&others),
                    None => *near = (0..list.len()).filter(|&j| j != i).collect(),
                }
            }
            return Some(near);
        }
        let tags: Option<Vec<_>> = list.iter().map(|&v| self.tags(v)).collect();
        let tags = tags?;
        let mut names = tags[0].keys().copied().collect::<Vec<NameId>>();
        names.retain(|name| tags.iter().all(|of| of.contains_key(name)));
        let sharing = |name: NameId| SharedConstants::new(tags.iter().map(|of| &of[&name][..]));
        names.into_iter().map(sharing).min_by_key(|by| by.pairs)?.near()
    }

    /// The required keys of an object whose values are a few constants, and those; `None` for what is not only
    /// objects.
    fn tags(&mut self, v: ValId) -> Option<FxHashMap<NameId, Vec<Constant>>> {
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
            if let Some(few) = self.constants_of(found).filter(|list| list.len() <= MOST_CONSTANTS) {
                tags.insert(name, few);
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

    /// The constants of a value that is one of them: texts, numbers, `true`, `false` and `null`.
    fn constants_of(&self, v: ValId) -> Option<Vec<Constant>> {
        let value = self.value(v);
        if value.arr != ArrId::FALSE || value.obj != ObjId::FALSE {
            return None;
        }
        let numbers = self.numbers(value).pieces;
        let numbers = numbers.iter().map(|piece| piece.as_point().cloned().map(Constant::Number));
        let mut constants: Vec<Constant> = numbers.collect::<Option<_>>()?;
        let words = self.lexicon.terms.finite_words(value.str)?;
        constants.extend(words.into_iter().map(Constant::Text));
        constants.extend((0..8).filter(|bit| value.consts >> bit & 1 == 1).map(Constant::Bit));
        crate::work::spend(constants.len() as u64);
        Some(constants)
    }
}

/// Lists of constants, and those that have one.
struct SharedConstants<'a> {
    lists: Vec<&'a [Constant]>,
    holders: KeyedMap<&'a Constant, Vec<usize>>,
    pairs: usize,
}

impl<'a> SharedConstants<'a> {
    fn new(lists: impl Iterator<Item = &'a [Constant]>) -> Self {
        let lists: Vec<&[Constant]> = lists.collect();
        let mut holders: KeyedMap<&Constant, Vec<usize>> = KeyedMap::default();
        for (i, list) in lists.iter().enumerate() {
            list.iter().for_each(|constant| holders.entry(constant).or_default().push(i));
        }
        let pairs = holders.values().map(|of| of.len().saturating_mul(of.len())).sum();
        SharedConstants { lists, holders, pairs }
    }

    /// For each list the others that have one of its constants too; `None` where that are too many.
    fn near(&self) -> Option<Vec<Vec<usize>>> {
        if self.pairs > MOST_SHARED {
            return None;
        }
        crate::work::spend(self.pairs as u64);
        let near = |(i, list): (usize, &&[Constant])| {
            let shared = list.iter().flat_map(|constant| &self.holders[constant]).copied();
            let mut near: Vec<usize> = shared.filter(|&j| j != i).collect();
            crate::lists::sort_unique(&mut near);
            near
        };
        Some(self.lists.iter().enumerate().map(near).collect())
    }
}
