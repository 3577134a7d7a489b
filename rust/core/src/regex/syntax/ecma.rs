//! ECMA-262 patterns, as JSON Schema's `pattern` means them.
//!
//! A pattern is read with the `u` flag (ECMA-262 §22.2.1). One that is not valid so (`\_`, a lone `{`, ...: frequent in
//! schemas) is read by the web's older grammar (Annex B.1.2), though still over code points, never
//! UTF-16 code units: a document's characters are code points. Lone surrogates match nothing.

use std::collections::HashSet;

use super::assemble::{Assembler, Kind};
use super::cursor::{Cursor, Member};
use super::node::Node;
use crate::regex::charset::CharSet;
use crate::regex::error::RegexError;

/// Reads a pattern; the older grammar only where the `u` grammar refuses it.
pub fn parse(pattern: &str) -> Result<Node, RegexError> {
    use crate::regex::error::RegexErrorKind::Invalid;
    match Reader::new(pattern, true)?.read() {
        Err(strict) if strict.kind == Invalid => Reader::new(pattern, false)?.read(),
        other => other,
    }
}

struct Reader {
    text: Cursor,
    tree: Assembler,
    unicode: bool,
    /// Numbers of capturing groups in the whole pattern, and whether any is named.
    groups: u32,
    named: bool,
    names: HashSet<String>,
}

enum Escape {
    Member(Member),
    Boundary { negative: bool },
}

pub(super) fn line_ends() -> CharSet {
    CharSet::of("\n\r\u{2028}\u{2029}")
}

fn digits() -> CharSet {
    CharSet::from_ranges(&[(0x30, 0x39)])
}

