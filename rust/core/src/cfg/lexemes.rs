//! The grammar as a reader of lexemes, for masks that are put together lexeme by lexeme.

use super::ends::ESCAPE_STATES;
use super::scanned::Scanned;
use crate::automaton::byte_automaton::{Alive, CtxId, Pos, Scanner};
use crate::lexical::spell::ByteSet;
use crate::lexical::term::Term;
use crate::lexical::{LexId, Lexicon, Spelling, Step, TermId, Terms};

impl Scanner for Scanned {
    fn lexicon(&mut self) -> &mut Lexicon {
        &mut self.lexicon
    }

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

    fn may_begin(&mut self, ctx: CtxId, byte: u8) -> bool {
        let lex = self.begin(ctx);
        match self.lexicon.step(lex, byte) {
            Step::Stay(lex) => self.escapes(Pos { ctx, lex }),
            _ => false,
        }
    }

    /// What is ignored may come everywhere, so a lexeme that can end before its first byte can end.
    fn always_ends(&mut self, alive: &Alive) -> bool {
        if let Some(&known) = self.ending.get(alive) {
            return known;
        }
        let found = self.ends_before_ignored(alive);
        self.ending.insert(alive.clone(), found);
        found
    }
}

impl Scanned {
    fn ends_before_ignored(&mut self, alive: &Alive) -> bool {
        let mut ignored = ByteSet::default();
        for term in self.ignored_terms() {
            let lex = self.lexicon.at(Spelling::Raw, term);
            let first = self.lexicon.first_bytes(lex);
            (0..0x80u8).filter(|&b| first.has(b)).for_each(|b| ignored.insert(b));
        }
        if ignored.is_empty() {
            return false;
        }
        let start = self.tuple_state(alive);
        let mut seen = vec![start];
        let mut at = 0;
        while at < seen.len() && seen.len() <= ESCAPE_STATES {
            let lex = seen[at];
            at += 1;
            let outcome = self.lexicon.outcome(lex);
            // a closing bracket may be one too many, a row of literals may lead nowhere
            let sure = self.winner(outcome).is_some_and(|place| self.is_always_followed(place));
            if sure && ignored.iter().any(|b| self.lexicon.step(lex, b) == Step::Dead) {
                return true;
            }
            for (_, next) in self.lexicon.representatives(lex) {
                if !seen.contains(&next) {
                    seen.push(next);
                }
            }
        }
        false
    }
}
