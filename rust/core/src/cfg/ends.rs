//! Whether a lexeme that has begun can end, and whether a text can go on behind it.
//!
//! Invariant: "no" is sure; "yes" holds as far as it is looked ahead.
//! Complexity: [`LOOKS`] positions and [`ESCAPE_STATES`] states of each, once for a position.  Memory: an answer a position.

use super::scanned::Scanned;
use crate::automaton::byte_automaton::{CtxId, Pos};
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Lexicon, Step};
use crate::work;

/// States of a lexeme that are looked at to see whether it can end.
pub(super) const ESCAPE_STATES: usize = 64;
/// Lexemes ahead that are looked at where nothing is ignored, and positions in all: what is ignored may stand between any
/// two lexemes, but without it two names in a row are one, and a text that needs two is none.
const AHEAD: u8 = 8;
const LOOKS: usize = 64;

impl Scanned {
    /// Whether the lexeme can end somewhere: at the end of the text, or before a byte that it can't read and the
    /// next lexeme can, which can end in its turn.  (A comment up to the line's end can't where no line break may follow.)
    pub(crate) fn escapes(&mut self, pos: Pos) -> bool {
        let ahead = if self.ignored.is_empty() { AHEAD } else { 0 };
        self.escapes_within(pos, ahead, &mut { LOOKS })
    }

    /// "No" is sure; "yes" as far as so many lexemes ahead, or as there are looks left.
    fn escapes_within(&mut self, pos: Pos, ahead: u8, looks: &mut usize) -> bool {
        match self.escapes.get(&pos) {
            Some(None) => return false,
            Some(Some(far)) if *far >= ahead => return true,
            _ if *looks == 0 => return true,
            _ => *looks -= 1,
        }
        let mut seen = vec![pos.lex];
        let mut at = 0;
        let mut found = self.lexicon.term(pos.lex).is_none();
        while at < seen.len() && !found {
            let lex = seen[at];
            at += 1;
            found = self.escapes_at(Pos { lex, ..pos }, ahead, looks) || seen.len() > ESCAPE_STATES;
            if !found {
                for (_, next) in self.lexicon.representatives(lex) {
                    if !seen.contains(&next) {
                        seen.push(next);
                    }
                }
            }
        }
        self.escapes.insert(pos, found.then_some(ahead));
        found
    }

    fn escapes_at(&mut self, pos: Pos, ahead: u8, looks: &mut usize) -> bool {
        work::spend(16);
        let outcome = self.lexicon.outcome(pos.lex);
        let (Some(next), _) = self.left(pos.ctx, outcome) else { return false };
        if self.ends(self.context(next)) {
            return true;
        }
        let parts: Vec<u32> = self.parts_at(next).collect();
        let mut opened = ByteSet::default();
        for part in parts {
            let Some(opening) = self.parts.get(&part) else { continue };
            if opening.token {
                return true;
            }
            opened.add(&opening.first);
        }
        if (0..=255u8).any(|b| opened.has(b) && self.lexicon.step(pos.lex, b) == Step::Dead) {
            return true;
        }
        let begin = self.begin(next);
        begin != Lexicon::DEAD && self.begins_within(next, begin, pos.lex, ahead, looks)
    }

    /// Whether a lexeme begins with a byte (none that the one before it can read) and can end.
    fn begins_within(
        &mut self,
        ctx: CtxId,
        begin: LexId,
        before: LexId,
        ahead: u8,
        looks: &mut usize,
    ) -> bool {
        let bytes = self.lexicon.first_bytes(begin);
        let mut seen: Vec<LexId> = Vec::new();
        for b in (0..=255u8).filter(|&b| bytes.has(b)) {
            if self.lexicon.step(before, b) != Step::Dead {
                continue;
            }
            let Some(lex) = stays(self.lexicon.step(begin, b)) else { continue };
            if ahead == 0 {
                return true;
            }
            if !seen.contains(&lex) {
                seen.push(lex);
                if self.escapes_within(Pos { ctx, lex }, ahead - 1, looks) {
                    return true;
                }
            }
        }
        false
    }
}

pub(super) fn stays(step: Step) -> Option<LexId> {
    match step {
        Step::Stay(lex) => Some(lex),
        _ => None,
    }
}
