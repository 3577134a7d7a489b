//! Patterns of Python's `re` module (`str` patterns, as of Python 3.11).
//!
//! Flags `a i m s u x`, global at the start or scoped to a group, become part of the sets and assertions.
//! `\d \w \s` are Python's: `str.isdecimal`, `str.isalnum` or `_`, `str.isspace`. `$` also holds before a
//! last newline. Backreferences, conditionals, atomic groups and possessive repeats are refused.

use std::collections::HashSet;

use super::assemble::{Assembler, Kind};
use super::cursor::{Cursor, Member};
use super::node::Node;
use crate::regex::charset::CharSet;
use crate::regex::error::RegexError;

/// Reads a pattern of Python's `re`.
pub fn parse(pattern: &str, ordered: bool) -> Result<Node, RegexError> {
    let reader = Reader {
        text: Cursor::new(pattern)?,
        tree: Assembler::new(ordered),
        flags: Flags::default(),
        outer: Vec::new(),
        names: HashSet::new(),
    };
    reader.read()
}

#[derive(Clone, Copy, Default)]
struct Flags {
    ascii: bool,
    ignore_case: bool,
    multi_line: bool,
    dot_all: bool,
    verbose: bool,
}

struct Reader {
    text: Cursor,
    tree: Assembler,
    flags: Flags,
    /// The flags outside of each open group.
    outer: Vec<Flags>,
    names: HashSet<String>,
}

enum Escape {
    Member(Member),
    Assertion(Node),
}

/// What may be repeated before a quantifier.
#[derive(PartialEq)]
enum Before {
    Nothing,
    Item,
    Repeat,
}

impl Reader {
    fn read(mut self) -> Result<Node, RegexError> {
        let mut before = Before::Nothing;
        while let Some(c) = self.text.peek() {
            let column = self.text.column();
            if self.flags.verbose && self.skip_verbose(c) {
                continue;
            }
            if let Some((low, high)) = self.text.quantifier(true)? {
                self.quantify(column, low, high, &before)?;
                before = Before::Repeat;
                continue;
            }
            self.text.next();
            match c {
                '^' | '$' => {
                    let node = if c == '^' { self.line_start(column) } else { self.line_end(column) };
                    self.tree.atom(node)?;
                    before = Before::Nothing;
                }
                '|' => {
                    self.tree.bar()?;
                    before = Before::Nothing;
                }
                '(' => {
                    // A comment or a global flag is no item: what stood before still may be repeated.
                    if self.open(column)? {
                        before = Before::Nothing;
                    }
                }
                ')' => {
                    self.tree.close(column)?;
                    self.flags = self.outer.pop().unwrap_or(self.flags);
                    before = Before::Item;
                }
                other => before = self.item(column, other)?,
            }
        }
        self.text.finish(self.tree)
    }

    /// A single character, a class or an escape.
    fn item(&mut self, column: usize, c: char) -> Result<Before, RegexError> {
        match c {
            '.' if self.flags.dot_all => self.tree.atom(Node::Set(CharSet::full()))?,
            '.' => self.tree.atom(Node::Set(CharSet::of("\n").negate()))?,
            '[' => {
                let set = self.class()?;
                self.tree.atom(Node::Set(set))?;
            }
            '\\' => match self.escape(column, false)? {
                Escape::Member(Member::Char(c)) => self.literal(c)?,
                Escape::Member(Member::Set(set)) => self.tree.atom(Node::Set(set))?,
                Escape::Assertion(node) => {
                    self.tree.atom(node)?;
                    return Ok(Before::Nothing);
                }
            },
            other => self.literal(other as u32)?,
        }
        Ok(Before::Item)
    }

    fn literal(&mut self, c: u32) -> Result<(), RegexError> {
        if self.flags.ignore_case {
            let set = self.folded(CharSet::single(c));
            if set != CharSet::single(c) {
                return self.tree.atom(Node::Set(set));
            }
        }
        self.tree.char(c)
    }

    fn quantify(
        &mut self,
        column: usize,
        low: u32,
        high: Option<u32>,
        before: &Before,
    ) -> Result<(), RegexError> {
        match before {
            Before::Nothing => {
                return Err(RegexError::invalid(column, "there is nothing to repeat before this quantifier"));
            }
            Before::Repeat => return Err(RegexError::invalid(column, "two quantifiers follow one another")),
            Before::Item => {}
        }
        let lazy = self.text.eat("?");
        if !lazy && self.text.eat("+") {
            return Err(RegexError::unsupported(
                column,
                "a possessive quantifier depends on the order of matching; write the plain one",
            ));
        }
        self.tree.repeat(low, high, lazy)
    }

    fn skip_verbose(&mut self, c: char) -> bool {
        if c == '#' {
            while self.text.next().is_some_and(|c| c != '\n') {}
            return true;
        }
        let blank = " \t\n\r\u{B}\u{C}".contains(c);
        if blank {
            self.text.next();
        }
        blank
    }

