//! Characters in brackets.
//!
//! ECMA-262 and Python's `re` read the same members; they differ on a `]` that stands first. Rust's sets
//! inside of sets, `[:alpha:]`, `&&`, `--` and `~~` are characters to both. If another reader ends the class
//! elsewhere than ECMA-262, a `]` after it, which is nothing in ECMA-262, is refused; and so is a class with
//! an operation on sets in a pattern that only Rust reads.

use super::reader::{Escape, Reader};
use crate::regex::charset::CharSet;
use crate::regex::error::RegexError;

/// One member of a class.
enum Member {
    Char(u32),
    Set(CharSet),
}

impl Reader {
    /// After `[`.
    pub(super) fn class(&mut self, open: usize) -> Result<CharSet, RegexError> {
        let negative = self.text.eat("^");
        let mut first = self.dialect.is_python();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        loop {
            let column = self.text.column();
            self.look_for_operator();
            match self.text.peek() {
                None => return Err(RegexError::invalid(open, "the class `[` is not closed by `]`")),
                Some(']') if !first => {
                    // Python and Rust take the `]` of `[]` and `[^]` for a member
                    self.class_differs |= ranges.is_empty();
                    break;
                }
                Some('[') => self.class_differs = true,
                Some(_) => {}
            }
            first = false;
            let low = self.member()?;
            self.look_for_operator();
            let range = self.text.peek() == Some('-') && self.text.ahead(1).is_some_and(|c| c != ']');
            if !range {
                push(&mut ranges, low);
                continue;
            }
            self.text.next();
            match (low, self.member()?) {
                (Member::Char(low), Member::Char(high)) if low <= high => ranges.push((low, high)),
                (Member::Char(_), Member::Char(_)) => {
                    return Err(RegexError::invalid(column, "the range in the class runs backwards"));
                }
                _ => {
                    let message =
                        "a range in a class needs characters at both ends; write `\\-` for a hyphen";
                    return Err(RegexError::invalid(column, message));
                }
            }
        }
        self.text.next();
        let set = self.meaning().folded(CharSet::from_ranges(&ranges));
        Ok(if negative { set.negate() } else { set })
    }

    /// Remembers where Rust reads an operation on sets.
    fn look_for_operator(&mut self) {
        let doubled = |c: &char| matches!(c, '&' | '-' | '~') && self.text.ahead(1) == Some(*c);
        if self.text.peek().is_some_and(|c| c == '[' || doubled(&c)) {
            self.set_operator.get_or_insert(self.text.column());
        }
    }

    fn member(&mut self) -> Result<Member, RegexError> {
        let column = self.text.column();
        match self.text.next() {
            Some('\\') => match self.escape(column, true)? {
                Escape::Char(c) => Ok(Member::Char(c)),
                Escape::Set(set) => Ok(Member::Set(set)),
                Escape::Assertion(_) => Err(RegexError::invalid(column, "an assertion stands in a class")),
            },
            Some(c) => Ok(Member::Char(c as u32)),
            None => Err(RegexError::invalid(column, "the class is not closed by `]`")),
        }
    }
}

fn push(ranges: &mut Vec<(u32, u32)>, member: Member) {
    match member {
        Member::Char(c) => ranges.push((c, c)),
        Member::Set(set) => ranges.extend(set.0),
    }
}
