//! Escapes of JSON strings: `\n` and its like, `\u` with four digits, pairs of surrogates.
//!
//! An escape is one more spelling of a code point, so it leads where the character itself would (RFC 8259,
//! section 7). The spellings of strings differ only in which escapes they allow.

use super::rows::{join, slice, TransitionRow};
use super::spell::{Lex, LexId, Lexicon, Spelling};
use super::term::TermId;

/// The `bits` of a block of hexadecimal digits: of either case, of lower case only.
const HEX: u8 = 4;
const LOWER_HEX: u8 = 5;

/// Whether some writer of JSON writes the character as `\u` and four digits: control characters, what is not ASCII
/// (`json.dumps`, which counts DEL), and what Go and Rails escape for the sake of HTML.
pub(crate) fn is_written_escaped(cp: u32) -> bool {
    !(0x20..0x7F).contains(&cp) || [b'<', b'>', b'&'].contains(&(cp as u8))
}

impl Spelling {
    /// Whether a character may be written as `\u` and digits.
    pub(crate) fn has_digits_of(self, cp: u32) -> bool {
        match self {
            Spelling::Raw => false,
            Spelling::Json => cp < 0x20 && ![8, 9, 10, 12, 13].contains(&cp),
            Spelling::JsonAny => true,
            Spelling::JsonNatural => is_written_escaped(cp),
        }
    }

    /// Whether the digits of an escape may be capitals.
    pub(crate) fn has_capitals(self) -> bool {
        self == Spelling::JsonAny
    }

    /// Whether a slash may stand behind a backslash: PHP writes it so.
    pub(crate) fn has_slash(self) -> bool {
        matches!(self, Spelling::JsonAny | Spelling::JsonNatural)
    }
}

impl Lexicon {
    pub(super) fn open_escape(&mut self, spelling: Spelling, term: TermId) -> LexId {
        if spelling == Spelling::Raw {
            return Self::DEAD;
        }
        let live = b"\"\\/bfnrtu".iter().any(|&b| self.escape(spelling, term, b) != Self::DEAD);
        if live {
            self.intern(Lex::Escape { spelling, term })
        } else {
            Self::DEAD
        }
    }

    /// The bytes that a state in the middle of an escape may read, ascending: a superset; `None` at others.
    pub fn escape_bytes(&self, lex: LexId) -> Option<&'static [u8]> {
        match self.states[lex.0 as usize] {
            Lex::Escape { .. } => Some(b"\"/\\bfnrtu"),
            Lex::Block { bits: HEX | LOWER_HEX, .. } => Some(b"0123456789ABCDEFabcdef"),
            Lex::LowBackslash { .. } => Some(b"\\"),
            Lex::LowU { .. } => Some(b"u"),
            _ => None,
        }
    }

    pub(super) fn escape(&mut self, spelling: Spelling, term: TermId, byte: u8) -> LexId {
        let cp = match byte {
            b'"' | b'\\' => byte,
            b'/' if spelling.has_slash() => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode_escape(spelling, term),
            _ => return Self::DEAD,
        };
        let to = self.terms.derive(term, cp as u32);
        self.at_live(spelling, to)
    }

    /// After `\u`: four hexadecimal digits.
    fn unicode_escape(&mut self, spelling: Spelling, term: TermId) -> LexId {
        let bits = if spelling.has_capitals() { HEX } else { LOWER_HEX };
        let at = self.at_live(spelling, term);
        let row = self.row(at);
        let written = |cp: u32| spelling.has_digits_of(cp);
        let mut runs: Vec<(u32, LexId)> = slice(&row, 0, 0xD800, written).to_vec();
        let astral = slice(&row, 0x10000, 0x100000, written);
        let mut at = 0;
        for &(end, to) in astral.iter() {
            while at <= end {
                // high surrogates whose characters all share a target, or one whose characters do not
                let whole = (end + 1) >> 10;
                let (last, low): (u32, TransitionRow) = match at & 0x3FF == 0 && whole > at >> 10 {
                    true => (whole - 1, [(0x3FF, to)].into()),
                    false => (at >> 10, slice(&astral, at & !0x3FF, 0x400, |_| true)),
                };
                runs.push((0xD800 + last, self.low_surrogate(bits, &low)));
                at = (last + 1) << 10;
            }
        }
        runs.push((0xDFFF, Self::DEAD));
        runs.extend(slice(&row, 0xE000, 0x2000, written).iter().map(|r| (0xE000 + r.0, r.1)));
        self.block(bits, 4, join(runs))
    }

    fn low_surrogate(&mut self, bits: u8, low: &TransitionRow) -> LexId {
        if low.iter().all(|r| r.1 == Self::DEAD) {
            return Self::DEAD;
        }
        let mut runs = vec![(0xDBFF, Self::DEAD)];
        runs.extend(low.iter().map(|&(end, to)| (0xDC00 + end, to)));
        runs.push((0xFFFF, Self::DEAD));
        let runs = join(runs);
        self.intern(Lex::LowBackslash { bits, runs })
    }

    /// What may come next inside a partly read character, for messages.
    pub(super) fn begun_in_words(&self, lex: LexId) -> &'static str {
        match self.states[lex.0 as usize] {
            Lex::Escape { spelling: Spelling::JsonAny, .. } => {
                "an escape: one of \" \\ / b f n r t, or u and four digits"
            }
            Lex::Escape { spelling: Spelling::JsonNatural, .. } => {
                "an escape: one of \" \\ / b f n r t, or u and four digits of what is not plain ASCII"
            }
            Lex::Escape { .. } => "an escape that JSON demands, in its short form",
            Lex::Block { bits: HEX, .. } => "a hexadecimal digit",
            Lex::Block { bits: LOWER_HEX, .. } => "a hexadecimal digit in lower case",
            Lex::LowBackslash { .. } | Lex::LowU { .. } => {
                "the escape of the second half: \\uDC00 to \\uDFFF"
            }
            _ => "the rest of a character",
        }
    }
}
