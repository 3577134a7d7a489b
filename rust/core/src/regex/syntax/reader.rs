//! Groups, quantifiers and what stands between them, for ECMA-262 and Python's `re`.
//!
//! One pass over the characters.  Flags become part of the sets and assertions.  Backreferences, conditionals, atomic
//! groups and possessive repeats are refused: their languages are not regular, or depend on the order of matching.

use super::cursor::Cursor;
use super::dialect::{allow, differ, Dialect, Flags, Note, Readers, Semantics, ECMA, PYTHON, RUST};
use super::node::Node;
use super::tree::{Kind, Tree};
use crate::regex::charset::CharSet;
use crate::regex::error::RegexError;

pub(super) struct Reader {
    pub text: Cursor,
    tree: Tree,
    pub dialect: Dialect,
    flags: Flags,
    /// The flags outside of each open group; `None` where those inside stay in effect after it.
    outer: Vec<Option<Flags>>,
    /// Whether flags stay in effect after a group with a number or a lookaround, as `jsonschema-rs` reads
    /// them.
    flags_go_on: bool,
    /// Where flags up to the end of a group first stand.
    inner_flags: Option<usize>,
    notes: Vec<Note>,
    /// Capturing groups in the whole pattern.
    pub groups: u32,
    /// Whether a class ended elsewhere for another reader: it has a `[`, where Rust's opens another class, or
    /// is empty.
    pub class_differs: bool,
    /// Where a class first holds what Rust takes for an operation on sets, and the others for characters.
    pub set_operator: Option<usize>,
    /// Whether something was read that only Rust reads.
    rust_alone: bool,
}

/// What an escape stands for.
pub(super) enum Escape {
    Char(u32),
    Set(CharSet),
    Assertion(Node),
}

/// What stands before a quantifier.
#[derive(Clone, Copy, PartialEq)]
enum BeforeQuantifier {
    Nothing,
    Item,
    /// `^`, `\b` and the like.
    Assertion,
    Look,
    Repeat,
}

impl Reader {
    fn new(pattern: &str, dialect: Dialect, ordered: bool) -> Result<Self, RegexError> {
        Ok(Self {
            text: Cursor::new(pattern)?,
            tree: Tree::new(ordered),
            dialect,
            flags: Flags::default(),
            outer: Vec::new(),
            flags_go_on: false,
            inner_flags: None,
            notes: Vec::new(),
            groups: if dialect.is_python() { 0 } else { count_groups(pattern) },
            class_differs: false,
            set_operator: None,
            rust_alone: false,
        })
    }

    pub fn meaning(&self) -> Semantics {
        Semantics { dialect: self.dialect, flags: self.flags }
    }

    /// Whether the construct at `column` has its one meaning here; see [`allow`].
    pub fn allow(
        &mut self,
        readers: Readers,
        column: usize,
        spelled: &str,
        meaning: &str,
    ) -> Result<(), RegexError> {
        self.rust_alone |= readers == RUST;
        allow(self.dialect, readers, &mut self.notes, column, spelled, meaning)
    }

    /// The tree of `pattern`, and what was read otherwise than its dialect says.
    pub fn read(pattern: &str, dialect: Dialect, ordered: bool) -> Result<(Node, Vec<Note>), RegexError> {
        let mut reader = Self::new(pattern, dialect, ordered)?;
        let node = reader.pattern()?;
        if let Some(column) = reader.inner_flags.filter(|_| dialect == Dialect::Auto) {
            let mut other = Self { flags_go_on: true, ..Self::new(pattern, dialect, ordered)? };
            if other.pattern()? != node {
                let way_out = "put what they are for in a group of its own, `(?i:...)`";
                return Err(differ(dialect, column, "flags in a group with more behind it", way_out));
            }
        }
        if let Some(column) = reader.set_operator.filter(|_| dialect == Dialect::Auto && reader.rust_alone) {
            let message = "ECMA-262 reads characters here, and Rust's `regex`, which alone reads the rest of the pattern, an \
                           operation on sets; escape it, or name the dialect \"rust\"";
            return Err(RegexError::invalid(column, message));
        }
        Ok((node, reader.notes))
    }

    fn pattern(&mut self) -> Result<Node, RegexError> {
        let mut before = BeforeQuantifier::Nothing;
        while let Some(c) = self.text.peek() {
            let column = self.text.column();
            if self.flags.verbose && self.skip_verbose(c) {
                continue;
            }
            if let Some((low, high)) = self.quantifier(column)? {
                before = self.quantify(column, low, high, before)?;
                continue;
            }
            self.text.next();
            match c {
                '|' => {
                    self.tree.bar();
                    before = BeforeQuantifier::Nothing;
                }
                '(' => {
                    // A comment or a flag is no item: what stood before still may be repeated.
                    if self.open(column)? {
                        before = BeforeQuantifier::Nothing;
                    }
                }
                ')' => {
                    let kind = self.tree.close(column)?;
                    self.flags = self.outer.pop().flatten().unwrap_or(self.flags);
                    before =
                        if kind == Kind::Group { BeforeQuantifier::Item } else { BeforeQuantifier::Look };
                }
                other => before = self.item(column, other)?,
            }
        }
        self.tree.finish()
    }

