//! Texts of numbers that have the same completions become one state.
//!
//! What decides about the bounds of a set: the digits that a number and a bound have in common, whether the
//! first other digit is above or below, and the number of digits before and after the point, which is
//! limited. After an `e`, the digits before it matter only by the exponents that lead into the set.
//! Invariant: a text and its representative have the same completions.
//! Complexity: nine times the text's digits times the bounds.
//! Rejected: to drop the number of digits (then a number could go on without end).

use super::decimal::Decimal;
use super::possible::decade;
use super::set::NumSet;
use super::text::{Partial, EXP_DIGITS, MAX_EXP};

/// How many digits of a number one token of a vocabulary can have.
#[derive(Clone, Copy, Debug)]
pub struct NumberReach {
    /// Most digits in a row in one token.
    pub digits: u32,
    /// Most digits after an `e` and its sign in one token.
    pub exponent: u32,
}

impl Default for NumberReach {
    /// For an unknown vocabulary.
    fn default() -> Self {
        NumberReach { digits: u32::MAX, exponent: u32::MAX }
    }
}

impl NumberReach {
    pub fn of(tokens: &[Box<[u8]>]) -> Self {
        let mut most = NumberReach { digits: 0, exponent: 0 };
        for token in tokens {
            let (mut run, mut exponent) = (0, None);
            for (i, byte) in token.iter().enumerate() {
                run = if byte.is_ascii_digit() { run + 1 } else { 0 };
                exponent = match (byte, exponent) {
                    (b'e' | b'E', _) => Some(0),
                    (b'+' | b'-', Some(0)) if matches!(token[i - 1], b'e' | b'E') => Some(0),
                    (b'0'..=b'9', Some(n)) => Some(n + 1),
                    _ => None,
                };
                most.digits = most.digits.max(run);
                most.exponent = most.exponent.max(exponent.unwrap_or(0));
            }
            // an escape spells one digit by six bytes
            if token.windows(2).any(|pair| pair == b"\\u") {
                most.digits = most.digits.max(token.len() as u32);
            }
        }
        most
    }

    /// What tokens can distinguish in the text of an unbounded number without an exponent: its syntactic
    /// position, and the digits that may follow; `None` if a token may contain an exponent that is too large.
    pub(super) fn phase(&self, text: &str, whole: u32, places: u32) -> Option<(u8, u32, u32)> {
        if self.exponent > 2 || text.contains('e') {
            return None;
        }
        let left = |most: u32, written: usize| {
            most.saturating_sub(written as u32).min(self.digits.saturating_add(1))
        };
        let digits = text.trim_start_matches('-');
        Some(match digits.split_once('.') {
            Some((_, fraction)) => (4 + !fraction.is_empty() as u8, 0, left(places, fraction.len())),
            None if digits.is_empty() => (text.len() as u8, left(whole, 0), left(places, 0)),
            None if digits == "0" => (2, 0, left(places, 0)),
            None => (3, left(whole, digits.len()), left(places, 0)),
        })
    }
}

/// The digits of the bounds of a set; `None` if units matter, too.
pub(super) fn marks(set: &NumSet) -> Option<Box<[Box<str>]>> {
    let mut marks: Vec<Box<str>> = Vec::new();
    for piece in &set.pieces {
        if piece.unit.is_some() || !piece.not_units.is_empty() {
            return None;
        }
        let ends = [&piece.lo, &piece.hi].into_iter().flatten();
        marks.extend(ends.filter(|b| !b.at.is_zero()).map(|b| b.at.digits().into()));
    }
    crate::lists::sort_unique(&mut marks);
    Some(marks.into())
}

/// The representative of all texts with the same completions; `None`: the text itself.
pub(super) fn alike(values: &NumSet, marks: Option<&[Box<str>]>, text: &str) -> Option<String> {
    let marks = marks?;
    if text.contains('e') {
        return Some(scaled(values, text));
    }
    let first = text.find(|c: char| ('1'..='9').contains(&c))?;
    let mut same: Vec<&str> = marks.iter().map(|m| &**m).collect();
    let mut out: Vec<u8> = text.as_bytes().to_vec();
    let mut decided = false;
    let mut place = 0;
    for byte in out[first..].iter_mut().filter(|b| **b != b'.') {
        if decided {
            *byte = b'0';
            continue;
        }
        let mark_digit = |mark: &str| mark.as_bytes().get(place).copied().unwrap_or(b'0');
        let digit = *byte;
        if same.iter().any(|m| mark_digit(m) == digit) {
            same.retain(|m| mark_digit(m) == digit);
        } else {
            let sides = |d: u8| same.iter().all(|m| mark_digit(m).cmp(&d) == mark_digit(m).cmp(&digit));
            let least = if place == 0 { b'1' } else { b'0' };
            *byte = (least..=digit).find(|&d| sides(d)).unwrap_or(digit);
            decided = true;
        }
        place += 1;
    }
    if decided {
        lead_alone(marks, &mut out[first..]);
    }
    String::from_utf8(out).ok()
}

