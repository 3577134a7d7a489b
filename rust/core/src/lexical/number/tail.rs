//! A short completion of a partly read number, by arithmetic where a search would try many digits: the digits
//! of a number of the set, or an exponent that leads into the set.

use std::sync::LazyLock;

use super::decimal::Decimal;
use super::piece::{NumberForm, Piece};
use super::possible::{canonical_forms, half_line, interval, one_lead_digit};
use super::set::NumSet;
use super::text::{Partial, Style, MAX_EXP};
use super::SpelledId;
use crate::lexical::term::{Term, TermId, Terms};

/// Digits that may be needed before a canonical exponent; the fraction must not end in zero.
const DIGITS: [&str; 5] = ["", "1", "5", "2", "25"];

const AFTER_POINT: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// The exponents of canonical texts, the nearest to 0 first.
static FORMS: LazyLock<Vec<(String, i64)>> = LazyLock::new(|| {
    let mut forms: Vec<(String, i64)> = canonical_forms().collect();
    forms.sort_by_key(|form| form.1.abs());
    forms
});

/// Digits that a completion may add before the point.
const MOST_DIGITS: i64 = 40;

impl Terms {
    pub fn is_number(&self, term: TermId) -> bool {
        matches!(self.get(term), Term::Num(..))
    }

    /// Whether the term is a tuple or union of numbers.
    pub fn is_numbers(&self, term: TermId) -> bool {
        match self.get(term) {
            Term::Tuple(xs) | Term::Or(xs) => xs.iter().all(|&x| x == Self::EMPTY || self.is_number(x)),
            _ => false,
        }
    }

    /// A short completion of a number of this state; `None` where none is known. In a tuple or union, one
    /// member's is enough.
    pub fn number_tail(&self, term: TermId) -> Option<String> {
        match self.get(term) {
            Term::Num(language, text) => self.tail_of(*language, *text),
            Term::Tuple(xs) | Term::Or(xs) => {
                xs.iter().filter_map(|&x| self.number_tail(x)).min_by_key(String::len)
            }
            _ => None,
        }
    }

    fn tail_of(&self, language: SpelledId, text: u32) -> Option<String> {
        let (language, text) = (self.numbers.language(language), self.numbers.text(text));
        let set = &language.values;
        let part = Partial::of(text);
        let digits = digit_tail(set, &part, text);
        let exponent = match language.style {
            Style::Free => any_tail(set, &part, text),
            Style::Canonical { integral: false } => canonical_tail(set, &part, text),
            Style::Canonical { integral: true } | Style::Plain { .. } => None,
        };
        let fits = |tail: &String| language.within(&Partial::of(&format!("{text}{tail}")));
        digits.into_iter().chain(exponent).filter(fits).min_by_key(String::len)
    }
}

/// The digits of some number of the set that begins with the text.
fn digit_tail(set: &NumSet, part: &Partial, text: &str) -> Option<String> {
    let digits = text.trim_start_matches('-');
    if part.exponent.is_some() || (!text.contains('.') && digits.starts_with('0')) {
        return None;
    }
    let some = |range: Piece| {
        let found = set.intersect(&NumSet { pieces: vec![range] })?;
        let texts = found.pieces.iter().filter_map(|piece| Some(piece.some_plain()?.plain()));
        texts.filter_map(|whole| whole.strip_prefix(text).map(str::to_string)).min_by_key(String::len)
    };
    if digits.is_empty() {
        return some(half_line(part)).filter(|_| text == "-").or_else(|| some(Piece::all()));
    }
    let near = |shift: i64| some(interval(part, shift, false));
    let places = text.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i64);
    match text.contains('.') {
        true => near(-places),
        false => (0..MOST_DIGITS).find_map(near),
    }
}