    /// An assertion, a single character, a class or an escape.
    fn item(&mut self, column: usize, c: char) -> Result<BeforeQuantifier, RegexError> {
        let meaning = self.meaning();
        match c {
            '^' | '$' => {
                let node = if c == '^' { meaning.line_start(column) } else { meaning.line_end(column) };
                self.tree.atom(node);
                return Ok(BeforeQuantifier::Assertion);
            }
            '.' => self.tree.atom(Node::Set(meaning.dot())),
            '[' => {
                let set = self.class(column)?;
                self.tree.atom(Node::Set(set));
            }
            '\\' => match self.escape(column, false)? {
                Escape::Char(c) => self.literal(c),
                Escape::Set(set) => self.tree.atom(Node::Set(set)),
                Escape::Assertion(node) => {
                    self.tree.atom(node);
                    return Ok(BeforeQuantifier::Assertion);
                }
            },
            ']' if self.class_differs && !self.dialect.is_python() => {
                let way_out = "write `\\]` for the character, and `\\[` or `\\]` in the class before it";
                return Err(differ(self.dialect, column, "`]`", way_out));
            }
            '{' | '}' | ']' => {
                let readers = if c == '{' { PYTHON } else { PYTHON.and(RUST) };
                self.allow(readers, column, &format!("`{c}`"), &format!("the character `{c}`"))?;
                self.literal(c as u32);
            }
            other => self.literal(other as u32),
        }
        Ok(BeforeQuantifier::Item)
    }

    fn literal(&mut self, c: u32) {
        if self.flags.ignore_case {
            let set = self.meaning().folded(CharSet::single(c));
            if set != CharSet::single(c) {
                return self.tree.atom(Node::Set(set));
            }
        }
        self.tree.char(c);
    }

    /// The counts of a quantifier that stands here, without its suffix.
    fn quantifier(&mut self, column: usize) -> Result<Option<(u32, Option<u32>)>, RegexError> {
        let python = self.dialect.is_python();
        let found = self.text.quantifier(python)?;
        if found.is_none() && !python && self.text.looking_at("{") && self.text.counts_otherwise() {
            let way_out = "write `{0,n}` for a count and `\\{` for the character";
            return Err(differ(self.dialect, column, &format!("`{}`", self.text.braced()), way_out));
        }
        Ok(found)
    }

    fn quantify(
        &mut self,
        column: usize,
        low: u32,
        high: Option<u32>,
        before: BeforeQuantifier,
    ) -> Result<BeforeQuantifier, RegexError> {
        let again = "a repetition of what stands before";
        match before {
            BeforeQuantifier::Item => {}
            BeforeQuantifier::Nothing => {
                return Err(RegexError::invalid(column, "there is nothing to repeat before this quantifier"));
            }
            BeforeQuantifier::Assertion => self.allow(RUST, column, "a quantifier on an assertion", again)?,
            BeforeQuantifier::Look => self.allow(PYTHON, column, "a quantifier on a lookaround", again)?,
            BeforeQuantifier::Repeat if self.dialect == Dialect::Auto && self.text.before() == Some('}') => {
                // `jsonschema-rs` reads letters
                let way_out = "put what is repeated in a group, `(?:...)`";
                return Err(differ(self.dialect, column, "a count after a quantifier", way_out));
            }
            BeforeQuantifier::Repeat => self.allow(RUST, column, "a quantifier on a quantifier", again)?,
        }
        let lazy = self.text.eat("?");
        if !lazy && self.text.looking_at("+") && before != BeforeQuantifier::Repeat {
            return Err(self.possessive(column));
        }
        self.tree.repeat(low, high, lazy);
        Ok(BeforeQuantifier::Repeat)
    }

