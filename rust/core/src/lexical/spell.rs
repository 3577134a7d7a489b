//! Lexical states over bytes: a term, and the progress in the spelling of the next code point.
//!
//! Languages are over code points, spellings over bytes. One small automaton decodes the spelling (UTF-8,
//! JSON escapes, surrogate pairs) and derives the term when a code point is complete, so a pattern has one
//! definition for values, keys and every spelling. In the middle of a code point, the state is not the bytes
//! read but the target of each completion: lead bytes of a free string share states.
//! Rejected: rewriting each regex into its escaped form, which triples patterns and can't intersect them.
//!
//! Invariant: every state but `DEAD` can reach an accepting one.

use rustc_hash::FxHashMap;

use super::rows::{slice, TransitionRow};
use super::segments::lead;
use super::term::{Term, TermId, Terms};

pub use super::byteset::ByteSet;
use crate::heap_size::{self, Interner};

/// The id of a lexical state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LexId(pub u32);

/// Which languages of a tuple accept: sorted positions, interned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutcomeId(pub u32);

/// How code points are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// UTF-8; ends before a byte that cannot follow.
    Raw,
    /// Inside a JSON string, ended by a quote; only escapes that JSON demands, in their short form.
    Json,
    /// Inside a JSON string, every escape that JSON knows.
    JsonAny,
    /// Inside a JSON string, the escapes that some writer of JSON writes ([`super::escapes::is_written_escaped`]).
    JsonNatural,
}

/// Where a byte leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Stay(LexId),
    /// The closing quote of a string: the lexeme is complete and the byte belongs to it.
    Close,
    Dead,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lex {
    Dead,
    At {
        spelling: Spelling,
        term: TermId,
    },
    /// `depth` more digits of `bits` bits each (5: hexadecimal in lower case); the number that they form selects the target.
    Block {
        bits: u8,
        depth: u8,
        runs: TransitionRow,
        /// If the lexeme could end before the code point: that outcome, in case the code point cannot be
        /// read.
        behind: OutcomeId,
    },
    /// After a backslash.
    Escape {
        spelling: Spelling,
        term: TermId,
    },
    /// After a high surrogate: a backslash, then `u`, then the low one; `bits` as in a block.
    LowBackslash {
        bits: u8,
        runs: TransitionRow,
    },
    LowU {
        bits: u8,
        runs: TransitionRow,
    },
}

/// Terms and the lexical states over them.
#[derive(Clone)]
pub struct Lexicon {
    pub terms: Terms,
    pub(super) states: Interner<Lex>,
    rows: Vec<Option<TransitionRow>>,
    steps: FxHashMap<(LexId, u8), LexId>,
    digits: Vec<Option<Box<[LexId; 64]>>>,
    pub(super) outcomes: Interner<Box<[u32]>>,
    /// Outcomes of tuples.
    pub(super) outcomes_of: FxHashMap<TermId, OutcomeId>,
    row_bytes: usize,
    digits_filled: usize,
    /// Numbers are derived by one character at a time: each costs arithmetic, and a walk along one text needs
    /// only one.
    pub one_by_one: bool,
}

heap_size::owned!(Lex, this => match this {
    Lex::Block { runs, .. } | Lex::LowBackslash { runs, .. } | Lex::LowU { runs, .. } => {
        heap_size::slice(runs)
    }
    _ => 0,
});

impl Default for Lexicon {
    fn default() -> Self {
        Lexicon::new(Terms::default())
    }
}

impl Lexicon {
    pub const DEAD: LexId = LexId(0);
    /// Nothing accepts.
    pub const NONE: OutcomeId = OutcomeId(0);
    /// The first (and only) language accepts.
    pub const FIRST: OutcomeId = OutcomeId(1);

    pub fn new(terms: Terms) -> Self {
        let mut this = Lexicon {
            terms,
            states: Interner::default(),
            rows: Vec::new(),
            steps: FxHashMap::default(),
            digits: Vec::new(),
            outcomes: Interner::default(),
            outcomes_of: FxHashMap::default(),
            row_bytes: 0,
            digits_filled: 0,
            one_by_one: false,
        };
        this.intern(Lex::Dead);
        this.outcomes.intern(Box::new([]));
        this.outcomes.intern(Box::new([0]));
        this
    }

