//! Who reads a pattern: the four dialects, and what each means by the names of sets, `.`, `^`, `$`, `\b` and case.
//!
//! A construct of a pattern has *readers*: those of ECMA-262 with the `u` flag, Python's `re` and Rust's `regex` that
//! give it a meaning.  A pattern of one dialect is read as its reader does, or refused.  [`Dialect::Auto`] is ECMA-262's;
//! what that refuses, but others read in one way, is read in their way, and noted; what nobody reads, or two read
//! differently, is refused where it stands.  Nothing that one of them takes for an operator is read as letters.
//! Each construct is decided for itself: what one escape is does not change how another is read.
//! Rejected: ECMA-262's older grammar (Annex B), which reads each unknown escape as a letter.
//! `docs/patterns.md` has the table.

use super::node::Node;
use crate::regex::charset::CharSet;
use crate::regex::error::RegexError;

/// How a pattern is written and what it means by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// ECMA-262 with the `u` flag, and what it refuses as the others read it.
    Auto,
    /// ECMA-262 with the `u` flag.
    Ecma,
    /// Python's `re`, patterns of `str`.
    Python,
    /// Rust's `regex`.
    Rust,
}

/// The dialects by their names, the default first.
pub const DIALECTS: [(&str, Dialect); 4] =
    [("auto", Dialect::Auto), ("ecma", Dialect::Ecma), ("python", Dialect::Python), ("rust", Dialect::Rust)];

impl Dialect {
    /// Its name.
    pub fn name(self) -> &'static str {
        DIALECTS.iter().find(|d| d.1 == self).map_or("auto", |d| d.0)
    }

    /// The dialect of a name.
    pub fn named(name: &str) -> Option<Self> {
        DIALECTS.iter().find(|d| d.0 == name).map(|d| d.1)
    }

    pub(super) fn is_python(self) -> bool {
        self == Dialect::Python
    }

    /// The name of its reader in messages.
    pub(super) fn reader(self) -> &'static str {
        match self {
            Dialect::Auto | Dialect::Ecma => "ECMA-262",
            Dialect::Python => "Python's `re`",
            Dialect::Rust => "Rust's `regex`",
        }
    }
}

/// The readers that give a construct its meaning.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Readers(u8);

pub(super) const ECMA: Readers = Readers(1);
pub(super) const PYTHON: Readers = Readers(2);
pub(super) const RUST: Readers = Readers(4);

impl Readers {
    pub const fn and(self, other: Readers) -> Readers {
        Readers(self.0 | other.0)
    }

    fn has(self, dialect: Dialect) -> bool {
        let of = match dialect {
            Dialect::Auto | Dialect::Ecma => ECMA,
            Dialect::Python => PYTHON,
            Dialect::Rust => RUST,
        };
        self.0 & of.0 != 0
    }

    fn names(self) -> &'static str {
        match (self.has(Dialect::Python), self.has(Dialect::Rust)) {
            (true, true) => "Python's `re` and Rust's `regex` do",
            (true, false) => "Python's `re` does",
            _ => "Rust's `regex` does",
        }
    }
}

/// What was read otherwise than the dialect itself says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where it stands in the pattern, in characters from 1.
    pub column: usize,
    /// What was read, and how.
    pub message: String,
}

/// Whether a construct, spelled so (in a message), has its one meaning here; `meaning` says it in words.
pub(super) fn allow(
    dialect: Dialect,
    readers: Readers,
    notes: &mut Vec<Note>,
    column: usize,
    spelled: &str,
    meaning: &str,
) -> Result<(), RegexError> {
    if readers.has(dialect) {
        return Ok(());
    }
    let reader = dialect.reader();
    if dialect != Dialect::Auto {
        let other = if readers.has(Dialect::Python) { "python" } else { "rust" };
        let other = if readers.has(Dialect::Ecma) { "auto" } else { other };
        let way_out = format!("the dialect {other:?} reads it as {meaning}");
        return Err(RegexError::invalid(column, format!("{spelled} is nothing in {reader}; {way_out}")));
    }
    let message = format!("{spelled} is nothing in {reader}; read as {} ({meaning})", readers.names());
    if notes.len() < MAX_NOTES && notes.iter().all(|note| note.message != message) {
        notes.push(Note { column, message });
    }
    Ok(())
}

/// Most notes on one pattern: more would say nothing new.
const MAX_NOTES: usize = 20;

