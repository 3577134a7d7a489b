//! Texts that spell a number of a set: the state of a number is its text so far.
//!
//! Syntax and value are kept apart.  Syntax is an ordinary term; the value question is "does some completion of
//! this text lie in the set", answered by exact arithmetic: the completions of `12` are the intervals
//! `[12*10^k, 13*10^k)`, shifted by the exponents that may follow.  As soon as every completion is in the set,
//! the state becomes the plain syntax term, so states recur.  Rejected: digit automata per bound and residue;
//! with exponents, which scale what was read before them, their product is neither small nor simple.
//!
//! Limits of `numbers="any"`: exponents have at most [`EXP_DIGITS`] digits.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::decimal::Decimal;
use super::set::{Bound, NumSet, NumSetId, NumSets, Piece, Spelling};
use super::window::{digit_window, includes_all};
use crate::lexical::delta::Run;
use crate::lexical::term::{TermId, Terms, INF, MAX_CP};

/// Digits of an exponent under `numbers="any"`.
pub const EXP_DIGITS: u32 = 3;
pub(super) const MAX_EXP: i64 = 999;

/// Sets of numbers and the texts that were read of them.
#[derive(Default)]
pub struct NumberTerms {
    pub sets: NumSets,
    pub(super) texts: IndexSet<Box<str>, FxBuildHasher>,
    /// Every spelling that JSON knows, or the canonical one.
    pub any_spelling: bool,
    syntax: FxHashMap<bool, TermId>,
}

/// Pieces up to which a set is worth a key of the shared masks.
const KEYED_PIECES: usize = 8;

impl NumberTerms {
    /// The set and the text so far as bytes, whole: a key.
    pub(crate) fn encode(&self, set: NumSetId, text: u32, out: &mut Vec<u8>) -> bool {
        use std::io::Write;
        let pieces = &self.sets.get(set).pieces;
        if pieces.len() > KEYED_PIECES {
            return false;
        }
        write!(out, "{}|{}|{pieces:?}|", self.any_spelling, &self.texts[text as usize]).is_ok()
    }
}

/// A text so far, taken apart.
pub(super) struct Partial<'a> {
    pub(super) negative: bool,
    /// Digits of the mantissa without the point.
    pub(super) digits: String,
    pub(super) fraction: usize,
    pub(super) has_point: bool,
    pub(super) exponent: Option<&'a str>,
}

impl<'a> Partial<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (body, exponent) = match rest.find(['e', 'E']) {
            Some(i) => (&rest[..i], Some(&rest[i + 1..])),
            None => (rest, None),
        };
        let (whole, frac) = body.split_once('.').unwrap_or((body, ""));
        Partial {
            negative,
            digits: format!("{whole}{frac}"),
            fraction: frac.len(),
            has_point: body.contains('.'),
            exponent,
        }
    }

    pub(super) fn mantissa(&self) -> Decimal {
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        let value = Decimal::new(digits.parse().expect("digits"), -(self.fraction as i64));
        if self.negative {
            value.neg()
        } else {
            value
        }
    }
}

impl NumberTerms {
    /// Whether the text is a number of the set (its syntax is checked elsewhere).
    pub fn accepts(&self, set: NumSetId, text: u32) -> bool {
        let text = &self.texts[text as usize];
        if !text.ends_with(|c: char| c.is_ascii_digit()) {
            return false;
        }
        Decimal::parse(text).is_some_and(|x| self.sets.get(set).contains(&x))
    }
}

impl Terms {
    /// The texts of the numbers of a set.
    pub fn numbers_in(&mut self, set: NumSet) -> TermId {
        if set.is_empty() {
            return Self::EMPTY;
        }
        if !is_plain(&set) && !set.in_any_spelling() {
            return self.by_spelling(set);
        }
        let integral = only_integers(&set);
        if is_plain(&set) && set.pieces.iter().any(is_all_integers) {
            return self.plain_syntax();
        }
        if set.is_all() || (integral && set.pieces.iter().any(is_all_integers)) {
            return self.number_syntax(integral);
        }
        let id = self.numbers.sets.intern(set);
        let (text, _) = self.numbers.texts.insert_full("".into());
        let start = self.number(id, text as u32);
        let runs = self.delta(start);
        if runs.iter().all(|r| r.to == Self::EMPTY) {
            return Self::EMPTY;
        }
        start
    }

