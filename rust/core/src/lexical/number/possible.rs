//! Whether a text is a prefix of a number of its language.
//!
//! The completions of `12` are the intervals `[12*10^k, 13*10^k)`, shifted by the exponents that may follow,
//! and on a grid where the number of further digits is limited. Exact arithmetic decides whether one of them
//! meets (intersects) the set.

use std::sync::LazyLock;

use super::decimal::Decimal;
use super::piece::{Bound, Piece};
use super::set::NumSet;
use super::text::{Partial, Spelled, Style, EXP_DIGITS, MAX_EXP};
use crate::lexical::term::INF;

/// Whether some completion of the text is a number of the language.
pub(super) fn possible(language: &Spelled, part: &Partial) -> bool {
    // arithmetic costs the square of the digits
    crate::work::spend(1 + (part.digits.len() * part.digits.len() / 64) as u64);
    let set = &language.values;
    let canonical = matches!(language.style, Style::Canonical { .. });
    if let Some(text) = part.exponent {
        let mantissa = part.mantissa();
        let written = |(low, high): (i64, i64)| match canonical {
            true => canonical_exponents(text).any(|e| low <= e && e <= high),
            false => some_exponent(text, low, high),
        };
        return set.looked_at().filter_map(|p| p.exponents(&mantissa, MAX_EXP)).any(written);
    }
    if part.digits.is_empty() {
        let mut side = half_line(part);
        if part.negative
            && matches!(
                language.style,
                Style::Plain { signed_zero: false } | Style::Canonical { integral: true }
            )
        {
            side.hi = Some(Bound { at: Decimal::zero(), open: true });
        }
        return meets(set, &side);
    }
    match language.style {
        Style::Free => language.all || free(language, part),
        Style::Plain { .. } => plain(language, part),
        Style::Canonical { integral } => {
            plain(language, part) || (!integral && one_lead_digit(part) && scientific(set, part))
        }
    }
}

/// Without an exponent.
fn plain(language: &Spelled, part: &Partial) -> bool {
    let set = &language.values;
    if part.has_point {
        // the text may end here only as ".0"; another trailing zero needs a digit after it
        let open = part.fraction > 1 && part.digits.ends_with('0');
        return meets(set, &interval(part, -(part.fraction as i64), open));
    }
    if part.digits == "0" {
        return meets(set, &interval(part, 0, false));
    }
    // `[D*10^k, (D+1)*10^k)` for k from 0 on
    let range = interval(part, 0, false);
    let own = part.digits.len() as i64;
    let left = language.whole as i64 - own;
    set.looked_at().any(|p| {
        let Some((least, most)) = shifts(p, part) else { return false };
        // without a far bound: beyond the bound near zero, an interval longer than the units has a number of
        // the piece, however many digits there are already
        let most = most.unwrap_or_else(|| least + 2 + units(p));
        (least..=most.max(least).min(left)).any(|k| {
            let range = range.scale(k);
            !range.is_empty() && p.meets(&range)
        })
    })
}

/// How many more digits before the point, at least and at most, may lead into the piece: they bring the
/// number to the magnitudes of the piece's bounds and of its unit.
pub(super) fn shifts(p: &Piece, part: &Partial) -> Option<(i64, Option<i64>)> {
    let own = part.digits.len() as i64 - 1;
    let near = if part.negative { &p.hi } else { &p.lo };
    let least = match near {
        Some(b) if b.at.is_positive() != part.negative && !b.at.is_zero() => b.at.magnitude() - own - 1,
        _ => 0,
    };
    let far = if part.negative { &p.lo } else { &p.hi };
    // zero is the only multiple below the unit
    let least = p.unit.as_ref().map_or(least, |unit| least.max(unit.magnitude() - own));
    // the whole piece is on the other side of zero
    let beyond = far.as_ref().is_some_and(|b| !b.at.is_zero() && b.at.is_positive() == part.negative);
    let most = far.as_ref().map(|_| (reach(p, part.negative) - own + 1).max(0));
    (!beyond).then_some((least.max(0), most))
}

