//! Sets of numbers: finite unions of pieces "an interval, multiples of a unit, not multiples of others".
//!
//! Closed under union, intersection and complement (Attouche et al., VLDB 2022, the number atoms), decided
//! exactly.  A piece is kept only if it holds a number, so the empty set has no pieces.

use indexmap::IndexSet;
use num_bigint::BigInt;
use num_traits::One;

use super::decimal::Decimal;
use crate::hash::Keyed;
use crate::work;

/// The number of an interned set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NumSetId(pub u32);

/// One end of an interval; `None` is unbounded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    pub at: Decimal,
    pub open: bool,
}

/// Which spellings of a number count.  Only draft 4 looks at them: its integers have no fraction and no
/// exponent, so `1.0` is a number and a multiple of 1, and no integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spelling {
    Any,
    /// Digits alone.
    Plain,
    /// With a fraction or an exponent.
    Marked,
}

impl Spelling {
    /// `None`: no spelling is both.
    fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Spelling::Any, s) | (s, Spelling::Any) => Some(s),
            (a, b) => (a == b).then_some(a),
        }
    }
}

/// The numbers of an interval that are multiples of `unit` and of none of `not_units`, in some spellings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    pub lo: Option<Bound>,
    pub hi: Option<Bound>,
    pub unit: Option<Decimal>,
    pub not_units: Vec<Decimal>,
    pub spelling: Spelling,
}

/// A union of pieces.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct NumSet {
    pub pieces: Vec<Piece>,
}

/// Pieces that a set may have before an operation is refused.
pub const MAX_PIECES: usize = 50_000;

impl Piece {
    pub fn all() -> Self {
        Piece { lo: None, hi: None, unit: None, not_units: Vec::new(), spelling: Spelling::Any }
    }

    /// An interval without units, times `10^k`.
    pub fn scale(&self, k: i64) -> Self {
        let scaled =
            |bound: &Option<Bound>| bound.as_ref().map(|b| Bound { at: b.at.scale(k), open: b.open });
        Piece { lo: scaled(&self.lo), hi: scaled(&self.hi), ..Piece::all() }
    }

    pub fn point(at: Decimal) -> Self {
        let bound = Some(Bound { at, open: false });
        Piece { lo: bound.clone(), hi: bound, ..Piece::all() }
    }

    /// The integers of draft 4.  Whatever is spelled plainly is a multiple of 1: kept so by every operation.
    pub fn integers_without_mark() -> Self {
        Piece { unit: Some(Decimal::one()), spelling: Spelling::Plain, ..Piece::all() }
    }

    pub fn as_point(&self) -> Option<&Decimal> {
        match (&self.lo, &self.hi) {
            (Some(a), Some(b)) if !a.open && !b.open && a.at == b.at => Some(&a.at),
            _ => None,
        }
    }

    pub fn contains(&self, x: &Decimal) -> bool {
        self.above(x)
            && self.below(x)
            && self.unit.as_ref().is_none_or(|u| x.is_multiple_of(u))
            && !self.not_units.iter().any(|u| x.is_multiple_of(u))
    }

    /// The exponents e between `-most` and `most` for which `x * 10^e` is in the piece, as an interval: the bounds
    /// and the units each give one, since larger exponents only move away from zero and add twos and fives.
    pub fn exponents(&self, x: &Decimal, most: i64) -> Option<(i64, i64)> {
        if x.is_zero() {
            return self.contains(x).then_some((-most, most));
        }
        let far = |e: i64| if x.is_positive() { self.below(&x.scale(e)) } else { self.above(&x.scale(e)) };
        let near = |e: i64| if x.is_positive() { self.above(&x.scale(e)) } else { self.below(&x.scale(e)) };
        // what holds from some exponent on begins to where the number and the bound have as many digits, or one later
        let first = |bound: &Option<Bound>, holds: &dyn Fn(i64) -> bool| {
            let at = bound.as_ref().map(|b| &b.at);
            match at.filter(|at| !at.is_zero() && at.is_positive() == x.is_positive()) {
                Some(at) => match at.magnitude() - x.magnitude() {
                    alike if alike < -most => -most,
                    alike if alike > most => most + 1,
                    alike => alike + i64::from(!holds(alike)),
                },
                None if holds(0) => -most,
                None => most + 1,
            }
        };
        let (inner, outer) = if x.is_positive() { (&self.lo, &self.hi) } else { (&self.hi, &self.lo) };
        let mut low = first(inner, &near);
        let mut high = first(outer, &|e| !far(e)) - 1;
        if let Some(unit) = &self.unit {
            low = low.max(x.least_shift_to_multiple(unit)?);
        }
        for unit in &self.not_units {
            high = x.least_shift_to_multiple(unit).map_or(high, |e| high.min(e - 1));
        }
        (low <= high).then_some((low, high))
    }

    fn above(&self, x: &Decimal) -> bool {
        self.lo.as_ref().is_none_or(|b| if b.open { *x > b.at } else { *x >= b.at })
    }

    fn below(&self, x: &Decimal) -> bool {
        self.hi.as_ref().is_none_or(|b| if b.open { *x < b.at } else { *x <= b.at })
    }