    /// A set that tells spellings apart: the plain, the marked and the indifferent pieces each in their texts.
    fn by_spelling(&mut self, set: NumSet) -> TermId {
        let part = |kind: Spelling| NumSet {
            pieces: set.pieces.iter().filter(|p| p.spelling == kind).cloned().collect(),
        };
        let mut marked = part(Spelling::Marked);
        marked.pieces.iter_mut().for_each(|p| p.spelling = Spelling::Any);
        let marked = self.numbers_in(marked);
        let digits = self.plain_syntax();
        let other = self.not(digits);
        let marked = self.and(&[marked, other]);
        let plain = self.numbers_in(part(Spelling::Plain));
        let any = self.numbers_in(part(Spelling::Any));
        self.or(&[plain, any, marked])
    }

    /// Every spelling of a number; `integral`: of an integer.
    pub fn number_syntax(&mut self, integral: bool) -> TermId {
        if let Some(&t) = self.numbers.syntax.get(&integral) {
            return t;
        }
        let t = match (self.numbers.any_spelling, integral) {
            (true, false) => self.any_syntax(),
            (true, true) => {
                let id = self.numbers.sets.intern(NumSet::multiples(Decimal::one()));
                let (text, _) = self.numbers.texts.insert_full("".into());
                self.number(id, text as u32)
            }
            (false, false) => self.canonical_syntax(),
            (false, true) => self.integer_syntax(),
        };
        self.numbers.syntax.insert(integral, t);
        t
    }

    fn digit(&mut self, from: char, to: char) -> TermId {
        self.class(&[(from as u32, to as u32)])
    }

    fn chars(&mut self, chars: &str) -> TermId {
        let mut ranges: Vec<(u32, u32)> = chars.chars().map(|c| (c as u32, c as u32)).collect();
        ranges.sort_unstable();
        self.class(&ranges)
    }

    /// `0|[1-9][0-9]*`
    fn whole(&mut self) -> TermId {
        let (zero, lead, digit) = (self.digit('0', '0'), self.digit('1', '9'), self.digit('0', '9'));
        let rest = self.star(digit);
        let long = self.concat(lead, rest);
        self.or(&[zero, long])
    }