/// With exponents: some power of ten moves an extension of the mantissa into the set.
fn free(language: &Spelled, part: &Partial) -> bool {
    // an exponent may follow without more digits than zeros
    let mantissa = part.mantissa();
    let values = &language.values;
    if values.looked_at().any(|p| p.exponents(&mantissa, MAX_EXP).is_some()) {
        return true;
    }
    let left = |most: u32, written: usize| match most {
        INF => INF,
        _ => most.saturating_sub(written as u32),
    };
    let whole =
        if part.has_point || part.digits == "0" { 0 } else { left(language.whole, part.digits.len()) };
    let more = whole.saturating_add(left(language.places, part.fraction));
    let shifts = (-MAX_EXP - part.fraction as i64, MAX_EXP - part.fraction as i64 + whole as i64);
    more > 0 && values.looked_at().any(|p| within_reach(p, part, more, shifts))
}

/// Whether the piece has a nonzero number that begins with the text's digits, has at most `more` further
/// ones, and is the text scaled by one of these powers of ten. The number without more digits is not in the
/// piece.
fn within_reach(piece: &Piece, part: &Partial, more: u32, (lowest, highest): (i64, i64)) -> bool {
    let mut side = half_line(part);
    let zero = if part.negative { &mut side.hi } else { &mut side.lo };
    *zero = Some(Bound { at: Decimal::zero(), open: true });
    let Some(piece) = piece.intersect(&side).filter(|both| !both.is_empty()) else { return false };
    let size = |x: &Decimal| if x.is_zero() { None } else { Some(x.magnitude()) };
    // after zeros alone the numbers are below the power of ten; after other digits they are from it on
    let own = part.digits.trim_start_matches('0').len() as i64 - 1;
    let (near, far) = if part.negative { (&piece.hi, &piece.lo) } else { (&piece.lo, &piece.hi) };
    let near_size = near.as_ref().and_then(|b| size(&b.at));
    // beyond the bound near zero, an interval longer than the units has a number of the piece
    let enough = (near_size.unwrap_or(0).max(0) - own).max(0) + units(&piece) + 1;
    let top = far.as_ref().and_then(|b| size(&b.at)).map_or(enough, |size| enough.min(size - own));
    let bottom = match near_size.into_iter().chain(piece.unit.as_ref().and_then(size)).max() {
        Some(least) => least - own - 1,
        // no number below all excluded units is a multiple of one
        None => piece.not_units.iter().filter_map(size).fold(top.min(0), i64::min) - own - 2,
    };
    // below the unit's last digit only the text's own number can be a multiple, with any number of zeros
    let bottom = piece.unit.as_ref().map_or(bottom, |unit| bottom.max(unit.exponent()));
    let begun = interval(part, 0, false);
    (bottom.max(lowest)..=top.min(highest)).rev().any(|shift| {
        let mut range = begun.scale(shift);
        if more != INF {
            range.unit = Some(Decimal::one().scale(shift - more as i64));
        }
        piece.meets(&range)
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
    !range.is_empty() && set.looked_at().any(|p| p.meets(range))
}

/// The numbers with the text's sign.
pub(super) fn half_line(part: &Partial) -> Piece {
    let zero = Some(Bound { at: Decimal::zero(), open: false });
    if part.negative {
        Piece { hi: zero, ..Piece::all() }
    } else {
        Piece { lo: zero, ..Piece::all() }
    }
}

pub(super) fn one_lead_digit(part: &Partial) -> bool {
    part.digits.len() - part.fraction == 1 && !part.digits.starts_with('0')
}

/// Whether a canonical `d.ddde±XX` of the set begins with the text: its magnitude is the exponent, so only
/// exponents between the magnitudes of a piece's bounds are tried.
fn scientific(set: &NumSet, part: &Partial) -> bool {
    let open = part.has_point && (part.fraction == 0 || part.digits.ends_with('0'));
    set.looked_at().any(|p| {
        let (near, far) = if part.negative { (&p.hi, &p.lo) } else { (&p.lo, &p.hi) };
        let beyond_zero = |b: &Bound| !b.at.is_zero() && b.at.is_positive() != part.negative;
        let least = match near {
            Some(b) if beyond_zero(b) => b.at.magnitude(),
            _ => i64::MIN,
        };
        // the text is not zero, and zero is the only multiple below the unit
        let least = p.unit.as_ref().map_or(least, |unit| least.max(unit.magnitude()));
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

/// A power of ten beyond which a greater scale does not change whether an interval meets the piece.
pub(super) fn reach(p: &Piece, negative: bool) -> i64 {
    let size = |x: &Decimal| if x.is_zero() { 0 } else { x.magnitude() };
    let (near, far) = if negative { (&p.hi, &p.lo) } else { (&p.lo, &p.hi) };
    match far {
        Some(b) => size(&b.at) + 1,
        None => near.as_ref().map_or(0, |b| size(&b.at)).max(0) + units(p),
    }
}

/// A power of ten above the unit times, for each excluded unit, the least number of units that is a multiple
/// of it.
fn units(p: &Piece) -> i64 {
    let size = |x: &Decimal| if x.is_zero() { 0 } else { x.magnitude() };
    let excluded = |x: &Decimal| p.unit.as_ref().map_or_else(|| size(x).max(0), |unit| x.most_units(unit));
    let together = p.unit.as_ref().map_or(0, size) + p.not_units.iter().map(excluded).sum::<i64>();
    together.max(0) + 2
}

/// Whether an exponent in `low..=high` begins with the text (sign and digits so far).
fn some_exponent(text: &str, low: i64, high: i64) -> bool {
    let (signs, digits): (&[i64], &str) = match text.as_bytes().first() {
        Some(b'-') => (&[-1], &text[1..]),
        Some(b'+') => (&[1], &text[1..]),
        None => (&[1, -1], text),
        _ => (&[1], text),
    };
    let start: i64 = digits.parse().unwrap_or(0);
    let shortest = digits.is_empty() as u32;
    (shortest..=EXP_DIGITS - digits.len() as u32).any(|k| {
        signs.iter().any(|&sign| {
            let (from, to) = decade(start, k, sign < 0);
            from.max(low) <= to.min(high)
        })
    })
}

/// The numbers whose digits are these and so many more.
pub(super) fn decade(start: i64, more: u32, minus: bool) -> (i64, i64) {
    let scale = 10i64.pow(more);
    let (from, to) = (start * scale, (start + 1) * scale - 1);
    if minus {
        (-to, -from)
    } else {
        (from, to)
    }
}

/// Whether a canonical text that ends with a digit may end there: not after a minus and a zero, nor after a zero of a
/// fraction but that of `.0`, nor within an exponent.
pub(super) fn ends_canonically(part: &Partial) -> bool {
    let zero = part.fraction > 0 && part.digits.ends_with('0');
    match part.exponent {
        Some(text) => !zero && exponent_forms().iter().any(|(form, _)| form == text),
        None if part.has_point => !zero || part.fraction == 1,
        None => !part.negative || part.digits != "0",
    }
}

/// The exponents that canonical texts have and that begin with this text.
fn canonical_exponents(text: &str) -> impl Iterator<Item = i64> + '_ {
    exponent_forms().iter().filter(move |(form, _)| form.starts_with(text)).map(|f| f.1)
}

fn exponent_forms() -> &'static [(String, i64)] {
    static FORMS: LazyLock<Vec<(String, i64)>> = LazyLock::new(|| canonical_forms().collect());
    &FORMS
}

pub(super) fn canonical_forms() -> impl Iterator<Item = (String, i64)> {
    let small = (5..10).map(|k| (format!("-0{k}"), -k));
    let down = (7..325).map(|k| (format!("-{k}"), -k));
    let up = (16..309).map(|k| (format!("+{k}"), k));
    small.chain(down).chain(up)
}

#[cfg(test)]
mod tests {
    use super::super::syntax::CANONICAL_EXPONENTS;
    use super::*;
    use crate::lexical::term::Terms;
    use crate::regex::{parse, Dialect};

    #[test]
    fn canonical_exponents_have_the_values_that_bounds_are_told_from() {
        let mut terms = Terms::default();
        let lang = parse(CANONICAL_EXPONENTS, Dialect::Python).expect("a pattern");
        let term = terms.lower(&lang);
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