    /// Whether some number is in both; most intervals of a set lie beside the other, as two comparisons tell.
    pub(super) fn meets(&self, other: &Piece) -> bool {
        let beyond = |lo: &Option<Bound>, hi: &Option<Bound>| match (lo, hi) {
            (Some(lo), Some(hi)) => lo.at > hi.at,
            _ => false,
        };
        !beyond(&self.lo, &other.hi)
            && !beyond(&other.lo, &self.hi)
            && self.intersect(other).is_some_and(|both| !both.is_empty())
    }

    /// `None`: the spellings clash.
    pub(super) fn intersect(&self, other: &Piece) -> Option<Piece> {
        let spelling = self.spelling.and(other.spelling)?;
        let unit = match (&self.unit, &other.unit) {
            (Some(a), Some(b)) => Some(a.lcm(b)),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        let mut not_units = self.not_units.clone();
        not_units.extend(other.not_units.iter().filter(|u| !self.not_units.contains(u)).cloned());
        not_units.sort();
        let (lo, hi) = (tighter(&self.lo, &other.lo, true), tighter(&self.hi, &other.hi, false));
        Some(Piece { lo, hi, unit, not_units, spelling })
    }

    /// Whether the piece holds no number.
    pub fn is_empty(&self) -> bool {
        if let (Some(lo), Some(hi)) = (&self.lo, &self.hi) {
            if lo.at > hi.at || (lo.at == hi.at && (lo.open || hi.open)) {
                return true;
            }
            if lo.at == hi.at {
                return !self.contains(&lo.at);
            }
        }
        let Some(unit) = &self.unit else {
            // an interval of positive length holds numbers that are multiples of none of the units
            return false;
        };
        self.first_multiple(unit).is_none()
    }

    /// A multiple of the unit inside that is a multiple of none of `not_units`.
    ///
    /// With d_i = the least k for which k*unit is a multiple of the i-th forbidden unit (d_i >= 2), the k that
    /// are allowed avoid the residues 0 mod d_i; those next to a common multiple of all d_i do, so that the scan ends.
    /// How long it goes on is Jacobsthal's function, a few steps for the few units that schemas have.
    fn first_multiple(&self, unit: &Decimal) -> Option<Decimal> {
        if self.not_units.iter().any(|n| unit.is_multiple_of(n)) {
            return None;
        }
        let one = BigInt::one();
        let (mut k, step) = match (&self.lo, &self.hi) {
            (Some(lo), _) => {
                let mut k = lo.at.ceil_div(unit);
                if lo.open && unit.mul_int(&k) == lo.at {
                    k += &one;
                }
                (k, one)
            }
            (None, Some(hi)) => {
                let mut k = hi.at.floor_div(unit);
                if hi.open && unit.mul_int(&k) == hi.at {
                    k -= &one;
                }
                (k, -one)
            }
            (None, None) => (one.clone(), one),
        };
        loop {
            work::spend(2 + 4 * self.not_units.len() as u64);
            let x = unit.mul_int(&k);
            if !self.above(&x) || !self.below(&x) {
                return None;
            }
            if !self.not_units.iter().any(|n| x.is_multiple_of(n)) {
                return Some(x);
            }
            k += &step;
        }
    }

    /// Some number of the piece: an integer where there is one, else a multiple of its unit, a bound, or a number with
    /// few places.
    pub(super) fn some_plain(&self) -> Option<Decimal> {
        let unit = self.unit.clone().unwrap_or_else(Decimal::one);
        let whole = self.first_multiple(&unit.lcm(&Decimal::one()));
        let unit = whole.or_else(|| self.first_multiple(self.unit.as_ref()?));
        let bounds = [&self.lo, &self.hi].into_iter().flatten().map(|b| b.at.clone());
        unit.or_else(|| bounds.into_iter().find(|x| self.contains(x))).or_else(|| self.some_fraction())
    }

    /// Where no unit is asked for: a number with the fewest places. Two more than the bounds and the forbidden units
    /// have are enough: the numbers with these are neither too far apart nor all multiples of one.
    fn some_fraction(&self) -> Option<Decimal> {
        if self.unit.is_some() {
            return None;
        }
        let bounds = [&self.lo, &self.hi].into_iter().flatten().map(|b| &b.at);
        let most = bounds.chain(&self.not_units).map(Decimal::places).max().unwrap_or(0).max(0) + 2;
        (1..=most).find_map(|places| self.first_multiple(&Decimal::one().scale(-places)))
    }

    /// The complement, as pieces.
    fn complement(&self) -> Vec<Piece> {
        let mut out = Vec::new();
        if let Some(lo) = &self.lo {
            let hi = Some(Bound { at: lo.at.clone(), open: !lo.open });
            out.push(Piece { hi, ..Piece::all() });
        }
        if let Some(hi) = &self.hi {
            let lo = Some(Bound { at: hi.at.clone(), open: !hi.open });
            out.push(Piece { lo, ..Piece::all() });
        }
        let inside = Piece { lo: self.lo.clone(), hi: self.hi.clone(), ..Piece::all() };
        if let Some(unit) = &self.unit {
            out.push(Piece { not_units: vec![unit.clone()], ..inside.clone() });
        }
        for unit in &self.not_units {
            out.push(Piece { unit: Some(unit.clone()), ..inside.clone() });
        }
        match self.spelling {
            Spelling::Any => {}
            Spelling::Plain => out.push(Piece { spelling: Spelling::Marked, ..Piece::all() }),
            Spelling::Marked => out.push(Piece::integers_without_mark()),
        }
        out
    }
}

fn tighter(a: &Option<Bound>, b: &Option<Bound>, lower: bool) -> Option<Bound> {
    match (a, b) {
        (Some(x), Some(y)) => {
            let first = match x.at.cmp(&y.at) {
                std::cmp::Ordering::Equal => x.open,
                std::cmp::Ordering::Greater => lower,
                std::cmp::Ordering::Less => !lower,
            };
            Some(if first { x.clone() } else { y.clone() })
        }
        (x, y) => x.clone().or_else(|| y.clone()),
    }
}

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