    fn any_syntax(&mut self) -> TermId {
        let (minus, point, digit) = (self.chars("-"), self.chars("."), self.digit('0', '9'));
        let sign = self.optional(minus);
        let whole = self.whole();
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
    fn integer_syntax(&mut self) -> TermId {
        let digits = self.integer_digits();
        let tail = self.literal(".0");
        let tail = self.optional(tail);
        self.concat(digits, tail)
    }

    fn integer_digits(&mut self) -> TermId {
        let (minus, zero) = (self.chars("-"), self.digit('0', '0'));
        let (lead, digit) = (self.digit('1', '9'), self.digit('0', '9'));
        let sign = self.optional(minus);
        let rest = self.star(digit);
        let long = self.concat_all(&[sign, lead, rest]);
        self.or(&[zero, long])
    }

    /// What is left of an integer that takes so many more digits, whichever they are.
    fn more_digits(&mut self, least: u32, most: u32, marked: bool) -> TermId {
        let digit = self.digit('0', '9');
        let digits = self.repeat(digit, least, most);
        let tail = if marked { self.literal(".0") } else { Self::EPS };
        let tail = self.optional(tail);
        self.concat(digits, tail)
    }

    /// Numbers without fraction and exponent; canonical ones are never written `-0`.
    fn plain_syntax(&mut self) -> TermId {
        if !self.numbers.any_spelling {
            return self.integer_digits();
        }
        let minus = self.chars("-");
        let (sign, whole) = (self.optional(minus), self.whole());
        self.concat(sign, whole)
    }

    /// What `json.dumps` and `JSON.stringify` write, exponents included.
    fn canonical_syntax(&mut self) -> TermId {
        let (minus, point) = (self.chars("-"), self.chars("."));
        let (zero, lead, digit) = (self.digit('0', '0'), self.digit('1', '9'), self.digit('0', '9'));
        let sign = self.optional(minus);
        let digits = self.star(digit);
        let ends = self.concat(digits, lead);
        let frac_tail = self.or(&[ends, zero]);
        let frac = self.concat(point, frac_tail);
        let whole = self.whole();
        let decimal = self.concat_all(&[sign, whole, frac]);
        let integer = self.integer_digits();
        let short = self.concat(point, ends);
        let short = self.optional(short);
        let e = self.chars("e");
        let exp = self.canonical_exponent();
        let scientific = self.concat_all(&[sign, lead, short, e, exp]);
        self.or(&[integer, decimal, scientific])
    }

    /// `-05..-09` (Python), `-7..-9` (JavaScript), `-10..-324`, `+16..+308`; classes of digits rather than 616
    /// words, so that the state stays small enough for a key of the shared masks.
    fn canonical_exponent(&mut self) -> TermId {
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

    pub(crate) fn number_runs(&mut self, set: NumSetId, text: u32) -> Vec<Run> {
        let text = self.numbers.texts[text as usize].to_string();
        let values = self.numbers.sets.get(set).clone();
        let plain = is_plain(&values);
        let any = self.numbers.any_spelling && !plain;
        let integral = only_integers(&values) && !any;
        let mut syntax = match (plain, any) {
            (true, _) => self.plain_syntax(),
            (_, true) => self.any_syntax_once(),
            _ => self.number_syntax(integral),
        };
        for c in text.chars() {
            syntax = self.derive(syntax, c as u32);
        }
        let mut runs: Vec<Run> = Vec::new();
        let mut next = 0;
        for c in "+-.0123456789Ee".chars() {
            let rest = self.derive(syntax, c as u32);
            if rest == Self::EMPTY {
                continue;
            }
            // `E` means `e`: one text for both keeps the states half as many
            let longer = format!("{text}{}", c.to_ascii_lowercase());
            let part = Partial::of(&longer);
            // arithmetic costs the square of the digits
            self.charge(50 + longer.len() * longer.len() / 16);
            if !feasible(&values, &part, integral, any, self.numbers.any_spelling) {
                continue;
            }
            let window = integral.then(|| digit_window(&values, &part)).flatten();
            let to = if includes_all(&values, &part, integral, any) {
                rest
            } else if let Some((least, most)) = window {
                self.more_digits(least, most, !plain)
            } else {
                let (id, _) = self.numbers.texts.insert_full(longer.into());
                self.number(set, id as u32)
            };
            let cp = c as u32;
            if cp > next {
                runs.push(Run { end: cp - 1, to: Self::EMPTY });
            }
            runs.push(Run { end: cp, to });
            next = cp + 1;
        }
        runs.push(Run { end: MAX_CP, to: Self::EMPTY });
        runs
    }

    fn any_syntax_once(&mut self) -> TermId {
        self.number_syntax(false)
    }
}

fn is_plain(set: &NumSet) -> bool {
    set.pieces.iter().all(|p| p.spelling == Spelling::Plain)
}

fn is_all_integers(p: &Piece) -> bool {
    p.lo.is_none() && p.hi.is_none() && p.not_units.is_empty() && p.unit == Some(Decimal::one())
}

/// Whether every number of the set is an integer.
pub fn only_integers(set: &NumSet) -> bool {
    set.pieces.iter().all(|p| match p.as_point() {
        Some(x) => x.is_multiple_of(&Decimal::one()),
        None => p.unit.as_ref().is_some_and(|u| u.is_multiple_of(&Decimal::one())),
    })
}

/// The numbers `mantissa..mantissa+ulp` scaled by `10^shift`, on the side of zero that the sign tells.
pub(super) fn interval(part: &Partial, shift: i64, open_start: bool) -> Piece {
    let digits = if part.digits.is_empty() { "0" } else { &part.digits };
    let near = Decimal::new(digits.parse().expect("digits"), 0);
    let far = near.add(&Decimal::one());
    let (near, far) = (near.scale(shift), far.scale(shift));
    let near = Some(Bound { at: if part.negative { near.neg() } else { near }, open: open_start });
    let far = Some(Bound { at: if part.negative { far.neg() } else { far }, open: true });
    let (lo, hi) = if part.negative { (far, near) } else { (near, far) };
    Piece { lo, hi, ..Piece::all() }
}

/// Whether the set holds a number of the range, an interval without units.
pub(super) fn meets(set: &NumSet, range: &Piece) -> bool {
    !range.is_empty() && set.pieces.iter().any(|p| p.meets(range))
}

/// The side of zero that a bare sign leaves open.
pub(super) fn half_line(part: &Partial) -> Piece {
    let zero = Some(Bound { at: Decimal::zero(), open: false });
    if part.negative {
        Piece { hi: zero, ..Piece::all() }
    } else {
        Piece { lo: zero, ..Piece::all() }
    }
}

/// Whether some completion of the text is in the set; `signed_zero`: an integer may be written `-0`.
fn feasible(set: &NumSet, part: &Partial, integral: bool, any: bool, signed_zero: bool) -> bool {
    if let Some(exp) = part.exponent {
        let mantissa = part.mantissa();
        let mut ways = set.pieces.iter().filter_map(|p| p.exponents(&mantissa, MAX_EXP));
        return ways.any(|(low, high)| some_exponent(exp, any, low, high));
    }
    if part.digits.is_empty() {
        let mut side = half_line(part);
        if integral && part.negative && !signed_zero {
            side.hi = Some(Bound { at: Decimal::zero(), open: true });
        }
        return meets(set, &side);
    }
    if any {
        return feasible_any(set, part);
    }
    let plain = if part.has_point {
        // the text may end here only as ".0"; another trailing zero needs a digit after it
        let open = part.fraction > 1 && part.digits.ends_with('0');
        meets(set, &interval(part, -(part.fraction as i64), open))
    } else if part.digits == "0" {
        meets(set, &interval(part, 0, false))
    } else {
        whole_completions(set, part)
    };
    plain || (!integral && one_lead_digit(part) && scientific(set, part))
}

pub(super) fn one_lead_digit(part: &Partial) -> bool {
    part.digits.len() - part.fraction == 1 && !part.digits.starts_with('0')
}

/// Canonical `d.ddde±XX` that begins with the text: its magnitude is the exponent, so only exponents between
/// the magnitudes of a piece's bounds are tried.
fn scientific(set: &NumSet, part: &Partial) -> bool {
    let open = part.has_point && (part.fraction == 0 || part.digits.ends_with('0'));
    set.pieces.iter().any(|p| {
        let (near, far) = if part.negative { (&p.hi, &p.lo) } else { (&p.lo, &p.hi) };
        let beyond_zero = |b: &Bound| !b.at.is_zero() && b.at.is_positive() != part.negative;
        let least = match near {
            Some(b) if beyond_zero(b) => b.at.magnitude(),
            _ => i64::MIN,
        };
        let most = match far {
            Some(b) if beyond_zero(b) => b.at.magnitude(),
            Some(_) => i64::MIN,
            None => i64::MAX,
        };
        let one = NumSet { pieces: vec![p.clone()] };
        canonical_exponents("")
            .filter(|e| (least..=most).contains(e))
            .any(|e| meets(&one, &interval(part, e - part.fraction as i64, open)))
    })
}

/// `[D*10^k, (D+1)*10^k)` for k from 0 on.
fn whole_completions(set: &NumSet, part: &Partial) -> bool {
    let range = interval(part, 0, false);
    set.pieces.iter().any(|p| {
        let Some((least, most)) = shifts(p, part) else { return false };
        // without a bound ahead, an interval longer than the units holds what is sought
        let most = most.unwrap_or_else(|| reach(p, part.negative) - part.digits.len() as i64 + 2);
        (least..=most.max(least)).any(|k| {
            let range = range.scale(k);
            !range.is_empty() && p.meets(&range)
        })
    })
}

/// How many more digits before the point may lead into the piece: as many as bring the number to the magnitudes of
/// the piece's bounds, at least and at most.
pub(super) fn shifts(p: &Piece, part: &Partial) -> Option<(i64, Option<i64>)> {
    let own = part.digits.len() as i64 - 1;
    let near = if part.negative { &p.hi } else { &p.lo };
    let least = match near {
        Some(b) if b.at.is_positive() != part.negative && !b.at.is_zero() => b.at.magnitude() - own - 1,
        _ => 0,
    };
    let far = if part.negative { &p.lo } else { &p.hi };
    // on the other side of zero there is nothing
    let beyond = far.as_ref().is_some_and(|b| !b.at.is_zero() && b.at.is_positive() == part.negative);
    let most = far.as_ref().map(|_| (reach(p, part.negative) - own + 1).max(0));
    (!beyond).then_some((least.max(0), most))
}

/// A power of ten beyond which scaling a number up changes nothing about meeting the piece.
pub(super) fn reach(p: &Piece, negative: bool) -> i64 {
    let size = |x: &Decimal| if x.is_zero() { 0 } else { x.magnitude() };
    let units = p.unit.iter().chain(&p.not_units).map(size).sum::<i64>().max(0) + 2;
    let (near, far) = if negative { (&p.hi, &p.lo) } else { (&p.lo, &p.hi) };
    match far {
        Some(b) => size(&b.at) + 1,
        None => near.as_ref().map_or(0, |b| size(&b.at)).max(0) + units,
    }
}

/// With exponents: some power of ten moves an extension of the mantissa into the set.
fn feasible_any(set: &NumSet, part: &Partial) -> bool {
    let size = |x: &Decimal| if x.is_zero() { 0 } else { x.magnitude() };
    let zero = part.digits.bytes().all(|b| b == b'0');
    if zero {
        let up = if part.has_point { MAX_EXP - part.fraction as i64 } else { 0 };
        // a fraction may still get digits; a bare 0 may become one
        return meets(set, &interval(part, up, false));
    }
    // zeros and an exponent may follow at once
    let mantissa = part.mantissa();
    if set.pieces.iter().any(|p| p.exponents(&mantissa, MAX_EXP).is_some()) {
        return true;
    }
    let own = part.digits.trim_start_matches('0').len() as i64 - 1;
    let side = half_line(part);
    set.pieces.iter().any(|p| {
        let one = NumSet { pieces: vec![p.clone()] };
        if !meets(&one, &side) {
            return false;
        }
        let (near, far) = if part.negative { (&p.hi, &p.lo) } else { (&p.lo, &p.hi) };
        let near_size = match near {
            Some(b) if b.at.is_positive() != part.negative && !b.at.is_zero() => Some(size(&b.at)),
            _ => None,
        };
        // without a bound ahead, an interval longer than the units holds what is sought
        let top = match far {
            Some(b) => size(&b.at) - own + 1,
            None => (reach(p, part.negative) - own + 1).max(reach(p, part.negative)),
        };
        let bottom = match (near_size, &p.unit) {
            (Some(n), _) => n - own - 1,
            (None, Some(u)) => size(u) - own - 1,
            (None, None) => top.min(0) - 400,
        };
        let floor = -(MAX_EXP + part.fraction as i64);
        (bottom.max(floor)..=top).rev().any(|shift| {
            let reachable = part.has_point as i64 * (MAX_EXP - part.fraction as i64);
            (!part.has_point || shift <= reachable) && meets(&one, &interval(part, shift, false))
        })
    })
}

/// Whether an exponent in `low..=high` begins with the text (sign and digits so far).
fn some_exponent(text: &str, any: bool, low: i64, high: i64) -> bool {
    if !any {
        return canonical_exponents(text).any(|e| low <= e && e <= high);
    }
    let (signs, digits): (&[i64], &str) = match text.as_bytes().first() {
        Some(b'-') => (&[-1], &text[1..]),
        Some(b'+') => (&[1], &text[1..]),
        None => (&[1, -1], text),
        _ => (&[1], text),
    };
    let start: i64 = digits.parse().unwrap_or(0);
    let shortest = digits.is_empty() as u32;
    (shortest..=EXP_DIGITS - digits.len() as u32).any(|k| {
        let scale = 10i64.pow(k);
        let (from, to) = (start * scale, (start + 1) * scale - 1);
        signs.iter().any(|&sign| {
            let (from, to) = if sign < 0 { (-to, -from) } else { (from, to) };
            from.max(low) <= to.min(high)
        })
    })
}

/// The exponents that canonical texts have and that begin with this text.
fn canonical_exponents(text: &str) -> impl Iterator<Item = i64> + '_ {
    static FORMS: std::sync::OnceLock<Vec<(String, i64)>> = std::sync::OnceLock::new();
    let forms = FORMS.get_or_init(|| canonical_forms().collect());
    forms.iter().filter(move |(form, _)| form.starts_with(text)).map(|f| f.1)
}

pub(super) fn canonical_forms() -> impl Iterator<Item = (String, i64)> {
    let small = (5..10).map(|k| (format!("-0{k}"), -k));
    let down = (7..325).map(|k| (format!("-{k}"), -k));
    let up = (16..309).map(|k| (format!("+{k}"), k));
    small.chain(down).chain(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_exponents_have_the_values_that_bounds_are_told_from() {
        let mut terms = Terms::default();
        let term = terms.canonical_exponent();
        let known: Vec<String> = canonical_forms().map(|(form, _)| form).collect();
        for sign in ["", "-", "+"] {
            for n in 0..1000 {
                for zeros in ["", "0", "00"] {
                    let text = format!("{sign}{zeros}{n}");
                    assert_eq!(terms.accepts(term, &text), known.contains(&text), "{text}");
                }
            }
        }
    }
}
