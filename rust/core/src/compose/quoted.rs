//! A grammar inside a JSON string: its texts as JSON spells them.
//!
//! Where the schema's language of a string says that it may be a text of the other grammar (`schema::holes`), that
//! grammar reads it instead.  Its threads read the decoded bytes; an escape is kept pending until it is complete.
//!
//! Invariant: a partly read escape can be completed to a character that some thread reads.
//! Complexity: a partly read escape costs a search for one such character, by the bytes of UTF-8, not for
//! all.

use super::{CompositeAutomaton, Part, ReturnId, Thread, ThreadRun, END};
use crate::automaton::byte_automaton::Piece;
use crate::automaton::{ByteAutomaton, CtxId, Pos};
use crate::lexical::escapes::is_written_escaped;
use crate::lexical::spell::OutcomeId;
use crate::lexical::term::Term;
use crate::lexical::{Lexicon, TermId, LONGEST};
use crate::schema::holes::{self, HoleUse};
use crate::schema::options::Strings;
use crate::schema::Holes;
use crate::work;

/// A string that is being read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Quoted {
    machine: u32,
    /// The machine's context, and the outcome with which it closes the string.
    ctx: CtxId,
    outcome: OutcomeId,
    /// The text so far, if the machine records it.
    text: u32,
    pub(super) threads: Box<[Thread]>,
    /// The bytes of a partly read escape.
    pub(super) pending: Box<[u8]>,
}

/// The characters that JSON must escape.
fn escaped() -> impl Iterator<Item = u8> {
    (0u8..0x20).chain([b'"', b'\\'])
}

fn escape(c: u8) -> Vec<u8> {
    match c {
        b'"' | b'\\' => vec![b'\\', c],
        8 => b"\\b".to_vec(),
        9 => b"\\t".to_vec(),
        10 => b"\\n".to_vec(),
        12 => b"\\f".to_vec(),
        13 => b"\\r".to_vec(),
        0..=0x1F => format!("\\u{c:04x}").into_bytes(),
        _ => vec![c],
    }
}

/// The rest of an escape, and the threads after its character.
struct EscapePath {
    rest: Vec<u8>,
    threads: Vec<Thread>,
}

/// The characters that an escape may still become by hexadecimal digits.
fn meant(pending: &[u8]) -> Option<Vec<(u32, u32)>> {
    const ALL: [(u32, u32); 2] = [(0, 0xD7FF), (0xE000, 0x10FFFF)];
    let digits = match pending {
        b"\\" => return Some(ALL.to_vec()),
        [b'\\', b'u', digits @ ..] => digits,
        _ => return None,
    };
    let (first, second) = digits.split_at(digits.len().min(4));
    let (from, to) = units(first)?;
    // high surrogates stand for the characters beyond those of one UTF-16 unit
    let beyond = |high: u32| 0x10000 + ((high - 0xD800) << 10);
    let ranges = match (from, to) {
        (0xD800..=0xDBFF, _) if from == to => {
            let (from_low, to_low) = match second {
                [] | b"\\" => (0xDC00, 0xDFFF),
                [b'\\', b'u', low @ ..] => units(low)?,
                _ => return None,
            };
            let (from_low, to_low) = (from_low.max(0xDC00), to_low.min(0xDFFF));
            let place = |low: u32| beyond(from) + (low - 0xDC00);
            (from_low <= to_low).then(|| vec![(place(from_low), place(to_low))])?
        }
        _ if !second.is_empty() => return None,
        (0xD800..=0xDBFF, _) => vec![(beyond(from), beyond(to) + 0x3FF)],
        (0xDC00..=0xDFFF, _) => return None,
        (0, 0xFFFF) => ALL.to_vec(),
        (0xD000, 0xDFFF) => vec![(0xD000, 0xD7FF), (0x10000, 0x10FFFF)],
        _ => vec![(from, to)],
    };
    Some(ranges)
}

/// The characters of ranges that some writer escapes by digits.
fn written_escaped(ranges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    for &(from, to) in ranges {
        let ascii = (from..=to.min(0x7F)).filter(|&cp| is_written_escaped(cp));
        out.extend(ascii.map(|cp| (cp, cp)));
        out.extend((to > 0x7F).then_some((from.max(0x80), to)));
    }
    out
}