    pub(super) fn intern(&mut self, lex: Lex) -> LexId {
        let (i, new) = self.states.insert_full(lex);
        if new {
            self.rows.push(None);
        }
        LexId(i as u32)
    }

    pub fn state_count(&self) -> usize {
        self.states.len()
    }

    /// Bytes that the states and their terms hold.
    pub fn bytes(&self) -> usize {
        let digits = self.digits.len() * 8 + self.digits_filled * 64 * std::mem::size_of::<LexId>();
        heap_size::bytes!(self: states, rows, steps, outcomes, outcomes_of)
            + self.row_bytes
            + digits
            + self.terms.bytes()
    }

    /// The initial state of a term; `DEAD` when it accepts nothing.
    pub fn at(&mut self, spelling: Spelling, term: TermId) -> LexId {
        let term = self.terms.prune(term);
        self.at_live(spelling, term)
    }

    pub(super) fn at_live(&mut self, spelling: Spelling, term: TermId) -> LexId {
        if term == Terms::EMPTY {
            return Self::DEAD;
        }
        self.intern(Lex::At { spelling, term })
    }

    /// Term and spelling of a state between code points.
    pub fn term(&self, lex: LexId) -> Option<(Spelling, TermId)> {
        match &self.states[lex.0 as usize] {
            Lex::At { spelling, term } => Some((*spelling, *term)),
            _ => None,
        }
    }

    /// Inside a JSON string only the quote ends the lexeme.
    #[inline]
    pub fn is_string(&self, lex: LexId) -> bool {
        matches!(self.states[lex.0 as usize], Lex::At { spelling, .. } if spelling != Spelling::Raw)
    }

    /// Whether the state is of one language, not of several side by side.
    pub fn is_single(&self, lex: LexId) -> bool {
        match self.states[lex.0 as usize] {
            Lex::At { term, .. } => !matches!(self.terms.get(term), Term::Tuple(_)),
            _ => true,
        }
    }

    /// How many languages are still walked side by side.
    pub fn width(&self, lex: LexId) -> usize {
        match self.term(lex).map(|(_, term)| self.terms.get(term)) {
            Some(Term::Tuple(xs)) => xs.iter().filter(|&&x| x != Terms::EMPTY).count(),
            _ => 1,
        }
    }

    /// Bytes that may come next inside the lexeme; a superset where code points of several bytes may.
    pub fn first_bytes(&mut self, lex: LexId) -> ByteSet {
        if !matches!(self.states[lex.0 as usize], Lex::At { spelling: Spelling::Raw, .. }) {
            return ByteSet::ALL;
        }
        let row = self.row(lex);
        let mut set = ByteSet::default();
        let mut from = 0;
        for &(end, to) in row.iter() {
            if to != Self::DEAD {
                (from..=end.min(0x7F)).for_each(|b| set.insert(b as u8));
                if end >= 0x80 {
                    set.add(&ByteSet::LEADS);
                    break;
                }
            }
            from = end.saturating_add(1);
        }
        set
    }

    /// Bytes that may come next inside the lexeme.
    pub fn starts(&mut self, lex: LexId) -> ByteSet {
        let mut set = self.first_bytes(lex);
        for byte in (0x80..=0xFFu8).chain(0..0x80) {
            if set.has(byte) && self.step(lex, byte) == Step::Dead {
                set = set.without(&ByteSet::of(&[byte]));
            }
        }
        set
    }