fn word() -> CharSet {
    CharSet::from_ranges(&[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
}

/// WhiteSpace and LineTerminator (§12.2, §12.3): Unicode's Zs with the controls and U+FEFF.
fn space() -> CharSet {
    let zs = CharSet::from_syntax(r"\p{Zs}").unwrap_or_default();
    zs.union(&CharSet::of("\t\n\u{B}\u{C}\r\u{FEFF}\u{2028}\u{2029}"))
}

impl Reader {
    fn new(pattern: &str, unicode: bool) -> Result<Self, RegexError> {
        let (groups, named) = count_groups(pattern);
        let text = Cursor::new(pattern)?;
        Ok(Self { text, tree: Assembler::new(false), unicode, groups, named, names: HashSet::new() })
    }

    fn read(mut self) -> Result<Node, RegexError> {
        // Whether the last thing read may be repeated.
        let mut repeatable = false;
        while let Some(c) = self.text.peek() {
            let column = self.text.column();
            if let Some((low, high)) = self.text.quantifier(false)? {
                if !repeatable {
                    return Err(RegexError::invalid(
                        column,
                        "there is nothing to repeat before this quantifier",
                    ));
                }
                self.text.eat("?");
                self.tree.repeat(low, high, false)?;
                repeatable = false;
                continue;
            }
            self.text.next();
            repeatable = true;
            match c {
                '^' | '$' => {
                    self.tree.atom(if c == '^' { Node::start(column) } else { Node::end(column) })?;
                    repeatable = false;
                }
                '|' => {
                    self.tree.bar()?;
                    repeatable = false;
                }
                '(' => {
                    self.open(column)?;
                    repeatable = false;
                }
                ')' => {
                    repeatable = match self.tree.close(column)? {
                        Kind::Group => true,
                        Kind::Look { behind, .. } => !self.unicode && !behind,
                    }
                }
                '.' => self.tree.atom(Node::Set(line_ends().negate()))?,
                '[' => {
                    let set = self.class()?;
                    self.tree.atom(Node::Set(set))?;
                }
                '\\' => repeatable = self.escape_outside(column)?,
                '{' | '}' | ']' if self.unicode => {
                    return Err(RegexError::invalid(column, format!("a literal `{c}` is written `\\{c}`")));
                }
                other => self.tree.char(other as u32)?,
            }
        }
        self.text.finish(self.tree)
    }

    fn open(&mut self, column: usize) -> Result<(), RegexError> {
        const LOOKS: [(&str, bool, bool); 4] =
            [("?=", false, false), ("?!", false, true), ("?<=", true, false), ("?<!", true, true)];
        for (opening, behind, negative) in LOOKS {
            if self.text.eat(opening) {
                return self.tree.open(Kind::Look { behind, negative }, column);
            }
        }
        if self.text.eat("?<") {
            let name = self.text.name('>')?;
            if !self.names.insert(name.clone()) {
                return Err(RegexError::invalid(column, format!("two groups are named `{name}`")));
            }
        } else if !self.text.eat("?:") && self.text.peek() == Some('?') {
            return Err(RegexError::invalid(
                column,
                "ECMA-262 has no group that opens so; write flags and comments out, and names as `(?<name>...)`",
            ));
        }
        self.tree.open(Kind::Group, column)
    }

    /// An escape outside of a class; says whether it may be repeated.
    fn escape_outside(&mut self, column: usize) -> Result<bool, RegexError> {
        self.refuse_backreference(column)?;
        match self.escape(column, false)? {
            Escape::Member(Member::Char(c)) => self.tree.char(c)?,
            Escape::Member(Member::Set(set)) => self.tree.atom(Node::Set(set))?,
            Escape::Boundary { negative } => {
                self.tree.atom(Node::boundary(&word(), negative, column))?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn refuse_backreference(&mut self, column: usize) -> Result<(), RegexError> {
        let unsupported =
            || RegexError::unsupported(column, "a backreference is not regular; write the alternatives out");
        if self.text.looking_at("k") && (self.unicode || self.named) {
            self.text.next();
            if !self.text.eat("<") {
                return Err(RegexError::invalid(column, "`\\k` needs the name of a group: `\\k<name>`"));
            }
            self.text.name('>')?;
            return Err(unsupported());
        }
        if self.text.peek().is_some_and(|c| ('1'..='9').contains(&c)) {
            let digits = self.text.column();
            let number = self.text.decimal().unwrap_or(0);
            if number <= self.groups {
                return Err(unsupported());
            }
            if self.unicode {
                return Err(RegexError::invalid(column, format!("there is no group {number} to refer to")));
            }
            self.text.back_to(digits);
        }
        Ok(())
    }

    /// What follows a backslash, in or outside of a class.
    fn escape(&mut self, column: usize, in_class: bool) -> Result<Escape, RegexError> {
        let Some(c) = self.text.next() else {
            return Err(RegexError::invalid(column, "the pattern ends in a backslash"));
        };
        let char = |c: char| Member::Char(c as u32);
        Ok(Escape::Member(match c {
            'b' if in_class => char('\u{8}'),
            'b' | 'B' if !in_class => return Ok(Escape::Boundary { negative: c == 'B' }),
            'd' => Member::Set(digits()),
            'D' => Member::Set(digits().negate()),
            'w' => Member::Set(word()),
            'W' => Member::Set(word().negate()),
            's' => Member::Set(space()),
            'S' => Member::Set(space().negate()),
            'f' => char('\u{C}'),
            'n' => char('\n'),
            'r' => char('\r'),
            't' => char('\t'),
            'v' => char('\u{B}'),
            'p' | 'P' if self.unicode => Member::Set(self.property(column, c == 'P')?),
            'c' => return self.control(column, in_class).map(Escape::Member),
            'x' => match self.text.hex(2) {
                Some(code) => Member::Char(code),
                None => self.identity(column, c, in_class)?,
            },
            'u' => match self.code_point() {
                Some(code) => Member::Char(code),
                None => self.identity(column, c, in_class)?,
            },
            '0' if self.unicode => {
                if self.text.peek().is_some_and(|c| c.is_ascii_digit()) {
                    return Err(RegexError::invalid(column, "`\\0` is not followed by a digit"));
                }
                char('\0')
            }
            '0'..='7' if !self.unicode => {
                self.text.back_to(self.text.column() - 1);
                Member::Char(self.text.octal(3))
            }
            other => self.identity(column, other, in_class)?,
        }))
    }

    /// A character that stands for itself after a backslash.
    fn identity(&self, column: usize, c: char, in_class: bool) -> Result<Member, RegexError> {
        if self.unicode && !"^$\\.*+?()[]{}|/".contains(c) && !(in_class && c == '-') {
            return Err(RegexError::invalid(column, format!("`\\{c}` is no escape of ECMA-262")));
        }
        Ok(Member::Char(c as u32))
    }

    /// `\cX`; in the older grammar a backslash that is not one stands for itself.
    fn control(&mut self, column: usize, in_class: bool) -> Result<Member, RegexError> {
        match self.text.peek() {
            Some(c)
                if c.is_ascii_alphabetic()
                    || (in_class && !self.unicode && (c.is_ascii_digit() || c == '_')) =>
            {
                self.text.next();
                Ok(Member::Char(c as u32 % 32))
            }
            _ if self.unicode => Err(RegexError::invalid(column, "`\\c` needs a letter")),
            _ => {
                self.text.back_to(self.text.column() - 1);
                Ok(Member::Char('\\' as u32))
            }
        }
    }

    /// After `\u`: four digits, a surrogate pair of two escapes, or `{...}`.
    fn code_point(&mut self) -> Option<u32> {
        let start = self.text.column();
        if self.unicode && self.text.eat("{") {
            let mut code = 0u32;
            let mut digits = 0;
            while let Some(digit) = self.text.peek().and_then(|c| c.to_digit(16)) {
                code = code.saturating_mul(16).saturating_add(digit);
                digits += 1;
                self.text.next();
            }
            if digits > 0 && code <= 0x10_FFFF && self.text.eat("}") {
                return Some(code);
            }
            self.text.back_to(start);
            return None;
        }
        let code = self.text.hex(4)?;
        if (0xD800..0xDC00).contains(&code) {
            let after = self.text.column();
            let low = if self.text.eat("\\u") { self.text.hex(4) } else { None };
            match low {
                Some(low) if (0xDC00..0xE000).contains(&low) => {
                    return Some(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00));
                }
                _ => self.text.back_to(after),
            }
        }
        Some(code)
    }

    /// `\p{Name}` or `\p{Name=Value}` (§22.2.1, tables of Unicode property names).
    fn property(&mut self, column: usize, negative: bool) -> Result<CharSet, RegexError> {
        let unknown =
            |name: &str| RegexError::invalid(column, format!("`\\p{{{name}}}` is no property of ECMA-262"));
        let mut name = String::new();
        if !self.text.eat("{") {
            return Err(unknown(""));
        }
        loop {
            match self.text.next() {
                Some('}') => break,
                Some(c) if c.is_ascii_alphanumeric() || c == '_' || c == '=' => name.push(c),
                _ => return Err(unknown(&name)),
            }
        }
        let lookup = |text: &str| CharSet::from_syntax(&format!(r"\p{{{text}}}"));
        let set = match name.split_once('=') {
            Some(("Script" | "sc", value)) => lookup(&format!("sc={value}")),
            Some(("Script_Extensions" | "scx", value)) => lookup(&format!("scx={value}")),
            Some(("General_Category" | "gc", value)) => lookup(&format!("gc={value}")),
            Some(_) => None,
            None => lookup(&format!("gc={name}")).or_else(|| {
                // A script needs its `Script=`; what else has a bare name is a binary property.
                let script = lookup(&format!("sc={name}")).is_some();
                if script {
                    None
                } else {
                    lookup(&name)
                }
            }),
        };
        let set = set.ok_or_else(|| unknown(&name))?;
        Ok(if negative { set.negate() } else { set })
    }

    /// After `[`.
    fn class(&mut self) -> Result<CharSet, RegexError> {
        let negative = self.text.eat("^");
        // The cursor leaves the reader while the class is read, so that its members can use the reader.
        let mut text = std::mem::replace(&mut self.text, Cursor::new("")?);
        let strict = self.unicode;
        let set = text.class_ranges(strict, false, |cursor| {
            std::mem::swap(cursor, &mut self.text);
            let member = self.class_member();
            std::mem::swap(cursor, &mut self.text);
            member
        });
        self.text = text;
        let set = set?;
        Ok(if negative { set.negate() } else { set })
    }

    fn class_member(&mut self) -> Result<Member, RegexError> {
        let column = self.text.column();
        match self.text.next() {
            Some('\\') => match self.escape(column, true)? {
                Escape::Member(member) => Ok(member),
                Escape::Boundary { .. } => self.identity(column, 'B', true),
            },
            Some(c) => Ok(Member::Char(c as u32)),
            None => Err(RegexError::invalid(column, "the class is not closed by `]`")),
        }
    }
}

/// Capturing groups of the pattern, and whether one of them has a name.
fn count_groups(pattern: &str) -> (u32, bool) {
    let (mut groups, mut named, mut in_class) = (0, false, false);
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let skipped = rest.chars().next().map_or(0, char::len_utf8);
                rest = &rest[skipped..];
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let name = rest.starts_with("?<") && !rest.starts_with("?<=") && !rest.starts_with("?<!");
                named |= name;
                groups += u32::from(name || !rest.starts_with('?'));
            }
            _ => {}
        }
    }
    (groups, named)
}
