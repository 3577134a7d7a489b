//! The automaton over bytes of a grammar behind a contextual lexer: where a byte leads, and where a text may end.
//!
//! Invariant: every state can reach an accepted end.

use super::completion;
use super::lexeme_ends::stays;
use super::scanned::Scanned;
use crate::automaton::byte_automaton::{step, ByteAutomaton, CtxId, Piece, Pos, Scanner, Seen};
use crate::lexical::spell::{ByteSet, OutcomeId};
use crate::lexical::{LexId, Lexicon, Step, Terms};

impl ByteAutomaton for Scanned {
    fn lexicon(&mut self) -> &mut Lexicon {
        &mut self.lexicon
    }

    fn bytes(&mut self) -> usize {
        self.memory_bytes()
    }

    fn start(&mut self) -> Option<Pos> {
        self.lookahead.on = true;
        let ctx = self.start_context();
        let mut places = self.readable(ctx).to_vec();
        let ends = self.ends(self.context(ctx));
        if ends {
            places.push((self.nothing_read(), Terms::EPS));
        }
        let lex = self.tuple_state(&places.into());
        let mut pos = Pos { ctx, lex };
        if !self.separable() && lex != Lexicon::DEAD {
            let first: Vec<LexId> = (0..=255).filter_map(|b| stays(self.lexicon.step(lex, b))).collect();
            let escaping = first.iter().filter(|&&lex| self.can_end(Pos { ctx, lex })).count();
            if escaping == 0 && !ends && self.parts_at(ctx).next().is_none() {
                return None;
            }
            if escaping < first.len() {
                // the first byte leaves a lexeme of no text, as later ones leave the lexeme before them
                pos.lex = self.tuple_state(&[(self.nothing_read(), Terms::EPS)].into());
            }
        }
        self.start = (lex != Lexicon::DEAD).then_some(pos);
        self.start
    }

    fn leave(&mut self, ctx: CtxId, outcome: OutcomeId, _: &[u8], byte: u8) -> Option<Pos> {
        if let Some((outcome, begun)) = self.lexicon.behind(outcome) {
            // a guarded lexeme tells its own code points of several bytes from those behind it
            if self.context(ctx).inside.is_some() {
                return None;
            }
            let first = self.leave(ctx, outcome, &[], begun[0])?;
            let mut rest = begun[1..].iter().chain([&byte]);
            return rest.try_fold(first, |pos, &byte| step(self, pos, &mut Vec::new(), byte));
        }
        let ctx = self.after_outcome(ctx, outcome)?;
        if !self.next_bytes(ctx).has(byte) {
            return None;
        }
        let lex = self.begin(ctx);
        match self.lexicon.step(lex, byte) {
            Step::Stay(lex) => {
                let pos = Pos { ctx, lex };
                self.can_end(pos).then_some(pos)
            }
            // what a guarded lexeme and the next one begin with beyond one byte is read inside the guarded one
            _ if self.context(ctx).inside.is_some() && byte < 0x80 => {
                let ended = self.lexicon.outcome(lex);
                self.leave(ctx, ended, &[], byte)
            }
            _ => None,
        }
    }

    fn leave_bytes(&mut self, ctx: CtxId, outcome: OutcomeId) -> ByteSet {
        self.bytes_after_outcome(ctx, outcome)
    }

    fn accepting(&mut self, pos: Pos, _: &[u8]) -> bool {
        self.after_lexeme(pos).is_some_and(|ctx| {
            let context = self.context(ctx);
            self.ends(context)
        })
    }

    fn completion(&mut self, pos: Pos, _: &[u8], most: usize) -> Option<Vec<Piece>> {
        completion::complete(self, pos, most)
    }

    fn scanner(&mut self) -> Option<&mut dyn Scanner> {
        Some(self)
    }

    fn describe(&mut self, pos: Pos, _: Seen) -> (Vec<String>, Option<String>) {
        super::describe::describe(self, pos)
    }
}