    /// One character for each target inside the lexeme, without escapes.
    pub fn representatives(&mut self, lex: LexId) -> Vec<(char, LexId)> {
        let row = self.row(lex);
        let mut out: Vec<(char, LexId)> = Vec::new();
        let mut from = 0u32;
        for &(end, to) in row.iter() {
            let known = out.iter().position(|o| o.1 == to);
            // a control character only where no other leads there: its escape has six
            if to != Self::DEAD && known.is_none_or(|i| out[i].0 < ' ') {
                // a letter where there is one: completions are read by people
                let letter = ('a' as u32).max(from);
                let cp = if letter <= end.min('z' as u32) { letter } else { from.max(0x20).min(end) };
                let plain = (cp..=end).chain(from..=end).take(0x900).find_map(plain_char);
                if let Some(c) = plain.or_else(|| char::from_u32(from)) {
                    match known {
                        Some(i) => out[i].0 = c,
                        None => out.push((c, to)),
                    }
                }
            }
            from = end.saturating_add(1);
        }
        out
    }

    /// The transition by one byte.
    #[inline]
    pub fn step(&mut self, lex: LexId, byte: u8) -> Step {
        if byte < 0x80 {
            if let Lex::At { spelling, .. } = self.states[lex.0 as usize] {
                if spelling != Spelling::Raw {
                    if byte == b'"' {
                        return match self.outcome(lex) {
                            Self::NONE => Step::Dead,
                            _ => Step::Close,
                        };
                    }
                    if byte == b'\\' {
                        return self.slow(lex, byte);
                    }
                    if byte < 0x20 {
                        return Step::Dead;
                    }
                }
                if self.rows[lex.0 as usize].is_none() {
                    if let Some(step) = self.lone_step(lex, byte) {
                        return step;
                    }
                    self.row(lex);
                }
                if let Some(row) = &self.rows[lex.0 as usize] {
                    return stay(row[row.partition_point(|r| r.0 < byte as u32)].1);
                }
                return Step::Dead;
            }
        }
        if let Some(digits) = self.digits.get(lex.0 as usize).and_then(|d| d.as_ref()) {
            return match byte {
                0x80..=0xBF => stay(digits[byte as usize & 0x3F]),
                _ => Step::Dead,
            };
        }
        self.slow(lex, byte)
    }

    /// Whether the state's row shows that no code point beyond ASCII leads on: numbers, white space and
    /// keywords then need no look-up, and no memo, for each lead byte.
    fn is_ascii(&self, lex: LexId) -> bool {
        let Some(row) = &self.rows[lex.0 as usize] else { return false };
        match **row {
            [.., (before, _), (_, Self::DEAD)] => before < 0x80,
            _ => false,
        }
    }

    /// The transition by one byte alone: in a string with a finite set of words, and with `one_by_one` in a
    /// number; `None` in other lexemes.
    fn lone_step(&mut self, lex: LexId, byte: u8) -> Option<Step> {
        let Lex::At { spelling, term } = self.states[lex.0 as usize] else { return None };
        if spelling == Spelling::Raw && !self.one_by_one {
            return None;
        }
        Some(stay(memo!(self.steps, (lex, byte), {
            let next = match spelling {
                Spelling::Raw => self.terms.number_step(term, byte)?,
                _ => self.terms.word_step(term, byte)?,
            };
            self.at_live(spelling, next)
        })))
    }

    /// The targets of all continuation bytes of a state inside a UTF-8 sequence.
    fn fill_digits(&mut self, lex: LexId) {
        let Lex::Block { bits: 6, depth, runs, behind } = self.states[lex.0 as usize].clone() else { return };
        let mut table = [Self::DEAD; 64];
        for (byte, slot) in (0x80u8..0xC0).zip(table.iter_mut()) {
            *slot = self.digit((6, depth), &runs, byte, behind);
        }
        if self.digits.len() <= lex.0 as usize {
            self.digits.resize(lex.0 as usize + 1, None);
        }
        self.digits_filled += 1;
        self.digits[lex.0 as usize] = Some(Box::new(table));
    }

