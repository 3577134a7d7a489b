//! A pattern character by character, with columns.

use super::{MAX_COUNT, MAX_LENGTH};
use crate::regex::error::RegexError;

pub(super) struct Cursor {
    chars: Vec<char>,
    at: usize,
}

impl Cursor {
    pub fn new(pattern: &str) -> Result<Self, RegexError> {
        if pattern.len() > MAX_LENGTH {
            return Err(RegexError::limit(
                1,
                format!("the pattern has {} bytes, the limit is {MAX_LENGTH}; split it", pattern.len()),
            ));
        }
        Ok(Self { chars: pattern.chars().collect(), at: 0 })
    }

    /// The column of the next character, from 1.
    pub fn column(&self) -> usize {
        self.at + 1
    }

    pub fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// The character `places` behind the next one.
    pub fn ahead(&self, places: usize) -> Option<char> {
        self.chars.get(self.at + places).copied()
    }

    /// The character that was read last.
    pub fn before(&self) -> Option<char> {
        self.chars.get(self.at.checked_sub(1)?).copied()
    }

    pub fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    /// Steps over `text` if it comes next.
    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.looking_at(text);
        if found {
            self.at += text.chars().count();
        }
        found
    }

    pub fn looking_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c))
    }

    pub fn back_to(&mut self, column: usize) {
        self.at = column - 1;
    }

    /// Exactly `digits` hexadecimal digits.
    pub fn hex(&mut self, digits: usize) -> Option<u32> {
        let slice = self.chars.get(self.at..self.at + digits)?;
        let value = slice.iter().try_fold(0, |value, c| Some(value * 16 + c.to_digit(16)?))?;
        self.at += digits;
        Some(value)
    }

    /// `{`, hexadecimal digits, `}`.
    pub fn hex_in_braces(&mut self) -> Option<u32> {
        let mut value: Option<u32> = None;
        self.eat("{");
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) {
            value = Some(value.unwrap_or(0).saturating_mul(16).saturating_add(digit));
            self.at += 1;
        }
        value.filter(|_| self.eat("}"))
    }

    /// A run of decimal digits, saturating; `None` if there is none.
    pub fn decimal(&mut self) -> Option<u32> {
        let mut value: Option<u32> = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            value = Some(value.unwrap_or(0).saturating_mul(10).saturating_add(digit));
            self.at += 1;
        }
        value
    }

    /// Up to `most` octal digits whose value stays at most 0o377.
    pub fn octal(&mut self, most: usize) -> u32 {
        let mut value = 0;
        for _ in 0..most {
            match self.peek().and_then(|c| c.to_digit(8)) {
                Some(digit) if value * 8 + digit <= 0o377 => value = value * 8 + digit,
                _ => break,
            }
            self.at += 1;
        }
        value
    }

    /// The name of a group up to `close`, which is stepped over.
    pub fn name(&mut self, close: char) -> Result<String, RegexError> {
        let column = self.column();
        let mut name = String::new();
        loop {
            match self.next() {
                Some(c) if c == close => break,
                Some(c) => name.push(c),
                None => {
                    return Err(RegexError::invalid(
                        column,
                        format!("the group name has no closing `{close}`"),
                    ))
                }
            }
        }
        let mut chars = name.chars();
        let starts = chars.next().is_some_and(|c| c == '_' || c == '$' || c.is_alphabetic());
        if starts && chars.all(|c| c == '_' || c == '$' || c.is_alphanumeric()) {
            Ok(name)
        } else {
            Err(RegexError::invalid(column, format!("`{name}` is not a name for a group")))
        }
    }

    /// `{m}`, `{m,}`, `{m,n}` and, where `open_low`, `{,n}`; `None` (and no step) if it is no quantifier.
    fn counts(&mut self, open_low: bool) -> Option<(u32, Option<u32>)> {
        let column = self.column();
        let counts = self.counts_after_brace(open_low);
        if counts.is_none() {
            self.back_to(column);
        }
        counts
    }

    fn counts_after_brace(&mut self, open_low: bool) -> Option<(u32, Option<u32>)> {
        if !self.eat("{") || self.peek() == Some('}') {
            return None;
        }
        let low = self.decimal();
        if low.is_none() && !open_low {
            return None;
        }
        let high = if self.eat(",") { self.decimal() } else { Some(low?) };
        self.eat("}").then_some((low.unwrap_or(0), high))
    }

    /// A quantifier here, without its suffix; `None` if there is none (also for a literal `{`).
    pub fn quantifier(&mut self, open_low: bool) -> Result<Option<(u32, Option<u32>)>, RegexError> {
        let column = self.column();
        let counts = match self.peek() {
            Some('*') => Some((0, None)),
            Some('+') => Some((1, None)),
            Some('?') => Some((0, Some(1))),
            _ => None,
        };
        if counts.is_some() {
            self.next();
            return Ok(counts);
        }
        let Some((low, high)) = self.counts(open_low) else {
            return Ok(None);
        };
        if high.is_some_and(|high| high < low) {
            return Err(RegexError::invalid(column, "the counts of the repetition run backwards"));
        }
        if low.max(high.unwrap_or(0)) > MAX_COUNT {
            return Err(RegexError::limit(column, format!("a repetition counts at most to {MAX_COUNT}")));
        }
        Ok(Some((low, high)))
    }

    /// What stands in braces here.
    pub fn braced(&self) -> String {
        let end = self.chars[self.at..].iter().position(|&c| c == '}').map_or(1, |end| end + 1);
        self.chars[self.at..self.at + end].iter().collect()
    }

    /// Whether the braces here hold what is a count for one reader alone: `{,3}` for Python's, `{ 3 }` for Rust's.
    pub fn counts_otherwise(&self) -> bool {
        let text = self.braced();
        let Some(inner) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
            return false;
        };
        let of_a_count = |c: char| c.is_ascii_digit() || c == ',' || c.is_whitespace();
        let some = inner.contains(|c: char| c.is_ascii_digit() || c == ',');
        some && inner.chars().all(of_a_count) && inner.matches(',').count() <= 1
    }
}
