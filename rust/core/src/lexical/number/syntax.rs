//! How numbers are written, whatever their value: ordinary terms.

use super::text::EXP_DIGITS;
use crate::lexical::term::{TermId, Terms, INF};

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

    /// Whatever JSON calls a number, with exponents of at most [`EXP_DIGITS`] digits.
    pub(super) fn any_syntax(&mut self) -> TermId {
        let (minus, point, digit) = (self.chars("-"), self.chars("."), self.digit('0', '9'));
        let sign = self.optional(minus);
        let whole = self.whole(INF);
        let digits = self.repeat(digit, 1, INF);
        let frac = self.concat(point, digits);
        let frac = self.optional(frac);
        let (e, plus_minus) = (self.chars("eE"), self.chars("+-"));
        let exp_sign = self.optional(plus_minus);
        let exp_digits = self.repeat(digit, 1, EXP_DIGITS);
        let exp = self.concat_all(&[e, exp_sign, exp_digits]);
        let exp = self.optional(exp);
        self.concat_all(&[sign, whole, frac, exp])
    }

    /// Integers; `.0` may follow, as `json.dumps` writes floats that are integers.
    pub(super) fn integer_syntax(&mut self) -> TermId {
        let digits = self.integer_digits(INF);
        let tail = self.literal(".0");
        let tail = self.optional(tail);
        self.concat(digits, tail)
    }

    fn integer_digits(&mut self, most: u32) -> TermId {
        let (minus, zero) = (self.chars("-"), self.digit('0', '0'));
        let (lead, digit) = (self.digit('1', '9'), self.digit('0', '9'));
        let sign = self.optional(minus);
        let rest = self.repeat(digit, 0, fewer(most));
        let long = self.concat_all(&[sign, lead, rest]);
        self.or(&[zero, long])
    }

    /// What is left of an integer that takes so many more digits, whichever they are.
    pub(super) fn more_digits(&mut self, least: u32, most: u32, marked: bool) -> TermId {
        let digit = self.digit('0', '9');
        let digits = self.repeat(digit, least, most);
        let tail = if marked { self.literal(".0") } else { Self::EPS };
        let tail = self.optional(tail);
        self.concat(digits, tail)
    }

    /// What is left of a number, with at most so many more digits before the point (`None`: it is written) and after it.
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

    /// Numbers of at most so many digits, without fraction and exponent; zero may have a sign where it says so.
    pub(super) fn plain_syntax(&mut self, most: u32, signed_zero: bool) -> TermId {
        if !signed_zero {
            return self.integer_digits(most);
        }
        let minus = self.chars("-");
        let (sign, whole) = (self.optional(minus), self.whole(most));
        self.concat(sign, whole)
    }

    /// What `json.dumps` and `JSON.stringify` write, exponents included.
    pub(super) fn canonical_syntax(&mut self) -> TermId {
        let (minus, point) = (self.chars("-"), self.chars("."));
        let (zero, lead, digit) = (self.digit('0', '0'), self.digit('1', '9'), self.digit('0', '9'));
        let sign = self.optional(minus);
        let digits = self.star(digit);
        let ends = self.concat(digits, lead);
        let frac_tail = self.or(&[ends, zero]);
        let frac = self.concat(point, frac_tail);
        let whole = self.whole(INF);
        let decimal = self.concat_all(&[sign, whole, frac]);
        let integer = self.integer_digits(INF);
        let short = self.concat(point, ends);
        let short = self.optional(short);
        let e = self.chars("e");
        let exp = self.canonical_exponent();
        let scientific = self.concat_all(&[sign, lead, short, e, exp]);
        self.or(&[integer, decimal, scientific])
    }

    /// `-05..-09` (Python), `-7..-9` (JavaScript), `-10..-324`, `+16..+308`; classes of digits rather than 616
    /// words, so that the state stays small enough for a key of the shared masks.
    pub(super) fn canonical_exponent(&mut self) -> TermId {
        const FORMS: [&[(char, char)]; 10] = [
            &[('-', '-'), ('0', '0'), ('5', '9')],
            &[('-', '-'), ('7', '9')],
            &[('-', '-'), ('1', '9'), ('0', '9')],
            &[('-', '-'), ('1', '2'), ('0', '9'), ('0', '9')],
            &[('-', '-'), ('3', '3'), ('0', '1'), ('0', '9')],
            &[('-', '-'), ('3', '3'), ('2', '2'), ('0', '4')],
            &[('+', '+'), ('1', '1'), ('6', '9')],
            &[('+', '+'), ('2', '9'), ('0', '9')],
            &[('+', '+'), ('1', '2'), ('0', '9'), ('0', '9')],
            &[('+', '+'), ('3', '3'), ('0', '0'), ('0', '8')],
        ];
        let forms: Vec<TermId> = FORMS
            .iter()
            .map(|form| {
                let digits: Vec<TermId> = form.iter().map(|&(from, to)| self.digit(from, to)).collect();
                self.concat_all(&digits)
            })
            .collect();
        self.or(&forms)
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