    fn slow(&mut self, lex: LexId, byte: u8) -> Step {
        if (0x80..0xC0).contains(&byte) && matches!(self.states[lex.0 as usize], Lex::Block { bits: 6, .. }) {
            self.fill_digits(lex);
            return stay(self.digits[lex.0 as usize].as_ref().expect("just filled")[byte as usize & 0x3F]);
        }
        if byte >= 0x80 && self.is_ascii(lex) {
            return Step::Dead;
        }
        stay(memo!(self.steps, (lex, byte), {
            crate::work::spend(1);
            match self.states[lex.0 as usize].clone() {
                Lex::Dead => Self::DEAD,
                Lex::At { spelling, term } if byte == b'\\' => self.open_escape(spelling, term),
                Lex::At { .. } => self.lead(lex, byte),
                Lex::Block { bits, depth, runs, behind } => self.digit((bits, depth), &runs, byte, behind),
                Lex::Escape { spelling, term } => self.escape(spelling, term, byte),
                Lex::LowBackslash { bits, runs } if byte == b'\\' => self.intern(Lex::LowU { bits, runs }),
                Lex::LowU { bits, runs } if byte == b'u' => self.block(bits, 4, runs),
                Lex::LowBackslash { .. } | Lex::LowU { .. } => Self::DEAD,
            }
        }))
    }

    /// The transitions of a state by code points.
    pub(crate) fn row(&mut self, lex: LexId) -> TransitionRow {
        if let Some(row) = &self.rows[lex.0 as usize] {
            return row.clone();
        }
        let Lex::At { spelling, term } = self.states[lex.0 as usize] else {
            return [(u32::MAX, Self::DEAD)].into();
        };
        let runs = self.terms.delta(term);
        let row: TransitionRow = runs.iter().map(|r| (r.end, self.at_live(spelling, r.to))).collect();
        self.row_bytes += heap_size::slice(&row);
        self.rows[lex.0 as usize] = Some(row.clone());
        row
    }

    /// The first byte of a sequence of two to four; no surrogate.
    fn lead(&mut self, lex: LexId, byte: u8) -> LexId {
        let Some((depth, bits, least)) = lead(byte) else { return Self::DEAD };
        let size = 1u32 << (6 * depth);
        let base = bits * size;
        let row = self.row(lex);
        let part = slice(&row, base, size, |cp| cp >= least && !(0xD800..0xE000).contains(&cp));
        let behind = self.before_lead(lex, byte);
        self.block_behind((6, depth as u8), part, behind)
    }

    pub(super) fn block(&mut self, bits: u8, depth: u8, runs: TransitionRow) -> LexId {
        self.block_behind((bits, depth), runs, Self::NONE)
    }

    fn block_behind(&mut self, (bits, depth): (u8, u8), runs: TransitionRow, behind: OutcomeId) -> LexId {
        if runs.iter().all(|r| r.1 == Self::DEAD) {
            return Self::DEAD;
        }
        if depth == 0 {
            return runs[0].1;
        }
        // if all code points lead on, the outcome before is not needed
        let behind = if runs.iter().any(|r| r.1 == Self::DEAD) { behind } else { Self::NONE };
        self.intern(Lex::Block { bits, depth, runs, behind })
    }

    fn digit(&mut self, (bits, depth): (u8, u8), runs: &TransitionRow, byte: u8, behind: OutcomeId) -> LexId {
        let value = match (bits, byte) {
            (6, 0x80..=0xBF) => byte as u32 & 0x3F,
            (4, b'0'..=b'9') => (byte - b'0') as u32,
            (4, b'a'..=b'f') => (byte - b'a') as u32 + 10,
            (4, b'A'..=b'F') => (byte - b'A') as u32 + 10,
            (5, b'0'..=b'9') => (byte - b'0') as u32,
            (5, b'a'..=b'f') => (byte - b'a') as u32 + 10,
            _ => return Self::DEAD,
        };
        let width = if bits == 5 { 4 } else { bits };
        let size = 1u32 << (width as u32 * (depth as u32 - 1));
        let part = slice(runs, value * size, size, |_| true);
        let behind = self.behind_by(behind, byte);
        self.block_behind((bits, depth - 1), part, behind)
    }
}

/// A character that needs no escape in a JSON string.
fn plain_char(cp: u32) -> Option<char> {
    char::from_u32(cp).filter(|c| *c >= ' ' && *c != '"' && *c != '\\')
}

fn stay(to: LexId) -> Step {
    if to == Lexicon::DEAD {
        Step::Dead
    } else {
        Step::Stay(to)
    }
}
