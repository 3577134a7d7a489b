//! Sets of numbers: finite unions of [`Piece`]s.
//!
//! Closed under union, intersection and complement (Attouche et al., VLDB 2022, the number atoms), decided
//! exactly.  A piece is kept only if it holds a number, so the empty set has no pieces.

use std::collections::HashSet;

use num_bigint::BigInt;

use super::decimal::Decimal;
use super::piece::{Bound, NumberForm, Piece};
use indexmap::IndexSet;

use crate::hash::Keyed;
use crate::heap_size::{self, Interner};
use crate::work;

/// The id of an interned set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NumSetId(pub u32);

/// A union of pieces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct NumSet {
    pub pieces: Vec<Piece>,
}

/// Most pieces of a set: an operation that could exceed it is refused.
pub const MAX_PIECES: usize = 50_000;

impl NumSet {
    pub fn all() -> Self {
        NumSet { pieces: vec![Piece::all()] }
    }

    pub fn empty() -> Self {
        NumSet::default()
    }

    pub fn of(piece: Piece) -> Self {
        NumSet { pieces: if piece.is_empty() { Vec::new() } else { vec![piece] } }
    }

    /// The multiples of a positive unit.
    pub fn multiples(unit: Decimal) -> Self {
        NumSet::of(Piece { unit: Some(unit), ..Piece::all() })
    }

    /// A finite set of numbers.
    pub fn points(mut at: Vec<Decimal>) -> Self {
        crate::lists::sort_unique(&mut at);
        NumSet { pieces: at.into_iter().map(Piece::point).collect() }
    }

    /// The pieces; each visit counts as work, since a set may have thousands.
    pub(super) fn looked_at(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().inspect(|_| work::spend(2))
    }

    pub fn contains(&self, x: &Decimal) -> bool {
        self.looked_at().any(|p| p.contains(x))
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether only values matter, not spellings.
    pub fn in_any_spelling(&self) -> bool {
        self.pieces.iter().all(|p| p.spelling == NumberForm::Any)
    }

    pub fn is_all(&self) -> bool {
        self.pieces.iter().any(|p| *p == Piece::all())
    }

    pub fn union(&self, other: &Self) -> Self {
        NumSet::union_of(&[self, other])
    }

    /// All of them at once: each union copies all its operands.
    pub fn union_of(sets: &[&Self]) -> Self {
        if sets.iter().any(|set| set.is_all()) {
            return NumSet::all();
        }
        let mut pieces: IndexSet<&Piece, Keyed> = IndexSet::default();
        for set in sets {
            work::spend(1 + set.pieces.len() as u64);
            pieces.extend(&set.pieces);
        }
        // a point inside a wider piece is redundant
        let wide: Vec<&Piece> = pieces.iter().copied().filter(|p| p.is_wide()).collect();
        let known = |x: &Decimal| wide.iter().inspect(|_| work::spend(2)).any(|p| p.contains(x));
        let kept = pieces.into_iter().filter(|p| !p.as_point().is_some_and(known));
        NumSet { pieces: kept.cloned().collect() }
    }

    /// `None` when the result would have too many pieces.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        for (a, b) in [(self, other), (other, self)] {
            if a.is_all() {
                return Some(b.clone());
            }
            if b.in_any_spelling() && a.pieces.iter().all(|p| p.as_point().is_some()) {
                let members = MembershipTest::of(b);
                let keep = |p: &&Piece| p.as_point().is_some_and(|x| members.contains(x));
                return Some(NumSet { pieces: a.pieces.iter().filter(keep).cloned().collect() });
            }
        }
        if self.pieces.len().saturating_mul(other.pieces.len()) > MAX_PIECES {
            return None;
        }
        work::spend(1 + 4 * (self.pieces.len() * other.pieces.len()) as u64);
        let mut pieces: IndexSet<Piece, Keyed> = IndexSet::default();
        for a in &self.pieces {
            for b in &other.pieces {
                pieces.extend(a.intersect(b).filter(|both| !both.is_empty()));
            }
        }
        Some(NumSet { pieces: pieces.into_iter().collect() })
    }

    pub fn complement(&self) -> Option<Self> {
        if self.pieces.len() > 16
            && self.in_any_spelling()
            && self.pieces.iter().all(|p| p.as_point().is_some())
        {
            return Some(self.gaps());
        }
        let mut out = NumSet::all();
        for p in &self.pieces {
            let pieces = p.complement().into_iter().filter(|q| !q.is_empty()).collect();
            out = out.intersect(&NumSet { pieces })?;
        }
        Some(out)
    }

    /// The complement of a set of points: the open intervals between them.
    fn gaps(&self) -> Self {
        let mut at: Vec<Decimal> = self.pieces.iter().filter_map(|p| p.as_point().cloned()).collect();
        crate::lists::sort_unique(&mut at);
        let mut pieces = Vec::with_capacity(at.len() + 1);
        let mut lo: Option<Bound> = None;
        for x in at {
            let hi = Some(Bound { at: x.clone(), open: true });
            pieces.push(Piece { lo: lo.take(), hi, ..Piece::all() });
            lo = Some(Bound { at: x, open: true });
        }
        pieces.push(Piece { lo, ..Piece::all() });
        NumSet { pieces }
    }

    /// The numbers of the set where it is finite and has at most `limit` of them.
    pub fn finite(&self, limit: usize) -> Option<Vec<Decimal>> {
        let mut out: Vec<Decimal> = Vec::new();
        for p in &self.pieces {
            if let Some(x) = p.as_point() {
                out.push(x.clone());
                continue;
            }
            let (Some(lo), Some(hi), Some(unit)) = (&p.lo, &p.hi, &p.unit) else { return None };
            let (from, to) = (lo.at.ceil_div(unit), hi.at.floor_div(unit));
            if &to - &from > BigInt::from(limit) {
                return None;
            }
            work::spend(limit as u64);
            let mut k = from;
            while k <= to {
                let x = unit.mul_int(&k);
                if p.contains(&x) {
                    out.push(x);
                }
                k += 1;
            }
        }
        crate::lists::sort_unique(&mut out);
        (out.len() <= limit).then_some(out)
    }
}

