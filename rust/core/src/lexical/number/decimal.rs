//! Exact decimals: `mantissa * 10^exponent`, as JSON writes them.
//!
//! Invariant: the mantissa has no trailing zero (zero has exponent 0), so equal values are equal structs.
//! JSON Schema compares numbers by value, whatever their spelling; doubles have no exact `0.1`, nor its
//! multiples. Exponents are bounded by [`MAX_EXPONENT`], since the cost of exact arithmetic grows with them.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::LazyLock;

use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use crate::work;

/// Greatest absolute power of ten that a number of a schema may have.
pub const MAX_EXPONENT: i64 = 1_000;

/// The powers of ten that most numbers need.
static POWERS: LazyLock<Vec<BigInt>> =
    LazyLock::new(|| std::iter::successors(Some(BigInt::one()), |power| Some(power * 10)).take(64).collect());

/// An exact decimal number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    mantissa: BigInt,
    exponent: i64,
}

impl Decimal {
    pub fn new(mantissa: BigInt, exponent: i64) -> Self {
        let mut d = Decimal { mantissa, exponent };
        if d.mantissa.is_zero() {
            d.exponent = 0;
            return d;
        }
        let ten = BigInt::from(10);
        // a number that ends in a zero is even
        while !d.mantissa.bit(0) {
            work::spend(d.mantissa.bits() / 1024);
            let (q, r) = d.mantissa.div_rem(&ten);
            if !r.is_zero() {
                return d;
            }
            d.mantissa = q;
            d.exponent += 1;
        }
        d
    }

    pub fn zero() -> Self {
        Decimal { mantissa: BigInt::zero(), exponent: 0 }
    }

    pub fn one() -> Self {
        Decimal { mantissa: BigInt::one(), exponent: 0 }
    }

