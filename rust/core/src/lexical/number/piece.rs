//! A piece of a set of numbers: an interval, multiples of a unit, not multiples of others.
//!
//! Emptiness is decided exactly.  Complexity: arithmetic on a few numbers, however far the bounds lie apart;
//! see [`WithinBounds::first_multiple`].

use std::borrow::Cow;
use std::cmp::Ordering;

use num_bigint::BigInt;
use num_traits::One;

use super::decimal::Decimal;
use crate::work;

/// One end of an interval; `None` is unbounded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    pub at: Decimal,
    pub open: bool,
}

/// Which spellings of a number count.  Only draft 4 looks at them: its integers have no fraction and no
/// exponent, so `1.0` is a number and a multiple of 1, and no integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberForm {
    Any,
    /// Digits alone.
    Plain,
    /// With a fraction or an exponent.
    Marked,
}

impl NumberForm {
    /// `None`: no spelling is both.
    fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (NumberForm::Any, s) | (s, NumberForm::Any) => Some(s),
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
    pub spelling: NumberForm,
}

impl Piece {
    pub fn all() -> Self {
        Piece { lo: None, hi: None, unit: None, not_units: Vec::new(), spelling: NumberForm::Any }
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

    /// The integers of draft 4. Every operation keeps the invariant that a plain piece has multiples of 1
    /// only.
    pub fn integers_without_mark() -> Self {
        Piece { unit: Some(Decimal::one()), spelling: NumberForm::Plain, ..Piece::all() }
    }

    pub fn as_point(&self) -> Option<&Decimal> {
        match (&self.lo, &self.hi) {
            (Some(a), Some(b)) if !a.open && !b.open && a.at == b.at => Some(&a.at),
            _ => None,
        }
    }

    /// Whether it holds more than a point, in any spelling.
    pub fn is_wide(&self) -> bool {
        self.spelling == NumberForm::Any && self.as_point().is_none()
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
        // what holds from some exponent on begins to hold where number and bound have equal magnitudes, or
        // one later
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
        is_above(x, self.lo.as_ref())
    }

    fn below(&self, x: &Decimal) -> bool {
        is_below(x, self.hi.as_ref())
    }

    /// Whether some number is in both; two comparisons rule out most pairs, whose intervals are disjoint.
    pub(super) fn meets(&self, other: &Piece) -> bool {
        let beyond = |lo: &Option<Bound>, hi: &Option<Bound>| match (lo, hi) {
            (Some(lo), Some(hi)) => lo.at > hi.at,
            _ => false,
        };
        !beyond(&self.lo, &other.hi)
            && !beyond(&other.lo, &self.hi)
            && self.both(other).is_some_and(|both| !both.is_empty())
    }

    /// `None`: the spellings are disjoint.
    pub(super) fn intersect(&self, other: &Piece) -> Option<Piece> {
        self.both(other).map(WithinBounds::owned)
    }

    fn both<'a>(&'a self, other: &'a Piece) -> Option<WithinBounds<'a>> {
        let unit = match (&self.unit, &other.unit) {
            (Some(a), Some(b)) => Some(a.lcm(b)),
            (a, b) => a.as_ref().or(b.as_ref()).map(Cow::Borrowed),
        };
        let not_units = match (&self.not_units[..], &other.not_units[..]) {
            (own, []) => Cow::Borrowed(own),
            ([], others) => Cow::Borrowed(others),
            (own, others) => {
                let mut all = own.to_vec();
                all.extend(others.iter().filter(|u| !own.contains(u)).cloned());
                all.sort();
                Cow::Owned(all)
            }
        };
        let spelling = self.spelling.and(other.spelling)?;
        let (lo, hi) = (tighter(&self.lo, &other.lo, true), tighter(&self.hi, &other.hi, false));
        Some(WithinBounds { lo, hi, unit, not_units, spelling })
    }

    fn inside(&self) -> WithinBounds<'_> {
        let (lo, hi) = (self.lo.as_ref(), self.hi.as_ref());
        let (unit, not_units) = (self.unit.as_ref().map(Cow::Borrowed), Cow::Borrowed(&self.not_units[..]));
        WithinBounds { lo, hi, unit, not_units, spelling: self.spelling }
    }

    /// Whether the piece holds no number.
    pub fn is_empty(&self) -> bool {
        self.inside().is_empty()
    }

