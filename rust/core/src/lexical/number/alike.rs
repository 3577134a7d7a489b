//! Texts of numbers with the same future become one state.
//!
//! What bounds make of a number depends on its first digits as far as they are those of a bound, on whether the first
//! other digit is above or below, and on the number of digits before and after the point, which are limited.
//! Invariant: a text and the one it is taken for have the same completions.
//! Complexity: digits of the text times bounds.
//! Rejected: forgetting how many digits there are (then a number could go on without end).

use super::set::NumSet;

/// What the tokens of a vocabulary can do to a number.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Most digits in a row in one token.
    pub digits: u32,
    /// Most digits after an `e` and its sign in one token.
    pub exponent: u32,
}

impl Default for Reach {
    /// Of an unknown vocabulary.
    fn default() -> Self {
        Reach { digits: u32::MAX, exponent: u32::MAX }
    }
}

impl Reach {
    pub fn of(tokens: &[Box<[u8]>]) -> Self {
        let mut most = Reach { digits: 0, exponent: 0 };
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

    /// What tokens can tell of the text of an unbounded number without an exponent: where it stands, and the digits that
    /// may follow; `None` where a token may hold an exponent that is too large.
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

/// The digits of the bounds of a set; `None` where units decide, too.
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

/// The text that stands for all with the same future; `None` where the text stands for itself.
pub(super) fn alike(marks: Option<&[Box<str>]>, text: &str) -> Option<String> {
    let marks = marks?;
    if text.contains('e') {
        return None;
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
    String::from_utf8(out).ok()
}
