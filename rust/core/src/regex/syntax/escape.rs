//! What follows a backslash.
//!
//! Each escape is a construct with its readers ([`super::dialect`]).

use super::dialect::{differ, ECMA, PYTHON, RUST};
use super::node::Node;
use super::reader::{Escape, Reader};
use crate::regex::charset::CharSet;
use crate::regex::error::RegexError;

/// The characters that ECMA-262 escapes by a backslash.
const SYNTAX: &str = "^$\\.*+?()[]{}|/";

impl Reader {
    /// After the backslash at `column`.
    pub(super) fn escape(&mut self, column: usize, in_class: bool) -> Result<Escape, RegexError> {
        let Some(c) = self.text.next() else {
            return Err(RegexError::invalid(column, "the pattern ends in a backslash"));
        };
        if let Some(set) = self.named_set(column, c)? {
            crate::work::spend(set.0.len() as u64);
            return Ok(Escape::Set(set));
        }
        if !in_class {
            if let Some(node) = self.assertion(column, c)? {
                return Ok(Escape::Assertion(node));
            }
        }
        self.escaped_char(column, c, in_class).map(Escape::Char)
    }

    fn named_set(&mut self, column: usize, c: char) -> Result<Option<CharSet>, RegexError> {
        let meaning = self.meaning();
        let set = match c.to_ascii_lowercase() {
            'd' => meaning.digits(),
            's' => meaning.space(),
            'w' => meaning.word(),
            'p' if !self.dialect.is_python() => {
                let set = self.property(column, c == 'P')?;
                return Ok(Some(meaning.folded(set)));
            }
            _ => return Ok(None),
        };
        Ok(Some(if c.is_ascii_uppercase() { set.negate() } else { set }))
    }

    fn assertion(&mut self, column: usize, c: char) -> Result<Option<Node>, RegexError> {
        let (readers, meaning, node) = match c {
            'b' | 'B' => {
                let names = ["{start}", "{end}", "{start-half}", "{end-half}"];
                if names.iter().any(|name| self.text.looking_at(name)) && !self.dialect.is_python() {
                    let way_out = "write the boundary with lookarounds";
                    return Err(differ(self.dialect, column, "`\\b{`", way_out));
                }
                return Ok(Some(self.meaning().boundary(c == 'B', column)));
            }
            'A' => (PYTHON.and(RUST), "the start of the text", Node::start(column)),
            'Z' => (PYTHON, "the end of the text", Node::end(column)),
            'z' => (RUST, "the end of the text", Node::end(column)),
            '<' | '>' if !self.dialect.is_python() => {
                let way_out = format!("write `{c}` for the character");
                return Err(differ(self.dialect, column, &format!("`\\{c}`"), &way_out));
            }
            _ => return Ok(None),
        };
        self.allow(readers, column, &format!("`\\{c}`"), meaning)?;
        Ok(Some(node))
    }

    /// The one character that an escape stands for.
    fn escaped_char(&mut self, column: usize, c: char, in_class: bool) -> Result<u32, RegexError> {
        let spelled = format!("`\\{c}`");
        match c {
            'f' => Ok(0xC),
            'n' => Ok(0xA),
            'r' => Ok(0xD),
            't' => Ok(9),
            'v' => Ok(0xB),
            'b' if in_class => Ok(8),
            'a' => self.allow(PYTHON.and(RUST), column, &spelled, "the character U+0007").map(|()| 7),
            'x' | 'u' | 'U' => self.code_point(column, c),
            'c' => self.control(column),
            '0'..='9' => self.number(column, c, in_class),
            'k' if !in_class && !self.dialect.is_python() => Err(self.named_reference(column)),
            'N' if self.dialect.is_python() => {
                Err(RegexError::unsupported(column, "write `\\u....` for a character by its name"))
            }
            c if c.is_ascii_alphabetic() => {
                let message =
                    format!("`\\{c}` is no escape of {}; write `{c}` for the letter", self.dialect.reader());
                Err(RegexError::invalid(column, message))
            }
            other => {
                let readers = match other {
                    '-' if in_class => ECMA.and(PYTHON).and(RUST),
                    '<' | '>' => PYTHON,
                    _ if SYNTAX.contains(other) => ECMA.and(PYTHON).and(RUST),
                    _ if other.is_ascii() => PYTHON.and(RUST),
                    _ => PYTHON,
                };
                self.allow(readers, column, &spelled, &format!("the character `{other}`"))?;
                Ok(other as u32)
            }
        }
    }

