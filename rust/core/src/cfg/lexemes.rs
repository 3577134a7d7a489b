//! The grammar as a reader of lexemes, for masks that are put together lexeme by lexeme.

use std::sync::Arc;

use super::scanned::Scanned;
use crate::automaton::byte_automaton::{Alive, CtxId, Pos, Scanner};
use crate::lexical::segments::WIDE;
use crate::lexical::spell::ByteSet;
use crate::lexical::term::Term;
use crate::lexical::{LexId, Step, TermId, Terms};

impl Scanner for Scanned {
    fn alive(&mut self, lex: LexId) -> Option<Alive> {
        let (_, tuple) = self.lexicon.term(lex)?;
        let Term::Tuple(terms) = self.lexicon.terms.get(tuple) else { return None };
        let places = (0u32..).zip(terms.iter().copied());
        let mut own: Vec<(u32, TermId)> = places.filter(|p| p.1 != Terms::EMPTY).collect();
        // no text stands beside what may begin, or alone: then it is what the first byte leaves
        if own.len() > 1 {
            own.retain(|p| p.0 != self.nothing_read());
        }
        Some(own.into())
    }

    fn readable(&mut self, ctx: CtxId) -> Alive {
        Scanned::readable(self, ctx)
    }

    fn outranks(&self, place: u32, other: u32) -> bool {
        self.rank(place) < self.rank(other)
    }

    fn after(&mut self, ctx: CtxId, place: u32) -> Option<CtxId> {
        Scanned::after(self, ctx, place)
    }

    fn top(&mut self, ctx: CtxId) -> CtxId {
        Scanned::top(self, ctx)
    }

    fn may_begin(&mut self, ctx: CtxId, byte: u8) -> bool {
        if let (None, Some(known)) = (self.guard(ctx), self.lexemes_by_first_byte_at(ctx)) {
            let begun = known.doubtful.iter().find(|begun| begun.0 == byte);
            return begun.is_none_or(|&(_, lex)| self.can_end(Pos { ctx, lex }));
        }
        let lex = self.begin(ctx);
        match self.lexicon.step(lex, byte) {
            Step::Stay(lex) => self.can_end(Pos { ctx, lex }),
            _ => false,
        }
    }

    fn shared_beginnings(&mut self) -> Arc<[(u32, u32)]> {
        if self.separation.shared_beginnings.is_none() {
            self.separation.shared_beginnings = Some(self.find_shared_beginnings().into());
        }
        self.separation.shared_beginnings.clone().unwrap_or_default()
    }

    fn is_code_point(&self, place: u32) -> bool {
        place as usize >= self.places
    }

    fn unsure(&mut self, alive: &Alive) -> ByteSet {
        if self.separable() {
            return ByteSet::default();
        }
        if alive.iter().any(|&(place, _)| self.is_code_point(place)) {
            let lex = self.tuple_state(alive);
            return self.lexicon.first_bytes(lex);
        }
        if let Some(known) = self.lexemes_by_first_byte(alive) {
            let bytes: Vec<u8> = known.doubtful.iter().map(|begun| begun.0).collect();
            return ByteSet::of(&bytes);
        }
        let lex = self.tuple_state(alive);
        let mut bytes = ByteSet::default();
        for way in self.doubtful_segments(lex).iter().filter(|way| way.first < WIDE) {
            (way.first..=way.last.min(WIDE - 1)).for_each(|b| bytes.insert(b as u8));
        }
        bytes
    }
}