/// Replaces digits that differ from every mark by one digit and zeros, if these compare alike with all marks.
fn lead_alone(marks: &[Box<str>], out: &mut [u8]) {
    let order = |digits: &[u8], mark: &str| {
        let places = mark.bytes().chain(std::iter::repeat(b'0'));
        digits.iter().filter(|b| **b != b'.').zip(places).map(|(d, m)| d.cmp(&m)).find(|order| order.is_ne())
    };
    for lead in b'1'..=b'9' {
        let zero = |b: &u8| if *b == b'.' { b'.' } else { b'0' };
        let mut plain: Vec<u8> = out.iter().map(zero).collect();
        plain[0] = lead;
        if marks.iter().all(|mark| order(&plain, mark) == order(out, mark)) {
            out.copy_from_slice(&plain);
            return;
        }
    }
}

/// The representative of a text with an `e`.
fn scaled(values: &NumSet, text: &str) -> String {
    let part = Partial::of(text);
    let written = part.exponent.unwrap_or_default();
    let (minus, digits) = (written.starts_with('-'), written.trim_start_matches(['+', '-']));
    // a plus sign no longer matters once there are digits
    let sign = if minus || digits.is_empty() { &written[..written.len() - digits.len()] } else { "" };
    let ways = exponents(values, &part);
    let mantissa = plainest(values, &part, &ways);
    if digits.is_empty() {
        return format!("{mantissa}e{sign}");
    }
    let free = |start: i64| {
        (0..=EXP_DIGITS - digits.len() as u32).all(|more| {
            let (low, high) = decade(start, more, minus);
            ways.iter().any(|way| way.0 <= low && high <= way.1)
        })
    };
    let own: i64 = digits.parse().unwrap_or(0);
    if !free(own) {
        return format!("{mantissa}e{sign}{digits}");
    }
    // every completion is in the set: the first such exponent represents all; zero, if it is in the set,
    // every number
    if values.contains(&Decimal::zero()) {
        return format!("0e{sign}{}", "0".repeat(digits.len()));
    }
    let first = (0..own).find(|&start| free(start)).unwrap_or(own);
    format!("{mantissa}e{sign}{first:0width$}", width = digits.len())
}

/// The exponents that lead into the set, as disjoint intervals that do not touch.
fn exponents(values: &NumSet, part: &Partial) -> Vec<(i64, i64)> {
    let mantissa = part.mantissa();
    let mut all: Vec<_> = values.looked_at().filter_map(|p| p.exponents(&mantissa, MAX_EXP)).collect();
    all.sort_unstable();
    let mut out: Vec<(i64, i64)> = Vec::new();
    for (low, high) in all {
        match out.last_mut() {
            Some(last) if low <= last.1 + 1 => last.1 = last.1.max(high),
            _ => out.push((low, high)),
        }
    }
    out
}

/// A number of one digit and zeros with the same sign, magnitude and exponents; else the number itself.
fn plainest(values: &NumSet, part: &Partial, ways: &[(i64, i64)]) -> String {
    let own = part.mantissa();
    let sign = if part.negative { "-" } else { "" };
    if own.is_zero() {
        return format!("{sign}0");
    }
    let size = own.magnitude();
    let zeros = "0".repeat(size.unsigned_abs() as usize);
    let texts = (1..=9).map(|digit| match size < 0 {
        true => format!("{sign}0.{}{digit}", &zeros[1..]),
        false => format!("{sign}{digit}{zeros}"),
    });
    let mut alike = texts.filter(|text| exponents(values, &Partial::of(text)) == ways);
    alike.next().unwrap_or_else(|| {
        let (whole, fraction) = part.digits.split_at(part.whole());
        let point = if part.has_point { "." } else { "" };
        format!("{sign}{whole}{point}{fraction}")
    })
}