/// The error for a construct that other readers read differently, and the dialect's own not at all.
pub(super) fn differ(dialect: Dialect, column: usize, spelled: &str, way_out: &str) -> RegexError {
    let message = match dialect {
        Dialect::Auto => {
            format!("{spelled} is nothing in ECMA-262, and other readers differ on it; {way_out}")
        }
        _ => format!("{spelled} is nothing in {}; {way_out}", dialect.reader()),
    };
    RegexError::invalid(column, message)
}

/// Steps of work for a range of characters whose case is folded.
const FOLDING: u64 = 100;

/// Flags of a place in the pattern.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    pub ascii: bool,
    pub ignore_case: bool,
    pub multi_line: bool,
    pub dot_all: bool,
    pub verbose: bool,
}

/// What a dialect means under some flags.
#[derive(Clone, Copy)]
pub(super) struct Semantics {
    pub dialect: Dialect,
    pub flags: Flags,
}

impl Semantics {
    pub fn digits(self) -> CharSet {
        if self.dialect.is_python() && !self.flags.ascii {
            return CharSet::from_syntax(r"\p{Nd}").unwrap_or_default();
        }
        CharSet::from_ranges(&[(0x30, 0x39)])
    }

    /// ECMA-262 without regard to case (§22.2.2.7.3) has two characters more, which fold to letters of ASCII.
    pub fn word(self) -> CharSet {
        let ascii = CharSet::from_ranges(&[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]);
        if self.dialect.is_python() {
            if self.flags.ascii {
                return ascii;
            }
            return CharSet::from_syntax(r"[\p{L}\p{N}_]").unwrap_or_default();
        }
        if self.flags.ignore_case {
            return ascii.union(&CharSet::of("\u{17F}\u{212A}"));
        }
        ascii
    }

    pub fn space(self) -> CharSet {
        if !self.dialect.is_python() {
            // WhiteSpace and LineTerminator (§12.2, §12.3): Unicode's Zs with the controls and U+FEFF
            let zs = CharSet::from_syntax(r"\p{Zs}").unwrap_or_default();
            return zs.union(&CharSet::of("\t\n\u{B}\u{C}\r\u{FEFF}\u{2028}\u{2029}"));
        }
        if self.flags.ascii {
            return CharSet::of(" \t\n\r\u{B}\u{C}");
        }
        // White_Space and the four separators U+001C..=U+001F, as `str.isspace`
        CharSet::from_syntax(r"[\p{White_Space}\x1C-\x1F]").unwrap_or_default()
    }

    pub fn line_ends(self) -> CharSet {
        CharSet::of(if self.dialect.is_python() { "\n" } else { "\n\r\u{2028}\u{2029}" })
    }

    pub fn dot(self) -> CharSet {
        if self.flags.dot_all {
            return CharSet::full();
        }
        self.line_ends().negate()
    }

    /// `^`
    pub fn line_start(self, column: usize) -> Node {
        if self.flags.multi_line {
            return Node::look(true, true, Node::Set(self.line_ends().negate()), column);
        }
        Node::start(column)
    }

    /// `$`; Python's also holds before a last newline.
    pub fn line_end(self, column: usize) -> Node {
        if self.flags.multi_line {
            return Node::look(false, true, Node::Set(self.line_ends().negate()), column);
        }
        if !self.dialect.is_python() {
            return Node::end(column);
        }
        let newline = Node::Set(CharSet::of("\n"));
        let last = Node::look(false, false, Node::Concat(vec![newline, Node::end(column)]), column);
        Node::Alt(vec![Node::end(column), last])
    }

    /// `\b` and `\B`; Python before 3.14 finds neither in the empty string.
    pub fn boundary(self, negative: bool, column: usize) -> Node {
        let boundary = Node::boundary(&self.word(), negative, column);
        if !negative || !self.dialect.is_python() {
            return boundary;
        }
        let beside = |behind| Node::look(behind, false, Node::Set(CharSet::full()), column);
        Node::Concat(vec![boundary, Node::Alt(vec![beside(true), beside(false)])])
    }

    /// The closure under equality without regard to case: simple case folding; in Python also the four
    /// letters i (`I i İ ı`), and with `re.ASCII` only the letters of ASCII.
    pub fn folded(self, set: CharSet) -> CharSet {
        if !self.flags.ignore_case {
            return set;
        }
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
        crate::work::spend(FOLDING * set.0.len() as u64);
        let folded = set.fold_case();
        let i = CharSet::of("Ii\u{130}\u{131}");
        if !self.dialect.is_python() || folded.intersect(&i).is_empty() {
            return folded;
        }
        folded.union(&i)
    }
}