/// Tests many numbers, in any spelling, for membership: points by hash, the other pieces one by one.
struct MembershipTest<'a> {
    points: HashSet<&'a Decimal, Keyed>,
    wide: Vec<&'a Piece>,
}

impl<'a> MembershipTest<'a> {
    fn of(set: &'a NumSet) -> Self {
        work::spend(1 + set.pieces.len() as u64);
        let points = set.pieces.iter().filter_map(Piece::as_point).collect();
        MembershipTest { points, wide: set.pieces.iter().filter(|p| p.as_point().is_none()).collect() }
    }

    fn contains(&self, x: &Decimal) -> bool {
        work::spend(1);
        self.points.contains(x) || self.wide.iter().inspect(|_| work::spend(2)).any(|p| p.contains(x))
    }
}

// Counts digits as for usual numbers.
heap_size::owned!(NumSet, this => this.pieces.len() * (std::mem::size_of::<Piece>() + 64));

/// Interned sets.
#[derive(Clone, Default)]
pub struct NumSets {
    sets: Interner<NumSet, Keyed>,
}

heap_size::tables!(NumSets: sets);

impl NumSets {
    pub fn intern(&mut self, set: NumSet) -> NumSetId {
        work::spend(1 + set.pieces.len() as u64);
        NumSetId(self.sets.intern(set))
    }

    pub fn get(&self, id: NumSetId) -> &NumSet {
        &self.sets[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_at_a_set_is_work_for_each_piece() {
        let points: Vec<Decimal> = (0..4096).map(|n| Decimal::new(n.into(), 0)).collect();
        let (set, last) = (NumSet::points(points.clone()), points[4095].clone());
        let spent =
            |call: &dyn Fn() -> bool| work::run(u64::MAX - 1, || (call(), work::spent())).expect("no limit");
        let (found, units) = spent(&|| set.contains(&last));
        assert!(found && units >= 4096, "{units}");
        assert!(spent(&|| set.contains(&points[0])).1 < 16);
        let other = NumSet::points(points[2048..].to_vec());
        let (same, units) = spent(&|| set.intersect(&other).as_ref() == Some(&other));
        assert!(same && (2048..8192 * 4).contains(&units), "{units}");
    }

    #[test]
    fn a_union_of_points_costs_its_points() {
        let sets: Vec<NumSet> = (0..500)
            .map(|n| NumSet::points((n..n + 20).map(|k| Decimal::new(k.into(), 0)).collect()))
            .collect();
        let all: Vec<&NumSet> = sets.iter().collect();
        let call = || (NumSet::union_of(&all), work::spent());
        let (union, units) = work::run(u64::MAX - 1, call).expect("no limit");
        assert_eq!(union.pieces.len(), 519);
        assert!((10_000..40_000).contains(&units), "{units}");
        let wide = NumSet::multiples(Decimal::one());
        assert_eq!(union.union(&wide), wide);
    }
}