    /// Python's `x*+` does not backtrack; to Rust it is `(?:x*)+`, and ECMA-262 refuses it.
    fn possessive(&self, column: usize) -> RegexError {
        match self.dialect {
            Dialect::Python => {
                let message = "a possessive quantifier depends on the order of matching; write the plain one";
                RegexError::unsupported(column, message)
            }
            dialect => differ(dialect, column + 1, "`+`", "write one quantifier"),
        }
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

    /// What follows `(`. Says whether a group was opened.
    fn open(&mut self, column: usize) -> Result<bool, RegexError> {
        const LOOKS: [(&str, bool, bool); 4] =
            [("?=", false, false), ("?!", false, true), ("?<=", true, false), ("?<!", true, true)];
        let outer = self.flags;
        let mut own_flags = !self.flags_go_on;
        if self.text.eat("?#") {
            self.comment(column)?;
            return Ok(false);
        }
        if let Some(&(_, behind, negative)) = LOOKS.iter().find(|(opening, ..)| self.text.eat(opening)) {
            self.tree.open(Kind::Look { behind, negative }, column)?;
        } else if self.text.eat("?P<") {
            self.allow(PYTHON.and(RUST), column, "`(?P<`", "a group with a name")?;
            self.named_group(column)?;
        } else if self.text.eat("?<") {
            self.allow(ECMA.and(RUST), column, "`(?<`", "a group with a name")?;
            self.named_group(column)?;
        } else if self.text.looking_at("?P=") || self.text.looking_at("?(") {
            let message = "backreferences and conditionals are not regular; write the alternatives out";
            return Err(RegexError::unsupported(column, message));
        } else if self.text.looking_at("?>") {
            let message = "an atomic group depends on the order of matching; write `(?:...)`";
            return Err(RegexError::unsupported(column, message));
        } else if self.text.peek() != Some('?') {
            self.tree.open(Kind::Group, column)?;
        } else {
            own_flags = true;
            self.text.next();
            if self.text.eat(":") {
                self.tree.open(Kind::Group, column)?;
            } else if !self.flag_group(column)? {
                return Ok(false);
            }
        }
        self.outer.push(own_flags.then_some(outer));
        Ok(true)
    }

    fn comment(&mut self, column: usize) -> Result<(), RegexError> {
        loop {
            match self.text.next() {
                Some(')') => return self.allow(PYTHON, column, "`(?#...)`", "a comment"),
                Some(_) => {}
                None => return Err(RegexError::invalid(column, "the comment is not closed")),
            }
        }
    }

    fn named_group(&mut self, column: usize) -> Result<(), RegexError> {
        let at = self.text.column();
        let name = self.text.name('>')?;
        self.tree.name(at, name, !self.dialect.is_python())?;
        self.tree.open(Kind::Group, column)
    }

    /// `(?flags)` or `(?flags-flags:`. Says whether a group was opened.
    fn flag_group(&mut self, column: usize) -> Result<bool, RegexError> {
        let (mut on, mut any, mut kind_of_text) = (true, false, false);
        let mut flags = self.flags;
        let mut seen = String::new();
        let python = self.dialect.is_python();
        loop {
            let at = self.text.column();
            match self.text.next() {
                Some(c) if !python && seen.contains(c) => {
                    return Err(RegexError::invalid(at, format!("the flag `{c}` stands here twice")));
                }
                Some('i') => flags.ignore_case = on,
                Some('m') => flags.multi_line = on,
                Some('s') => flags.dot_all = on,
                Some('x') if python => flags.verbose = on,
                Some(c @ ('a' | 'u')) if python && on && !kind_of_text => {
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
                Some(')') if any => {
                    self.global_flags(column, &format!("`(?{seen})`"), on)?;
                    self.flags = flags;
                    return Ok(false);
                }
                Some(c @ ('a' | 'u' | 'x' | 'U' | 'R' | 'L')) if !python => {
                    let way_out = "choose pattern_dialect=\"python\" or \"rust\" for it";
                    return Err(differ(self.dialect, at, &format!("`(?{c}`"), way_out));
                }
                _ => {
                    let message = format!("{} has no group that opens so", self.dialect.reader());
                    return Err(RegexError::invalid(column, message));
                }
            }
            seen.extend(self.text.before());
            any = true;
        }
    }

    /// Flags up to the end of the group: at the start of the pattern for two readers, elsewhere for one.
    fn global_flags(&mut self, column: usize, spelled: &str, on: bool) -> Result<(), RegexError> {
        let readers = if self.tree.is_empty() && on { PYTHON.and(RUST) } else { RUST };
        if self.dialect.is_python() && readers == RUST {
            return Err(RegexError::invalid(column, "global flags stand at the start of the pattern"));
        }
        if !self.outer.is_empty() {
            self.inner_flags.get_or_insert(column);
        }
        self.allow(readers, column, spelled, "flags of what follows")
    }
}

/// Capturing groups of the pattern.
fn count_groups(pattern: &str) -> u32 {
    let (mut groups, mut in_class) = (0, false);
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                rest.next();
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let text = rest.as_str();
                let named = ["?<", "?P<"].iter().any(|opening| text.starts_with(opening));
                let look = text.starts_with("?<=") || text.starts_with("?<!");
                groups += u32::from(!text.starts_with('?') || (named && !look));
            }
            _ => {}
        }
    }
    groups
}