    /// Reads a JSON number; `None` when it is none or its exponent is out of bounds.
    pub fn parse(text: &str) -> Option<Self> {
        let (body, exp) = match text.find(['e', 'E']) {
            Some(i) => (&text[..i], text[i + 1..].parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, frac) = body.split_once('.').unwrap_or((body, ""));
        if exp.abs() > MAX_EXPONENT || text.len() > MAX_EXPONENT as usize + 100 {
            return None;
        }
        let digits = [whole, frac].concat();
        let read = Decimal::new(digits.parse().ok()?, exp - frac.len() as i64);
        (read.exponent.abs() <= MAX_EXPONENT).then_some(read)
    }

    /// Power of ten of the last digit that is not zero.
    pub fn exponent(&self) -> i64 {
        self.exponent
    }

    /// Digits after the point in plain notation.
    pub fn places(&self) -> i64 {
        (-self.exponent).max(0)
    }

    /// The digits, without a sign and without the zeros at the end.
    pub fn digits(&self) -> String {
        self.mantissa.magnitude().to_string()
    }

    pub fn is_zero(&self) -> bool {
        self.mantissa.is_zero()
    }

    pub fn is_positive(&self) -> bool {
        self.mantissa.is_positive()
    }

    pub fn neg(&self) -> Self {
        Decimal { mantissa: -&self.mantissa, exponent: self.exponent }
    }

    /// This number times `10^k`.
    pub fn scale(&self, k: i64) -> Self {
        if self.is_zero() {
            return self.clone();
        }
        Decimal { mantissa: self.mantissa.clone(), exponent: self.exponent + k }
    }

    /// The integer `self / 10^exponent`, for an exponent not above this number's.
    fn units(&self, exponent: i64) -> BigInt {
        work::spend(1);
        if self.exponent == exponent {
            return self.mantissa.clone();
        }
        spend_product(self.mantissa.bits(), 4 * (self.exponent - exponent) as u64);
        let apart = (self.exponent - exponent) as usize;
        match POWERS.get(apart) {
            Some(power) => &self.mantissa * power,
            None => &self.mantissa * num_traits::pow(BigInt::from(10), apart),
        }
    }

    /// Power of ten of the leading digit (of a number that is not zero).
    pub fn magnitude(&self) -> i64 {
        let digits = match self.mantissa.magnitude().to_u64().and_then(u64::checked_ilog10) {
            Some(log) => log as i64,
            None => {
                spend_product(self.mantissa.bits(), self.mantissa.bits());
                self.mantissa.magnitude().to_string().len() as i64 - 1
            }
        };
        digits + self.exponent
    }

    /// A power of ten above the least k for which `k * unit` is a multiple of this number (neither is zero):
    /// the number of its digits, plus its trailing zeros beyond the unit's.
    pub fn most_units(&self, unit: &Self) -> i64 {
        self.magnitude() - self.exponent + 1 + (self.exponent - unit.exponent).max(0)
    }

    /// The order of numbers whose mantissas fit a machine word and whose exponents differ little: the usual
    /// case.
    fn cmp_small(&self, other: &Self) -> Option<Ordering> {
        if self.exponent == other.exponent {
            return Some(self.mantissa.cmp(&other.mantissa));
        }
        let (a, b) = (self.mantissa.to_i64()? as i128, other.mantissa.to_i64()? as i128);
        let apart = u32::try_from(self.exponent.abs_diff(other.exponent)).ok().filter(|&d| d <= 18)?;
        let scale = 10i128.pow(apart);
        Some(if self.exponent > other.exponent { (a * scale).cmp(&b) } else { a.cmp(&(b * scale)) })
    }

    /// Powers of ten between which the magnitude of a number that is not zero lies, from its bits alone.
    fn decades(&self) -> (i64, i64) {
        let bits = self.mantissa.bits() as i64;
        // log10(2) lies between 0.30102 and 0.30103
        ((bits - 1) * 30_102 / 100_000 + self.exponent, bits * 30_103 / 100_000 + 1 + self.exponent)
    }

    pub fn add(&self, other: &Self) -> Self {
        let e = self.exponent.min(other.exponent);
        Decimal::new(self.units(e) + other.units(e), e)
    }

    pub fn mul_int(&self, k: &BigInt) -> Self {
        spend_product(self.mantissa.bits(), k.bits());
        Decimal::new(&self.mantissa * k, self.exponent)
    }

    /// `ceil(self / unit)` for a positive unit.
    pub fn ceil_div(&self, unit: &Self) -> BigInt {
        let (own, unit) = dividing(self, unit);
        Integer::div_ceil(&own, &unit)
    }

    /// `floor(self / unit)` for a positive unit.
    pub fn floor_div(&self, unit: &Self) -> BigInt {
        let (own, unit) = dividing(self, unit);
        Integer::div_floor(&own, &unit)
    }

    pub fn is_multiple_of(&self, unit: &Self) -> bool {
        let (own, unit) = dividing(self, unit);
        (own % unit).is_zero()
    }

    /// The least k for which `self * 10^k` is a multiple of the unit; `None` when none is. Greater k then do as well.
    ///
    /// `M*10^t / U` is whole exactly if the part of U without 2 and 5 divides M, and t makes up for the twos and the
    /// fives that M lacks.
    pub fn least_shift_to_multiple(&self, unit: &Self) -> Option<i64> {
        let (own, other) = (self.mantissa.magnitude().to_u64(), unit.mantissa.magnitude().to_u64());
        let (twos, fives, whole) = match own.zip(other) {
            Some((own, other)) => {
                let (own_twos, own) = strip_word(own, 2);
                let (own_fives, own) = strip_word(own, 5);
                let (twos, rest) = strip_word(other, 2);
                let (fives, rest) = strip_word(rest, 5);
                (twos - own_twos, fives - own_fives, own % rest == 0)
            }
            None => {
                let (own_twos, own) = strip(&self.mantissa, 2);
                let (own_fives, own) = strip(&own, 5);
                let (twos, rest) = strip(&unit.mantissa, 2);
                let (fives, rest) = strip(&rest, 5);
                (twos - own_twos, fives - own_fives, (own % rest).is_zero())
            }
        };
        whole.then(|| twos.max(fives) - self.exponent + unit.exponent)
    }

    /// Least common multiple of two positive decimals.
    pub fn lcm<'a>(&'a self, other: &'a Self) -> Cow<'a, Self> {
        // a power of ten that is not above the other's last digit divides it
        for (one, other) in [(self, other), (other, self)] {
            if one.exponent <= other.exponent && one.mantissa.is_one() {
                return Cow::Borrowed(other);
            }
        }
        let e = self.exponent.min(other.exponent);
        let (a, b) = (self.units(e), other.units(e));
        if let (Some(a), Some(b)) = (a.to_u32(), b.to_u32()) {
            return Cow::Owned(Decimal::new(BigInt::from((a as u64).lcm(&(b as u64))), e));
        }
        work::spend(8);
        spend_product(2 * a.bits(), 2 * b.bits());
        Cow::Owned(Decimal::new(a.lcm(&b), e))
    }

    /// The value as a small count: an integer from 0 on; a large one saturates.
    pub fn to_count(&self) -> Option<u32> {
        if self.mantissa.sign() == Sign::Minus || self.exponent < 0 {
            return None;
        }
        if self.exponent > 12 {
            return Some(u32::MAX - 1);
        }
        Some(u32::try_from(self.units(0)).unwrap_or(u32::MAX - 1).min(u32::MAX - 1))
    }

    /// A notation that equal values share; an exponent where plain notation would be long.
    pub fn short(&self) -> String {
        if (-20..=20).contains(&self.exponent) {
            return self.plain();
        }
        format!("{}e{}", self.mantissa, self.exponent)
    }

    /// Plain notation without an exponent, for messages and literals.
    pub fn plain(&self) -> String {
        let digits = self.mantissa.magnitude().to_string();
        let sign = if self.mantissa.is_negative() { "-" } else { "" };
        if self.exponent >= 0 {
            return format!("{sign}{digits}{}", "0".repeat(self.exponent as usize));
        }
        let places = (-self.exponent) as usize;
        let padded = format!("{digits:0>width$}", width = places + 1);
        let (whole, frac) = padded.split_at(padded.len() - places);
        format!("{sign}{whole}.{frac}")
    }
}

/// Counts the work of a product of numbers of so many bits; products of machine words cost nothing extra.
fn spend_product(a: u64, b: u64) {
    let (a, b) = (a / 64, b / 64);
    if a + b > 4 {
        work::spend((a + b) / 4 + a * b / 8);
    }
}

/// Both as integers of one unit, with the work of dividing one by the other.
fn dividing(a: &Decimal, b: &Decimal) -> (BigInt, BigInt) {
    let e = a.exponent.min(b.exponent);
    let (a, b) = (a.units(e), b.units(e));
    spend_product(a.bits().saturating_sub(b.bits()), b.bits());
    (a, b)
}

/// How often a prime divides a number that is not zero, and what is left then.
fn strip(number: &BigInt, prime: u32) -> (i64, BigInt) {
    let (mut count, mut left) = (0, number.clone());
    loop {
        work::spend(2 + left.bits() / 512);
        let (q, r) = left.div_rem(&BigInt::from(prime));
        if !r.is_zero() {
            return (count, left);
        }
        (count, left) = (count + 1, q);
    }
}

/// The same of a machine word.
fn strip_word(mut number: u64, prime: u64) -> (i64, u64) {
    let mut count = 0;
    while number.is_multiple_of(prime) {
        number /= prime;
        count += 1;
    }
    work::spend(1);
    (count, number)
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_sign = self.mantissa.sign().cmp(&other.mantissa.sign());
        if by_sign != Ordering::Equal || self.is_zero() {
            return by_sign;
        }
        if let Some(order) = self.cmp_small(other) {
            return order;
        }
        // exact arithmetic costs the difference of the exponents; the magnitudes nearly always decide
        let ((low, high), (other_low, other_high)) = (self.decades(), other.decades());
        let by_size = match () {
            _ if high < other_low => Ordering::Less,
            _ if other_high < low => Ordering::Greater,
            _ => {
                let e = self.exponent.min(other.exponent);
                return self.units(e).cmp(&other.units(e));
            }
        };
        if self.mantissa.is_negative() {
            by_size.reverse()
        } else {
            by_size
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_bounded_however_they_are_written() {
        let small = |zeros: usize| Decimal::parse(&format!("0.{}1", "0".repeat(zeros)));
        assert!(small(999).is_some() && small(1000).is_none());
        assert!(Decimal::parse("1e-1000").is_some() && Decimal::parse("0.1e-1000").is_none());
        assert!(Decimal::parse("1e-1001").is_none() && Decimal::parse("10e1000").is_none());
    }

    #[test]
    fn shifts_to_a_multiple_are_the_least_in_words_and_in_long_numbers() {
        let numbers = ["1", "-12", "75", "1e3", "0.08", "3e-5", "98765432109876543210", "-2.5e30", "7e40"];
        let units =
            ["1", "2", "0.5", "3", "0.3", "40", "1.6e-3", "125", "3000000000000000000000000", "64e18"];
        for x in numbers.map(|text| Decimal::parse(text).expect("a number")) {
            for unit in units.map(|text| Decimal::parse(text).expect("a number")) {
                let least = (-80..=80).find(|&k| x.scale(k).is_multiple_of(&unit));
                assert_eq!(x.least_shift_to_multiple(&unit), least, "{x:?} {unit:?}");
            }
        }
    }

    #[test]
    fn arithmetic_is_work_by_the_length_of_its_numbers() {
        let spent = |digits: usize| {
            let long = Decimal::parse(&"7".repeat(digits)).expect("a number");
            let unit = Decimal::parse(&"3".repeat(digits / 2)).expect("a number");
            work::run(u64::MAX - 1, || (long.is_multiple_of(&unit), work::spent()).1).expect("no limit")
        };
        assert!(spent(1000) > 5 * spent(100), "{} {}", spent(1000), spent(100));
    }

    #[test]
    fn the_order_is_that_of_exact_arithmetic() {
        let mantissas = [
            "0",
            "1",
            "9",
            "99",
            "1024",
            "9223372036854775807",
            "99999999999999999999",
            "100000000000000000001",
        ];
        let exponents = [-600, -30, -3, -1, 0, 1, 2, 18, 19, 21, 546];
        let some = mantissas.iter().flat_map(|m| exponents.iter().map(move |e| format!("{m}e{e}")));
        let positive: Vec<Decimal> = some.filter_map(|text| Decimal::parse(&text)).collect();
        let all: Vec<Decimal> = positive.iter().map(Decimal::neg).chain(positive.iter().cloned()).collect();
        for a in &all {
            for b in &all {
                let e = a.exponent.min(b.exponent);
                assert_eq!(a.cmp(b), a.units(e).cmp(&b.units(e)), "{a:?} {b:?}");
            }
        }
    }
}