    /// `\xHH`, `\uHHHH`, `\UHHHHHHHH`, and those with braces.
    fn code_point(&mut self, column: usize, c: char) -> Result<u32, RegexError> {
        let digits = match c {
            'x' => 2,
            'u' => 4,
            _ => 8,
        };
        let code = if !self.dialect.is_python() && self.text.looking_at("{") {
            let code = self.text.hex_in_braces();
            if code.is_some() && c != 'u' {
                self.allow(RUST, column, &format!("`\\{c}{{...}}`"), "the character with that number")?;
            }
            code
        } else {
            self.text.hex(digits)
        };
        let code = code.filter(|&code| code <= 0x10_FFFF).ok_or_else(|| {
            let message = format!("`\\{c}` needs {digits} hexadecimal digits of a character");
            RegexError::invalid(column, message)
        })?;
        if c == 'U' {
            self.allow(PYTHON.and(RUST), column, "`\\U`", "the character with that number")?;
        }
        if c == 'u' && !self.dialect.is_python() && (0xD800..0xDC00).contains(&code) {
            return Ok(self.low_surrogate(code).unwrap_or(code));
        }
        Ok(code)
    }

    /// The second half of a surrogate pair, if one follows.
    fn low_surrogate(&mut self, high: u32) -> Option<u32> {
        let after = self.text.column();
        let low = if self.text.eat("\\u") { self.text.hex(4) } else { None };
        if let Some(low) = low.filter(|low| (0xDC00..0xE000).contains(low)) {
            return Some(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
        }
        self.text.back_to(after);
        None
    }

    /// `\cX`
    fn control(&mut self, column: usize) -> Result<u32, RegexError> {
        let letter = self.text.peek().filter(|c| c.is_ascii_alphabetic() && !self.dialect.is_python());
        let letter = letter.ok_or_else(|| {
            let message = format!("`\\c` is no escape of {}, or lacks its letter", self.dialect.reader());
            RegexError::invalid(column, message)
        })?;
        self.text.next();
        Ok(letter as u32 % 32)
    }

    fn named_reference(&mut self, column: usize) -> RegexError {
        if !self.text.eat("<") || self.text.name('>').is_err() {
            return RegexError::invalid(column, "`\\k` needs the name of a group: `\\k<name>`");
        }
        backreference(column)
    }

    /// A backslash and a digit: NUL, Python's octal numbers, or a reference to a group.
    fn number(&mut self, column: usize, first: char, in_class: bool) -> Result<u32, RegexError> {
        if first == '0' && !self.text.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Ok(0);
        }
        let start = self.text.column() - 1;
        self.text.back_to(start);
        if first != '0' && !in_class && !self.dialect.is_python() {
            let group = self.text.decimal().unwrap_or(0);
            if group <= self.groups {
                return Err(backreference(column));
            }
            self.text.back_to(start);
        }
        let octal = (0..3).take_while(|&i| self.text.ahead(i).is_some_and(|c| c.is_digit(8))).count();
        if first == '0' || octal == 3 || (in_class && octal > 0) {
            let code = self.text.octal(3);
            if first != '0' && octal == 3 && self.text.column() - start < 3 {
                return Err(RegexError::invalid(column, "an octal escape is at most `\\377`"));
            }
            self.allow(PYTHON, column, &format!("`\\{first}...`"), "an octal number of a character")?;
            return Ok(code);
        }
        if self.dialect.is_python() && !in_class {
            return Err(backreference(column));
        }
        Err(RegexError::invalid(column, format!("`\\{first}` refers to no group")))
    }
}

fn backreference(column: usize) -> RegexError {
    RegexError::unsupported(column, "a backreference is not regular; write the alternatives out")
}