    fn line_start(&self, column: usize) -> Node {
        if self.flags.multi_line {
            return Node::look(true, true, Node::Set(CharSet::of("\n").negate()), column);
        }
        Node::start(column)
    }

    fn line_end(&self, column: usize) -> Node {
        let newline = || Node::Set(CharSet::of("\n"));
        if self.flags.multi_line {
            return Node::look(false, true, Node::Set(CharSet::of("\n").negate()), column);
        }
        let last_newline = Node::look(false, false, Node::Concat(vec![newline(), Node::end(column)]), column);
        Node::Alt(vec![Node::end(column), last_newline])
    }

    /// `\B`: no boundary, and not the empty string (where Python before 3.14 finds neither `\b` nor `\B`).
    fn no_boundary(&self, column: usize) -> Node {
        let beside = |behind| Node::look(behind, false, Node::Set(CharSet::full()), column);
        let not_empty = Node::Alt(vec![beside(true), beside(false)]);
        Node::Concat(vec![Node::boundary(&self.word(), true, column), not_empty])
    }

    /// What follows `(`. Says whether a group was opened.
    fn open(&mut self, column: usize) -> Result<bool, RegexError> {
        const LOOKS: [(&str, bool, bool); 4] =
            [("?=", false, false), ("?!", false, true), ("?<=", true, false), ("?<!", true, true)];
        let outer = self.flags;
        if self.text.eat("?#") {
            while self.text.next().ok_or_else(|| RegexError::invalid(column, "the comment is not closed"))?
                != ')'
            {}
            return Ok(false);
        }
        if let Some(&(_, behind, negative)) = LOOKS.iter().find(|(opening, ..)| self.text.eat(opening)) {
            self.tree.open(Kind::Look { behind, negative }, column)?;
        } else if self.text.eat("?P<") {
            let name = self.text.name('>')?;
            if !self.names.insert(name.clone()) {
                return Err(RegexError::invalid(column, format!("two groups are named `{name}`")));
            }
            self.tree.open(Kind::Group, column)?;
        } else if self.text.looking_at("?P=") || self.text.looking_at("?(") {
            return Err(RegexError::unsupported(
                column,
                "backreferences and conditionals are not regular; write the alternatives out",
            ));
        } else if self.text.looking_at("?>") {
            return Err(RegexError::unsupported(
                column,
                "an atomic group depends on the order of matching; write `(?:...)`",
            ));
        } else if self.text.eat("?:") || self.text.peek() != Some('?') {
            self.tree.open(Kind::Group, column)?;
        } else {
            self.text.next();
            if !self.flag_group(column)? {
                return Ok(false);
            }
        }
        self.outer.push(outer);
        Ok(true)
    }

    /// `(?flags)` at the very start, or `(?flags-flags:`. Says whether a group was opened.
    fn flag_group(&mut self, column: usize) -> Result<bool, RegexError> {
        let (mut on, mut any, mut kind_of_text) = (true, false, false);
        let mut flags = self.flags;
        loop {
            match self.text.next() {
                Some('i') => flags.ignore_case = on,
                Some('m') => flags.multi_line = on,
                Some('s') => flags.dot_all = on,
                Some('x') => flags.verbose = on,
                Some(c @ ('a' | 'u')) if on && !kind_of_text => {
                    flags.ascii = c == 'a';
                    kind_of_text = true;
                }
                Some('-') if on => {
                    on = false;
                    any = false;
                    continue;
                }
                Some(':') if any => {
                    self.tree.open(Kind::Group, column)?;
                    self.flags = flags;
                    return Ok(true);
                }
                Some(')') if any && on => {
                    if column != 1 {
                        return Err(RegexError::invalid(
                            column,
                            "global flags stand at the start of the pattern",
                        ));
                    }
                    self.flags = flags;
                    return Ok(false);
                }
                _ => return Err(RegexError::invalid(column, "Python's `re` has no group that opens so")),
            }
            any = true;
        }
    }

    fn word(&self) -> CharSet {
        if self.flags.ascii {
            return CharSet::from_ranges(&[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]);
        }
        CharSet::from_syntax(r"[\p{L}\p{N}_]").unwrap_or_default()
    }

    fn class_escape(&self, letter: char) -> Option<CharSet> {
        let set = match letter.to_ascii_lowercase() {
            'd' if self.flags.ascii => CharSet::from_ranges(&[(0x30, 0x39)]),
            'd' => CharSet::from_syntax(r"\p{Nd}").unwrap_or_default(),
            's' if self.flags.ascii => CharSet::of(" \t\n\r\u{B}\u{C}"),
            // White_Space and the four separators U+001C..=U+001F, as `str.isspace`.
            's' => CharSet::from_syntax(r"[\p{White_Space}\x1C-\x1F]").unwrap_or_default(),
            'w' => self.word(),
            _ => return None,
        };
        Some(if letter.is_ascii_uppercase() { set.negate() } else { set })
    }