    /// A multiple of the unit inside that is a multiple of none of `not_units`.
    fn first_multiple(&self, unit: &Decimal) -> Option<Decimal> {
        self.inside().first_multiple(unit)
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

    /// Without a unit: a number with the fewest places. Two more than those of the bounds and the forbidden
    /// units are enough: such numbers are neither too far apart nor all multiples of a forbidden unit.
    fn some_fraction(&self) -> Option<Decimal> {
        if self.unit.is_some() {
            return None;
        }
        let bounds = [&self.lo, &self.hi].into_iter().flatten().map(|b| &b.at);
        let most = bounds.chain(&self.not_units).map(Decimal::places).max().unwrap_or(0).max(0) + 2;
        (1..=most).find_map(|places| self.first_multiple(&Decimal::one().scale(-places)))
    }

    /// The complement, as pieces.
    pub(super) fn complement(&self) -> Vec<Piece> {
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
            NumberForm::Any => {}
            NumberForm::Plain => out.push(Piece { spelling: NumberForm::Marked, ..Piece::all() }),
            NumberForm::Marked => out.push(Piece::integers_without_mark()),
        }
        out
    }
}

/// A [`Piece`] of borrowed parts: the intersection of two pieces without a copy of their numbers.
struct WithinBounds<'a> {
    lo: Option<&'a Bound>,
    hi: Option<&'a Bound>,
    unit: Option<Cow<'a, Decimal>>,
    not_units: Cow<'a, [Decimal]>,
    spelling: NumberForm,
}

impl WithinBounds<'_> {
    fn owned(self) -> Piece {
        Piece {
            lo: self.lo.cloned(),
            hi: self.hi.cloned(),
            unit: self.unit.map(Cow::into_owned),
            not_units: self.not_units.into_owned(),
            spelling: self.spelling,
        }
    }

    fn is_empty(&self) -> bool {
        if let (Some(lo), Some(hi)) = (self.lo, self.hi) {
            match lo.at.cmp(&hi.at) {
                Ordering::Greater => return true,
                Ordering::Equal if lo.open || hi.open => return true,
                Ordering::Equal => {
                    let unit = self.unit.as_deref();
                    return unit.is_some_and(|u| !lo.at.is_multiple_of(u)) || self.is_excluded(&lo.at);
                }
                Ordering::Less => {}
            }
        }
        // an interval of positive length holds numbers that are multiples of none of the units
        self.unit.as_deref().is_some_and(|unit| self.first_multiple(unit).is_none())
    }

    fn is_excluded(&self, x: &Decimal) -> bool {
        self.not_units.iter().any(|n| x.is_multiple_of(n))
    }

    /// A multiple of the unit inside that is a multiple of none of `not_units`.
    ///
    /// With d_i = the least k for which k*unit is a multiple of the i-th forbidden unit (d_i >= 2), the
    /// allowed k are 0 modulo no d_i; the neighbours of a common multiple of all d_i are allowed, so the scan
    /// ends. Its length is Jacobsthal's function: a few steps for the few units of schemas.
    fn first_multiple(&self, unit: &Decimal) -> Option<Decimal> {
        if self.is_excluded(unit) {
            return None;
        }
        let one = BigInt::one();
        let (mut k, step) = match (self.lo, self.hi) {
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
            if !is_above(&x, self.lo) || !is_below(&x, self.hi) {
                return None;
            }
            if !self.is_excluded(&x) {
                return Some(x);
            }
            k += &step;
        }
    }
}

fn is_above(x: &Decimal, lo: Option<&Bound>) -> bool {
    lo.is_none_or(|b| if b.open { *x > b.at } else { *x >= b.at })
}

fn is_below(x: &Decimal, hi: Option<&Bound>) -> bool {
    hi.is_none_or(|b| if b.open { *x < b.at } else { *x <= b.at })
}

fn tighter<'a>(a: &'a Option<Bound>, b: &'a Option<Bound>, lower: bool) -> Option<&'a Bound> {
    let (Some(x), Some(y)) = (a, b) else { return a.as_ref().or(b.as_ref()) };
    let first = match x.at.cmp(&y.at) {
        Ordering::Equal => x.open,
        Ordering::Greater => lower,
        Ordering::Less => !lower,
    };
    Some(if first { x } else { y })
}

#[cfg(test)]
mod tests {
    use super::*;

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
