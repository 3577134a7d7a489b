//! Numbers that need no more arithmetic: all completions are in the set, or the number of further digits
//! decides.

use super::decimal::Decimal;
use super::piece::{Bound, Piece};
use super::possible::{half_line, interval, meets, one_lead_digit, reach, shifts};
use super::set::NumSet;
use super::text::{held, Partial, Spelled, Style};
use crate::lexical::term::INF;

/// The fewest and the most digits that an integer may still take, if their number alone decides: all
/// completions of a length are in the set, or none. The states of `12` and of `98` in `0..=99999` are one.
pub(super) fn digit_window(set: &NumSet, part: &Partial) -> Option<(u32, u32)> {
    if part.has_point || part.exponent.is_some() || part.digits.is_empty() || part.digits.starts_with('0') {
        return None;
    }
    let top = set.looked_at().map(|p| reach(p, part.negative)).max().unwrap_or(0) + 1;
    let begun = interval(part, 0, false);
    let near: Vec<_> = set.looked_at().filter_map(|p| shifts(p, part)).collect();
    let fits = |shift: i64| {
        // no piece has a number with so many digits
        if !near.iter().any(|shifts| shifts.0 <= shift && shifts.1.is_none_or(|most| shift <= most)) {
            return Some(false);
        }
        let mut range = begun.scale(shift);
        let far = if part.negative { &mut range.lo } else { &mut range.hi };
        if let Some(bound) = far {
            let inward = if part.negative { Decimal::one() } else { Decimal::one().neg() };
            *bound = Bound { at: bound.at.add(&inward), open: false };
        }
        let whole =
            |p: &Piece| p.not_units.is_empty() && p.unit.as_ref().is_none_or(|u| *u == Decimal::one());
        match set.looked_at().any(|p| whole(p) && covers(p, &range)) {
            true => Some(true),
            false if meets(set, &range) => None,
            false => Some(false),
        }
    };
    let own = part.digits.len() as i64 - 1;
    let all: Option<Vec<bool>> = (0..=(top - own).max(0)).map(fits).collect();
    let all = all?;
    let first = all.iter().position(|&fit| fit)?;
    let after = all[first..].iter().position(|&fit| !fit).map(|n| first + n);
    match after {
        None => Some((first as u32, INF)),
        Some(end) if all[end..].iter().any(|&fit| fit) => None,
        Some(end) => Some((first as u32, end as u32 - 1)),
    }
}

/// Whether every completion is in the set, so that only the syntax matters.
pub(super) fn includes_all(language: &Spelled, part: &Partial) -> bool {
    if part.exponent.is_some() || part.digits.is_empty() {
        return false;
    }
    let integral = matches!(language.style, Style::Plain { .. } | Style::Canonical { integral: true });
    if !language.values.looked_at().any(|p| free_of_units(p, integral)) {
        return false;
    }
    let hull = if language.style == Style::Free {
        let mut side = half_line(part);
        if part.digits.bytes().any(|digit| digit != b'0') {
            let zero = if part.negative { &mut side.hi } else { &mut side.lo };
            *zero = Some(Bound { at: Decimal::zero(), open: true });
        }
        if language.whole != INF {
            return held(vec![side]).pieces.iter().all(|part| {
                language.values.looked_at().any(|p| free_of_units(p, integral) && covers(p, part))
            });
        }
        side
    } else if part.has_point && !one_lead_digit(part) {
        interval(part, -(part.fraction as i64), false)
    } else if part.has_point || one_lead_digit(part) && !integral {
        half_line(part)
    } else if part.digits == "0" {
        interval(part, 0, false)
    } else {
        let start = interval(part, 0, false);
        match part.negative {
            true => Piece { lo: None, ..start },
            false => Piece { hi: None, ..start },
        }
    };
    language.values.looked_at().any(|p| free_of_units(p, integral) && covers(p, &hull))
}

fn free_of_units(p: &Piece, integral: bool) -> bool {
    p.not_units.is_empty() && (p.unit.is_none() || integral && p.unit == Some(Decimal::one()))
}

/// Whether the interval of `outer` holds that of `inner`.
fn covers(outer: &Piece, inner: &Piece) -> bool {
    let low = match (&outer.lo, &inner.lo) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(a), Some(b)) => a.at < b.at || (a.at == b.at && (!a.open || b.open)),
    };
    let high = match (&outer.hi, &inner.hi) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(a), Some(b)) => a.at > b.at || (a.at == b.at && (!a.open || b.open)),
    };
    low && high
}