/// The numbers of four hexadecimal digits that begin with these.
fn units(digits: &[u8]) -> Option<(u32, u32)> {
    let text = std::str::from_utf8(digits).ok().filter(|t| t.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let left = 4u32.checked_sub(digits.len() as u32)?;
    let begun = if text.is_empty() { 0 } else { u32::from_str_radix(text, 16).ok()? };
    Some((begun << (4 * left), ((begun + 1) << (4 * left)) - 1))
}

impl CompositeAutomaton {
    /// Threads for the grammars that a string may be a text of. The machine's own thread goes on beside them (it
    /// knows one short text of each), so this never replaces it.
    pub(super) fn open_quotes(&mut self, return_id: ReturnId, machine: u32, pos: Pos, out: &mut Vec<Thread>) {
        if !self.with_json(machine, |m| m.in_string_value(pos)) {
            return;
        }
        let grammars = self.holes[machine as usize].clone();
        let Some((_, term)) = self.lexicon.term(pos.lex).filter(|_| !grammars.is_empty()) else { return };
        let holes = self.with_json(machine, |m| m.schema.holes);
        let said = self.hole_use(machine, term, holes);
        for (hole, part) in (0u32..).zip(grammars) {
            let holds = |says: &HoleUse| matches!(says, HoleUse::Texts(holes) if holes.contains(&hole));
            let accepting: Vec<u32> =
                (0u32..).zip(&said).filter(|(_, says)| holds(says)).map(|(i, _)| i).collect();
            if accepting.is_empty() {
                continue;
            }
            let single = !matches!(self.lexicon.terms.get(term), Term::Tuple(_));
            let outcome = if single { Lexicon::FIRST } else { self.lexicon.intern_outcome(&accepting) };
            let threads = self.threads_of(part);
            let quote = Quoted {
                machine,
                ctx: pos.ctx,
                outcome,
                text: 0,
                threads: threads.into(),
                pending: Box::new([]),
            };
            self.push_quote(return_id, quote, out);
        }
    }

    /// How the languages of a string that begins use each of the grammars.
    fn hole_use(&mut self, machine: u32, term: TermId, holes: Holes) -> Vec<HoleUse> {
        let languages = match self.lexicon.terms.get(term) {
            Term::Tuple(list) => list.to_vec(),
            _ => vec![term],
        };
        let mut said = Vec::with_capacity(languages.len());
        for language in languages {
            if !self.said.contains_key(&(machine, language)) {
                let says = holes::says(&mut self.lexicon.terms, holes, language);
                self.said.insert((machine, language), says);
            }
            said.push(self.said[&(machine, language)].clone());
        }
        if said.contains(&HoleUse::Mixed) {
            work::refuse(holes::refusal());
        }
        said
    }

    fn push_quote(&mut self, return_id: ReturnId, quote: Quoted, out: &mut Vec<Thread>) {
        let run = ThreadRun::Quoted(self.quotes.intern(quote));
        out.push(Thread { return_id, run });
    }

    /// The threads before the first byte of a part that has no host.
    pub(super) fn threads_of(&mut self, part: u32) -> Vec<Thread> {
        let mut out = Vec::new();
        self.begin_part(part, END, &mut out);
        if self.may_be_empty(part) {
            out.push(Thread { return_id: END, run: ThreadRun::Done });
        }
        out.sort_unstable();
        out
    }

    pub(super) fn may_be_empty(&mut self, part: u32) -> bool {
        match self.parts[part as usize] {
            Part::OuterGrammar(host) => {
                let frame = self.first_frame(host);
                self.frame_ends(host, frame)
            }
            Part::Language(term, _) => self.lexicon.terms.nullable(term),
            _ => false,
        }
    }

    /// One byte of the string.
    pub(super) fn step_quoted(&mut self, return_id: ReturnId, quote: u32, byte: u8, out: &mut Vec<Thread>) {
        let mut quote = self.quotes[quote as usize].clone();
        let (machine, ctx, outcome) = (quote.machine, quote.ctx, quote.outcome);
        if quote.pending.is_empty() && byte == b'"' {
            if self.accepts(&quote.threads) {
                let text = self.texts[quote.text as usize].clone();
                if let Some(next) = self.with_json(machine, |m| m.close(ctx, outcome, &text)) {
                    self.push_json(return_id, machine, next, 0, true, out);
                }
            }
            return;
        }
        if self.machines[machine as usize].made().is_some_and(|m| m.records(ctx)) {
            let text = [&self.texts[quote.text as usize], &[byte][..]].concat();
            quote.text = self.text(&text);
        }
        if quote.pending.is_empty() && byte != b'\\' {
            if byte >= 0x20 {
                quote.threads = self.advance(&quote.threads, byte).into();
            } else {
                return;
            }
        } else {
            quote.pending = [&quote.pending, &[byte][..]].concat().into();
            let Some(way) = self.escape_path(&quote) else { return };
            if way.rest.is_empty() {
                quote.threads = way.threads.into();
                quote.pending = Box::new([]);
            }
        }
        if !quote.threads.is_empty() {
            self.push_quote(return_id, quote, out);
        }
    }

    /// The threads inside a string; `None` in an escape.
    pub(super) fn unquoted_threads(&self, quote: u32) -> Option<Vec<Thread>> {
        let quote = &self.quotes[quote as usize];
        quote.pending.is_empty().then(|| quote.threads.to_vec())
    }

    /// A completion of a partly read escape.
    fn escape_path(&mut self, quote: &Quoted) -> Option<EscapePath> {
        let strings = self.machines[quote.machine as usize].made()?.schema.options.strings;
        let rest = |spelled: &[u8]| Some(spelled.strip_prefix(&quote.pending[..])?.to_vec());
        for c in escaped() {
            let Some(rest) = rest(&escape(c)) else { continue };
            let threads = self.advance(&quote.threads, c);
            if !threads.is_empty() {
                return Some(EscapePath { rest, threads });
            }
        }
        if strings == Strings::Canonical {
            return None;
        }
        if let Some(rest) = rest(b"\\/") {
            let threads = self.advance(&quote.threads, b'/');
            if !threads.is_empty() {
                return Some(EscapePath { rest, threads });
            }
        }
        let ranges = match strings {
            Strings::Natural if quote.pending.iter().any(u8::is_ascii_uppercase) => return None,
            Strings::Natural => written_escaped(&meant(&quote.pending)?),
            _ => meant(&quote.pending)?,
        };
        let (c, threads) = ranges.iter().find_map(|&range| self.some_character(&quote.threads, range))?;
        let mut units = [0; 2];
        let spelled: String = c.encode_utf16(&mut units).iter().map(|u| format!("\\u{u:04x}")).collect();
        // digits may have been written in the other case
        Some(EscapePath { rest: spelled.as_bytes().get(quote.pending.len()..)?.to_vec(), threads })
    }

    /// A character of the range that some thread reads, and the threads after it.
    fn some_character(&mut self, threads: &[Thread], range: (u32, u32)) -> Option<(char, Vec<Thread>)> {
        let leads = [(0x00u8, 0x80u8, 0), (0xC2, 0xE0, 1), (0xE0, 0xF0, 2), (0xF0, 0xF5, 3)];
        for (first, last, left) in leads {
            for lead in first..last {
                let bits = lead as u32 & (0x7F >> (left + (left > 0) as u32));
                if let Some(found) = self.character_after(threads, lead, (bits, left), range) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// The same after a byte; `bits` are the character's so far, and `left` bytes follow.
    fn character_after(
        &mut self,
        threads: &[Thread],
        byte: u8,
        (bits, left): (u32, u32),
        (from, to): (u32, u32),
    ) -> Option<(char, Vec<Thread>)> {
        let (least, most) = (bits << (6 * left), ((bits + 1) << (6 * left)) - 1);
        if most < from || to < least {
            return None;
        }
        let threads = self.advance(threads, byte);
        if threads.is_empty() {
            return None;
        }
        if left == 0 {
            return Some((char::from_u32(bits)?, threads));
        }
        (0x80..=0xBFu8).find_map(|next| {
            let bits = bits << 6 | (next as u32 & 0x3F);
            self.character_after(&threads, next, (bits, left - 1), (from, to))
        })
    }

    /// The rest of the string with its closing quote, and the machine and its position after it.
    pub(super) fn finish_quote(&mut self, quote: u32) -> Option<(Vec<u8>, u32, Pos)> {
        let quote = self.quotes[quote as usize].clone();
        let mut out = Vec::new();
        let mut threads = quote.threads.to_vec();
        if !quote.pending.is_empty() {
            let way = self.escape_path(&quote)?;
            out.extend(way.rest);
            threads = way.threads;
        }
        for piece in self.shortest_completion(&threads, LONGEST)? {
            let Piece::Bytes(text) = piece else { return None };
            out.extend(text.iter().flat_map(|&c| escape(c)));
        }
        let mut text = self.texts[quote.text as usize].to_vec();
        if self.machines[quote.machine as usize].made().is_some_and(|m| m.records(quote.ctx)) {
            text.extend_from_slice(&out);
        }
        out.push(b'"');
        let pos = self.with_json(quote.machine, |m| m.close(quote.ctx, quote.outcome, &text))?;
        Some((out, quote.machine, pos))
    }
}
