//! The words of ABNF (RFC 5234) over [`Lang`]: sequence, choice, sets, ranges, texts.

use crate::regex::charset::CharSet;
use crate::regex::lang::Lang;

/// `a b c`
macro_rules! cat {
    ($($part:expr),+ $(,)?) => { $crate::regex::lang::Lang::concat([$($part),+]) };
}

/// `a / b / c`
macro_rules! any_of {
    ($($part:expr),+ $(,)?) => { $crate::regex::lang::Lang::or([$($part),+]) };
}

pub(super) use {any_of, cat};

/// One text, as it stands.
pub(super) fn text(text: &str) -> Lang {
    Lang::text(text)
}

/// One text of letters in either case, as a quoted string of ABNF means it.
pub(super) fn either_case(text: &str) -> Lang {
    Lang::concat(text.chars().map(|c| {
        let (lower, upper) = (c.to_ascii_lowercase() as u32, c.to_ascii_uppercase() as u32);
        Lang::class(CharSet::from_ranges(&[(lower, lower), (upper, upper)]))
    }))
}

/// One of these characters.
pub(super) fn one_of(chars: &str) -> Lang {
    Lang::class(CharSet::of(chars))
}

/// One character of the ranges.
pub(super) fn ranges(ranges: &[(u32, u32)]) -> Lang {
    Lang::class(CharSet::from_ranges(ranges))
}

pub(super) fn alpha() -> Lang {
    ranges(&[(0x41, 0x5A), (0x61, 0x7A)])
}

pub(super) fn digit() -> Lang {
    ranges(&[(0x30, 0x39)])
}

pub(super) fn hex_digit() -> Lang {
    ranges(&[(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)])
}

/// `n` such things.
pub(super) fn times(lang: Lang, n: u32) -> Lang {
    lang.repeat(n, Some(n))
}

/// The decimal numbers from `low` to `high` in two digits.
pub(super) fn two_digits(low: u32, high: u32) -> Lang {
    Lang::or((low / 10..=high / 10).map(|tens| {
        let first = if tens == low / 10 { low % 10 } else { 0 };
        let last = if tens == high / 10 { high % 10 } else { 9 };
        Lang::concat([ranges(&[(0x30 + tens, 0x30 + tens)]), ranges(&[(0x30 + first, 0x30 + last)])])
    }))
}

/// A list of at least one, with `separator` between.
pub(super) fn list(item: Lang, separator: Lang) -> Lang {
    Lang::concat([item.clone(), Lang::concat([separator, item]).star()])
}