/// Under every spelling: the exponent nearest to 0 that leads into the set, after more digits if needed.
fn any_tail(set: &NumSet, part: &Partial, text: &str) -> Option<String> {
    if part.exponent.is_some() || text.trim_start_matches('-').is_empty() {
        return None;
    }
    // a point must not end the digits
    let more: &[&str] = if text.ends_with('.') { &AFTER_POINT } else { &[""] };
    let exponents = more.iter().filter_map(|digit| {
        let exponent = nearest_exponent(set, &Partial::of(&format!("{text}{digit}")).mantissa())?;
        Some((exponent.abs(), format!("{digit}e{exponent}")))
    });
    if let Some((_, tail)) = exponents.min_by_key(|e| e.0) {
        return Some(tail);
    }
    let digits = text.trim_start_matches('-');
    let Some((whole, fraction)) = digits.split_once('.') else {
        // more digits go after a point
        let pointed = format!("{text}.");
        return any_tail(set, &Partial::of(&pointed), &pointed).map(|tail| format!(".{tail}"));
    };
    let begun = format!("{whole}{fraction}");
    (0..MOST_DIGITS).find_map(|shift| {
        let tails = respelled(set, part, shift, &begun, fraction.len()).into_iter();
        let texts = tails.map(|(rest, e)| format!("{}e{e}", if rest.is_empty() { "0" } else { &rest }));
        texts.min_by_key(String::len)
    })
}

/// The exponent nearest to 0 with which the number is in the set.
fn nearest_exponent(set: &NumSet, mantissa: &Decimal) -> Option<i64> {
    let ways = set.pieces.iter().filter(|p| p.spelling != NumberForm::Plain);
    let all = ways.filter_map(|p| p.exponents(mantissa, MAX_EXP));
    all.map(|(low, high)| 0.clamp(low, high)).min_by_key(|e| e.abs())
}

/// Spells numbers of the set that begin with the digits `begun`, `places` of them after the point, scaled by
/// `shift`: the rest of the digits, and the exponent.
fn respelled(set: &NumSet, part: &Partial, shift: i64, begun: &str, places: usize) -> Vec<(String, i64)> {
    let range = NumSet { pieces: vec![interval(part, shift, false)] };
    let pieces = set.intersect(&range).map(|found| found.pieces).unwrap_or_default();
    let tail = |piece: &Piece| {
        let number = piece.some_plain()?.plain();
        let number = number.trim_start_matches('-');
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        let rest = digits.trim_start_matches('0').strip_prefix(begun.trim_start_matches('0'))?;
        Some((rest.to_string(), (places + rest.len()) as i64 - fraction.len() as i64))
    };
    pieces.iter().filter_map(tail).collect()
}

/// `7.` may end as `7.1e+16`: the canonical exponent nearest to 0 that leads into the set.
fn canonical_tail(set: &NumSet, part: &Partial, text: &str) -> Option<String> {
    let first = |mantissa: &Decimal, begun: &str| {
        let ways: Vec<_> = set.looked_at().filter_map(|piece| piece.exponents(mantissa, MAX_EXP)).collect();
        let leads = |e: i64| ways.iter().any(|(low, high)| (*low..=*high).contains(&e));
        let mut forms = FORMS.iter().filter(|(form, e)| form.starts_with(begun) && leads(*e));
        forms.next().map(|(form, _)| &form[begun.len()..])
    };
    if let Some(begun) = part.exponent {
        return first(&part.mantissa(), begun).map(str::to_string);
    }
    if !one_lead_digit(part) {
        return None;
    }
    let ends = |digits: &&&str| {
        let whole = format!("{text}{digits}");
        let last = whole.chars().next_back();
        last.is_some_and(|c| c.is_ascii_digit() && (c != '0' || !whole.contains('.')))
            && (digits.is_empty() || text.contains('.'))
    };
    let mut tails = DIGITS.iter().filter(ends).filter_map(|digits| {
        let form = first(&Partial::of(&format!("{text}{digits}")).mantissa(), "")?;
        Some(format!("{digits}e{form}"))
    });
    tails.next().or_else(|| long_tail(set, part, text))
}

/// `7.3` may need as many digits as its exponent says, for instance to reach a number that ends in `.5`.
fn long_tail(set: &NumSet, part: &Partial, text: &str) -> Option<String> {
    let (whole, fraction) = text.trim_start_matches('-').split_once('.')?;
    let begun = format!("{whole}{fraction}");
    (0..MOST_DIGITS).find_map(|shift| {
        let tails = respelled(set, part, shift, &begun, fraction.len()).into_iter();
        let mut texts = tails.filter_map(|(rest, exponent)| {
            let form = &FORMS.iter().find(|form| form.1 == exponent)?.0;
            let last = rest.chars().next_back().or(text.chars().next_back())?;
            matches!(last, '1'..='9').then(|| format!("{rest}e{form}"))
        });
        texts.next()
    })
}
