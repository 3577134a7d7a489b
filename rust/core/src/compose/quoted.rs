//! A grammar inside a JSON string: its texts as JSON spells them.
//!
//! The schema marks the place by a character that no text holds (a surrogate): where the machine could read it as
//! the whole string, the string may be a text of the other grammar instead.  The threads of that grammar read
//! the decoded bytes; an escape is held back until it is complete.
//!
//! Invariant: an escape that has begun can be completed to a character that some thread reads.
//! Only the escapes that JSON demands, in their short form, are written (the canonical spelling).

use super::{BackId, Joint, Part, Run, Thread, END};
use crate::lexical::spell::OutcomeId;
use crate::lexical::Lexicon;
use crate::mask::structure::{Piece, LONGEST};
use crate::mask::{CtxId, Pos, Structure};

/// The mark of a machine's first hole.
pub(super) const FIRST_MARK: u32 = 0xD800;

/// A string that is being read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Quoted {
    machine: u32,
    /// Where the machine stands, and the outcome with which it closes the string.
    ctx: CtxId,
    outcome: OutcomeId,
    /// What was read of it, where the machine wants to know.
    text: u32,
    threads: Box<[Thread]>,
    /// An escape that has begun.
    pending: Box<[u8]>,
}

/// The characters that JSON escapes, as it spells them.
fn escapes() -> impl Iterator<Item = (u8, Vec<u8>)> {
    (0u8..0x20).chain([b'"', b'\\']).map(|c| (c, escape(c)))
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

impl Joint {
    /// Threads for the grammars that a string may be a text of. The machine's own thread goes on beside them (it
    /// knows one short text of each), so this never replaces it.
    pub(super) fn open_quotes(&mut self, back: BackId, machine: u32, pos: Pos, out: &mut Vec<Thread>) {
        if !self.with_json(machine, |m| m.in_string_value(pos)) {
            return;
        }
        let Some((spelling, term)) = self.lexicon.term(pos.lex) else { return };
        for (i, part) in (0u32..).zip(self.holes[machine as usize].clone()) {
            let rest = self.lexicon.terms.derive(term, FIRST_MARK + i);
            let lex = self.lexicon.at(spelling, rest);
            let outcome = self.lexicon.outcome(lex);
            if lex == Lexicon::DEAD || outcome == Lexicon::NONE {
                continue;
            }
            let threads = self.threads_of(part);
            let quote = Quoted {
                machine,
                ctx: pos.ctx,
                outcome,
                text: 0,
                threads: threads.into(),
                pending: Box::new([]),
            };
            self.push_quote(back, quote, out);
        }
    }

    fn push_quote(&mut self, back: BackId, quote: Quoted, out: &mut Vec<Thread>) {
        let run = Run::Quoted(self.quotes.insert_full(quote).0 as u32);
        out.push(Thread { back, run });
    }

    /// The threads before the first byte of a part that stands by itself.
    pub(super) fn threads_of(&mut self, part: u32) -> Vec<Thread> {
        let mut out = Vec::new();
        self.begin_part(part, END, &mut out);
        if self.may_be_empty(part) {
            out.push(Thread { back: END, run: Run::Done });
        }
        out.sort_unstable();
        out
    }

    pub(super) fn may_be_empty(&mut self, part: u32) -> bool {
        match self.parts[part as usize] {
            Part::Host(host) => {
                let frame = self.first_frame(host);
                self.frame_ends(host, frame)
            }
            Part::Language(term, _) => self.lexicon.terms.nullable(term),
            _ => false,
        }
    }

    /// One byte of the string.
    pub(super) fn step_quoted(&mut self, back: BackId, quote: u32, byte: u8, out: &mut Vec<Thread>) {
        let mut quote = self.quotes[quote as usize].clone();
        let (machine, ctx, outcome) = (quote.machine, quote.ctx, quote.outcome);
        if quote.pending.is_empty() && byte == b'"' {
            if self.accepts(&quote.threads) {
                let text = self.texts[quote.text as usize].clone();
                if let Some(next) = self.with_json(machine, |m| m.close(ctx, outcome, &text)) {
                    self.push_json(back, machine, next, 0, true, out);
                }
            }
            return;
        }
        if self.machines[machine as usize].records(ctx) {
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
            let ways = self.pending_ways(&quote);
            match &ways[..] {
                [] => return,
                [(_, spelled, threads)] if spelled.len() == quote.pending.len() => {
                    quote.threads = threads.clone().into();
                    quote.pending = Box::new([]);
                }
                _ => {}
            }
        }
        if !quote.threads.is_empty() {
            self.push_quote(back, quote, out);
        }
    }

    /// The threads inside a string, where no escape has begun.
    pub(super) fn unquoted_threads(&self, quote: u32) -> Option<Vec<Thread>> {
        let quote = &self.quotes[quote as usize];
        quote.pending.is_empty().then(|| quote.threads.to_vec())
    }

    /// The characters that an escape may become: each with its spelling and the threads after it.
    fn pending_ways(&mut self, quote: &Quoted) -> Vec<(u8, Vec<u8>, Vec<Thread>)> {
        let mut ways = Vec::new();
        for (c, spelled) in escapes().filter(|e| e.1.starts_with(&quote.pending)) {
            let threads = self.advance(&quote.threads, c);
            if !threads.is_empty() {
                ways.push((c, spelled, threads));
            }
        }
        ways
    }

    /// The rest of the string, its closing quote included, and where the machine stands then.
    pub(super) fn finish_quote(&mut self, quote: u32) -> Option<(Vec<u8>, u32, Pos)> {
        let quote = self.quotes[quote as usize].clone();
        let mut out = Vec::new();
        let mut threads = quote.threads.to_vec();
        if !quote.pending.is_empty() {
            let (_, spelled, after) = self.pending_ways(&quote).into_iter().next()?;
            out.extend_from_slice(&spelled[quote.pending.len()..]);
            threads = after;
        }
        for piece in self.shortest_way(&threads, LONGEST)? {
            let Piece::Bytes(text) = piece else { return None };
            out.extend(text.iter().flat_map(|&c| escape(c)));
        }
        let mut text = self.texts[quote.text as usize].to_vec();
        if self.machines[quote.machine as usize].records(quote.ctx) {
            text.extend_from_slice(&out);
        }
        out.push(b'"');
        let pos = self.with_json(quote.machine, |m| m.close(quote.ctx, quote.outcome, &text))?;
        Some((out, quote.machine, pos))
    }
}