    /// What follows a backslash.
    fn escape(&mut self, column: usize, in_class: bool) -> Result<Escape, RegexError> {
        let Some(c) = self.text.next() else {
            return Err(RegexError::invalid(column, "the pattern ends in a backslash"));
        };
        if let Some(set) = self.class_escape(c) {
            return Ok(Escape::Member(Member::Set(set)));
        }
        if !in_class {
            let assertion = match c {
                'A' => Some(Node::start(column)),
                'Z' => Some(Node::end(column)),
                'b' => Some(Node::boundary(&self.word(), false, column)),
                'B' => Some(self.no_boundary(column)),
                _ => None,
            };
            if let Some(node) = assertion {
                return Ok(Escape::Assertion(node));
            }
        }
        let code = match c {
            'a' => 7,
            'b' if in_class => 8,
            'f' => 0xC,
            'n' => 0xA,
            'r' => 0xD,
            't' => 9,
            'v' => 0xB,
            'x' | 'u' | 'U' => {
                let digits = match c {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                self.text.hex(digits).filter(|code| *code <= 0x10_FFFF).ok_or_else(|| {
                    RegexError::invalid(
                        column,
                        format!("`\\{c}` needs {digits} hexadecimal digits of a character"),
                    )
                })?
            }
            'N' => {
                return Err(RegexError::unsupported(column, "write `\\u....` for a character by its name"))
            }
            '0'..='9' => self.number(column, c, in_class)?,
            c if c.is_ascii_alphabetic() => {
                return Err(RegexError::invalid(column, format!("`\\{c}` is no escape of Python's `re`")));
            }
            other => other as u32,
        };
        Ok(Escape::Member(Member::Char(code)))
    }

    /// An octal escape (`\0`, three octal digits; in a class any) or a backreference.
    fn number(&mut self, column: usize, first: char, in_class: bool) -> Result<u32, RegexError> {
        self.text.back_to(self.text.column() - 1);
        if first == '0' {
            return Ok(self.text.octal(3));
        }
        let start = self.text.column();
        let mut digits = 0;
        while digits < 3 && self.text.peek().is_some_and(|c| c.is_digit(8)) {
            self.text.next();
            digits += 1;
        }
        self.text.back_to(start);
        if digits == 3 || (in_class && digits > 0) {
            let code = self.text.octal(3);
            let whole = self.text.column() - start;
            if digits == 3 && whole < 3 {
                return Err(RegexError::invalid(column, "an octal escape is at most `\\377`"));
            }
            return Ok(code);
        }
        if in_class {
            return Err(RegexError::invalid(column, format!("`\\{first}` is no escape in a class")));
        }
        Err(RegexError::unsupported(column, "a backreference is not regular; write the alternatives out"))
    }

    /// After `[`.
    fn class(&mut self) -> Result<CharSet, RegexError> {
        let negative = self.text.eat("^");
        // The cursor leaves the reader while the class is read, so that its members can use the reader.
        let mut text = std::mem::replace(&mut self.text, Cursor::new("")?);
        let set = text.class_ranges(true, true, |cursor| {
            std::mem::swap(cursor, &mut self.text);
            let member = self.class_member();
            std::mem::swap(cursor, &mut self.text);
            member
        });
        self.text = text;
        let set = set?;
        let set = if self.flags.ignore_case { self.folded(set) } else { set };
        Ok(if negative { set.negate() } else { set })
    }

    fn class_member(&mut self) -> Result<Member, RegexError> {
        let column = self.text.column();
        match self.text.next() {
            Some('\\') => match self.escape(column, true)? {
                Escape::Member(member) => Ok(member),
                Escape::Assertion(_) => Err(RegexError::invalid(column, "an assertion stands in a class")),
            },
            Some(c) => Ok(Member::Char(c as u32)),
            None => Err(RegexError::invalid(column, "the class is not closed by `]`")),
        }
    }

    /// Closed under what `re.IGNORECASE` takes for equal: simple case folding, and the four letters i
    /// (`I i İ ı`), which Python holds together; with `re.ASCII` only the letters of ASCII.
    fn folded(&self, set: CharSet) -> CharSet {
        if self.flags.ascii {
            let letters = CharSet::from_ranges(&[(0x41, 0x5A), (0x61, 0x7A)]);
            let flipped: Vec<(u32, u32)> = set
                .intersect(&letters)
                .0
                .iter()
                .flat_map(|&(lo, hi)| lo..=hi)
                .map(|c| (c ^ 0x20, c ^ 0x20))
                .collect();
            return set.union(&CharSet::from_ranges(&flipped));
        }
        let i = CharSet::of("Ii\u{130}\u{131}");
        let folded = set.fold_case();
        if folded.intersect(&i).is_empty() {
            folded
        } else {
            folded.union(&i)
        }
    }
}
