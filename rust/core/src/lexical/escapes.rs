//! Escapes of JSON strings: `\n` and its like, `\u` with four digits, pairs of surrogates.
//!
//! An escape is one more spelling of a code point, so it leads where the character itself would (RFC 8259, section 7).

use super::rows::{join, slice, Row};
use super::spell::{Lex, LexId, Lexicon, Spelling};
use super::term::TermId;

impl Lexicon {
    pub(super) fn open_escape(&mut self, spelling: Spelling, term: TermId) -> LexId {
        let any = match spelling {
            Spelling::Raw => return Self::DEAD,
            Spelling::Json => false,
            Spelling::JsonAny => true,
        };
        let esc = Lex::Escape { any, term };
        let live = b"\"\\/bfnrtu".iter().any(|&b| self.escape(any, term, b) != Self::DEAD);
        if live {
            self.intern(esc)
        } else {
            Self::DEAD
        }
    }

    /// The bytes that a state in the middle of an escape may read, ascending: a superset; `None` at others.
    pub fn escape_bytes(&self, lex: LexId) -> Option<&'static [u8]> {
        match self.states[lex.0 as usize] {
            Lex::Escape { .. } => Some(b"\"/\\bfnrtu"),
            Lex::Block { bits: 4 | 5, .. } => Some(b"0123456789ABCDEFabcdef"),
            Lex::LowBackslash { .. } => Some(b"\\"),
            Lex::LowU { .. } => Some(b"u"),
            _ => None,
        }
    }

    pub(super) fn escape(&mut self, any: bool, term: TermId, byte: u8) -> LexId {
        let cp = match byte {
            b'"' | b'\\' => byte,
            b'/' if any => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode_escape(any, term),
            _ => return Self::DEAD,
        };
        let spelling = if any { Spelling::JsonAny } else { Spelling::Json };
        let to = self.terms.derive(term, cp as u32);
        self.at_live(spelling, to)
    }

    /// After `\u`: four hexadecimal digits.  Canonical: lower case, control characters without a short form.
    fn unicode_escape(&mut self, any: bool, term: TermId) -> LexId {
        let spelling = if any { Spelling::JsonAny } else { Spelling::Json };
        let at = self.at_live(spelling, term);
        let row = self.row(at);
        if !any {
            let needs = |cp: u32| cp < 0x20 && ![8, 9, 10, 12, 13].contains(&cp);
            let runs = slice(&row, 0, 0x10000, needs);
            return self.block(5, 4, runs);
        }
        let mut runs: Vec<(u32, LexId)> = slice(&row, 0, 0xD800, |_| true).to_vec();
        let astral = slice(&row, 0x10000, 0x100000, |_| true);
        let mut at = 0;
        for &(end, to) in astral.iter() {
            while at <= end {
                // high surrogates whose characters all lead to one place, or one whose don't
                let whole = (end + 1) >> 10;
                let (last, low): (u32, Row) = match at & 0x3FF == 0 && whole > at >> 10 {
                    true => (whole - 1, [(0x3FF, to)].into()),
                    false => (at >> 10, slice(&astral, at & !0x3FF, 0x400, |_| true)),
                };
                runs.push((0xD800 + last, self.low_surrogate(&low)));
                at = (last + 1) << 10;
            }
        }
        runs.push((0xDFFF, Self::DEAD));
        runs.extend(slice(&row, 0xE000, 0x2000, |_| true).iter().map(|r| (0xE000 + r.0, r.1)));
        self.block(4, 4, join(runs))
    }

    fn low_surrogate(&mut self, low: &Row) -> LexId {
        if low.iter().all(|r| r.1 == Self::DEAD) {
            return Self::DEAD;
        }
        let mut runs = vec![(0xDBFF, Self::DEAD)];
        runs.extend(low.iter().map(|&(end, to)| (0xDC00 + end, to)));
        runs.push((0xFFFF, Self::DEAD));
        let runs = join(runs);
        self.intern(Lex::LowBackslash { runs })
    }

    /// What is missing where a character was begun.
    pub(super) fn begun_in_words(&self, lex: LexId) -> &'static str {
        match self.states[lex.0 as usize] {
            Lex::Escape { any: true, .. } => "an escape: one of \" \\ / b f n r t, or u and four digits",
            Lex::Escape { any: false, .. } => "an escape that JSON demands, in its short form",
            Lex::Block { bits: 4 | 5, .. } => "a hexadecimal digit",
            Lex::LowBackslash { .. } | Lex::LowU { .. } => {
                "the escape of the second half: \\uDC00 to \\uDFFF"
            }
            _ => "the rest of a character",
        }
    }
}