    /// The multiples of a positive unit; `None` means every number.
    pub fn multiples(unit: Decimal) -> Self {
        NumSet::of(Piece { unit: Some(unit), ..Piece::all() })
    }

    /// A finite set of numbers.
    pub fn points(mut at: Vec<Decimal>) -> Self {
        at.sort();
        at.dedup();
        NumSet { pieces: at.into_iter().map(Piece::point).collect() }
    }

    /// The pieces, each one looked at being work: a set may have thousands.
    pub(super) fn looked_at(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().inspect(|_| work::spend(2))
    }

    pub fn contains(&self, x: &Decimal) -> bool {
        self.looked_at().any(|p| p.contains(x))
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether only values count.
    pub fn in_any_spelling(&self) -> bool {
        self.pieces.iter().all(|p| p.spelling == Spelling::Any)
    }

    pub fn is_all(&self) -> bool {
        self.pieces.iter().any(|p| *p == Piece::all())
    }

    pub fn union(&self, other: &Self) -> Self {
        if self.is_all() || other.is_all() {
            return NumSet::all();
        }
        work::spend(1 + (self.pieces.len() * other.pieces.len() / 4) as u64);
        let mut pieces = self.pieces.clone();
        for p in &other.pieces {
            let known = match p.as_point() {
                Some(x) if self.in_any_spelling() => self.contains(x),
                _ => self.pieces.contains(p),
            };
            if !known {
                pieces.push(p.clone());
            }
        }
        NumSet { pieces }
    }

    /// `None` when the result would have too many pieces.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        for (a, b) in [(self, other), (other, self)] {
            if a.is_all() {
                return Some(b.clone());
            }
            if b.in_any_spelling() && a.pieces.iter().all(|p| p.as_point().is_some()) {
                let keep = |p: &&Piece| p.as_point().is_some_and(|x| b.contains(x));
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
        at.sort();
        at.dedup();
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
        out.sort();
        out.dedup();
        (out.len() <= limit).then_some(out)
    }
}

/// Interned sets.
#[derive(Default)]
pub struct NumSets {
    sets: IndexSet<NumSet, Keyed>,
    boxed: crate::held::Boxed,
}

impl NumSets {
    /// Bytes that the sets hold; of a piece's digits those of usual ones.
    pub(crate) fn bytes(&mut self) -> usize {
        let pieces = |set: &NumSet| set.pieces.len() * (std::mem::size_of::<Piece>() + 64);
        crate::held::set(&self.sets) + self.boxed.count(&self.sets, pieces)
    }

    pub fn intern(&mut self, set: NumSet) -> NumSetId {
        work::spend(1 + set.pieces.len() as u64);
        NumSetId(self.sets.insert_full(set).0 as u32)
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
        assert!(same && units >= 2048 * 2048, "{units}");
    }

    #[test]
    fn exponents_are_those_whose_numbers_are_in_the_piece() {
        let decimal = |text: &str| Decimal::parse(text).expect("a number");
        let ends = ["-1e3", "-999.5", "-7", "-0.01", "0", "0.01", "7", "999.5", "1e3"].map(decimal);
        let open = [false, true];
        let bounds = || ends.iter().flat_map(|at| open.map(|open| Some(Bound { at: at.clone(), open })));
        let units = [None, Some(decimal("0.5")), Some(decimal("3"))];
        let numbers = ["0", "1", "-1", "7", "-7", "9995", "-9995", "0.3", "-99.95", "1e-9"].map(decimal);
        for lo in bounds().chain([None]) {
            for hi in bounds().chain([None]) {
                for unit in &units {
                    let piece = Piece { lo: lo.clone(), hi: hi.clone(), unit: unit.clone(), ..Piece::all() };
                    for x in &numbers {
                        let among: Vec<i64> = (-5..=5).filter(|&e| piece.contains(&x.scale(e))).collect();
                        let found = piece.exponents(x, 5);
                        let ends = among.first().copied().zip(among.last().copied());
                        assert_eq!(found, ends, "{x:?} {piece:?}");
                    }
                }
            }
        }
    }
}
