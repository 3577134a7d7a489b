//! How numbers are written, whatever their value: ordinary terms.

use std::sync::LazyLock;

use super::text::{Style, EXP_DIGITS};
use crate::lexical::term::{TermId, Terms, INF};
use crate::regex::{parse, Dialect, Lang};

/// Whatever JSON calls a number, with exponents of at most [`EXP_DIGITS`] digits.
static FREE: LazyLock<Lang> =
    LazyLock::new(|| pattern(&format!(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{{1,{EXP_DIGITS}}})?")));

/// Integers; `.0` may follow, as `json.dumps` writes floats that are integers.
static INTEGERS: LazyLock<Lang> = LazyLock::new(|| pattern(r"(0|-?[1-9][0-9]*)(\.0)?"));

/// What `json.dumps` and `JSON.stringify` write, exponents included.
static CANONICAL: LazyLock<Lang> = LazyLock::new(|| {
    let ends = "[0-9]*[1-9]";
    pattern(&format!(
        r"0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.({ends}|0)|-?[1-9](\.{ends})?e({CANONICAL_EXPONENTS})"
    ))
});

/// `-05..-09` (Python), `-7..-9` (JavaScript), `-10..-324`, `+16..+308`; classes of digits rather than 616
/// words, so that the state stays small enough for a key of the shared masks.
pub(super) const CANONICAL_EXPONENTS: &str = concat!(
    r"-0[5-9]|-[7-9]|-[1-9][0-9]|-[12][0-9][0-9]|-3[01][0-9]|-32[0-4]",
    r"|\+1[6-9]|\+[2-9][0-9]|\+[12][0-9][0-9]|\+30[0-8]",
);

fn pattern(text: &str) -> Lang {
    parse(text, Dialect::Python).expect("a pattern")
}

impl Terms {
    fn digit(&mut self, from: char, to: char) -> TermId {
        self.class(&[(from as u32, to as u32)])
    }

    fn chars(&mut self, chars: &str) -> TermId {
        let mut ranges: Vec<(u32, u32)> = chars.chars().map(|c| (c as u32, c as u32)).collect();
        ranges.sort_unstable();
        self.class(&ranges)
    }

    /// `0|[1-9][0-9]*`, of at most so many digits.
    fn whole(&mut self, most: u32) -> TermId {
        let (zero, lead, digit) = (self.digit('0', '0'), self.digit('1', '9'), self.digit('0', '9'));
        let rest = self.repeat(digit, 0, fewer(most));
        let long = self.concat(lead, rest);
        self.or(&[zero, long])
    }

    /// Every text of a style, whatever the value.
    pub(super) fn number_syntax(&mut self, style: Style) -> TermId {
        memo!(self.numbers.syntax, style, {
            match style {
                Style::Free => self.lower(&FREE),
                Style::Plain { signed_zero } => self.plain_syntax(INF, signed_zero),
                Style::Canonical { integral: true } => self.lower(&INTEGERS),
                Style::Canonical { integral: false } => self.lower(&CANONICAL),
            }
        })
    }

    fn integer_digits(&mut self, most: u32) -> TermId {
        let (minus, zero) = (self.chars("-"), self.digit('0', '0'));
        let (lead, digit) = (self.digit('1', '9'), self.digit('0', '9'));
        let sign = self.optional(minus);
        let rest = self.repeat(digit, 0, fewer(most));
        let long = self.concat_all(&[sign, lead, rest]);
        self.or(&[zero, long])
    }

    /// The rest of an integer that takes `least` to `most` more digits, whichever they are.
    pub(super) fn more_digits(&mut self, least: u32, most: u32, marked: bool) -> TermId {
        let digit = self.digit('0', '9');
        let digits = self.repeat(digit, least, most);
        let tail = if marked { self.literal(".0") } else { Self::EPS };
        let tail = self.optional(tail);
        self.concat(digits, tail)
    }

    /// The rest of a number, with at most so many more digits before the point (`None`: it was read) and
    /// after it.
    pub(super) fn within_digits(&mut self, rest: TermId, whole: Option<u32>, places: u32) -> TermId {
        let (digit, point) = (self.digit('0', '9'), self.chars("."));
        let mut digits = self.repeat(digit, 0, places);
        if let Some(most) = whole {
            let (before, after) = (self.repeat(digit, 0, most), self.concat(point, digits));
            let after = self.optional(after);
            digits = self.concat(before, after);
        }
        let (e, signs, exp) = (self.chars("e"), self.chars("+-"), self.repeat(digit, 1, EXP_DIGITS));
        let sign = self.optional(signs);
        let exponent = self.concat_all(&[e, sign, exp]);
        let exponent = self.optional(exponent);
        let bound = self.concat(digits, exponent);
        self.and(&[rest, bound])
    }

    /// Numbers of at most so many digits, without fraction and exponent; `signed_zero`: zero may have a sign.
    pub(super) fn plain_syntax(&mut self, most: u32, signed_zero: bool) -> TermId {
        if !signed_zero {
            return self.integer_digits(most);
        }
        let minus = self.chars("-");
        let (sign, whole) = (self.optional(minus), self.whole(most));
        self.concat(sign, whole)
    }
}

/// One digit fewer, of a number of digits that may be endless.
fn fewer(most: u32) -> u32 {
    if most == INF {
        INF
    } else {
        most - 1
    }
}
