//! Whether a lexeme that has begun can end, and whether a text can go on behind it.
//!
//! Invariant: "no" is sure; "yes" holds as far as the search looks ahead.
//! Complexity: [`LOOKS`] positions and [`ESCAPE_STATES`] states of each, once per position.  Memory: an answer per position
//! and number of lexemes ahead.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::adjacency;
use super::scanned::Scanned;
use super::separation::LexemesByFirstByte;
use crate::automaton::byte_automaton::{CtxId, Pos};
use crate::lexical::spell::ByteSet;
use crate::lexical::{LexId, Step};
use crate::{heap_size, work};

/// States of a lexeme that are looked at to see whether it can end.
pub(super) const ESCAPE_STATES: usize = 64;
/// Lexemes ahead that are looked at, what is ignored aside, and positions in all: where nothing stands between two names in a
/// row they are one, and a text that needs two is none.
const AHEAD: u8 = 8;
const LOOKS: usize = 64;

/// Memos of searches for the end of a lexeme.
#[derive(Default)]
pub(super) struct EscapeMemo {
    /// Whether the lexeme of a position can end.
    can_end: FxHashMap<Pos, bool>,
    /// Results of searches, by position and lexemes ahead; with the positions visited.
    searches: FxHashMap<(Pos, u8), (bool, usize)>,
    /// Of each expansion, whether it is never read to its end ([`neighbours`]).
    unreadable: Option<Box<[bool]>>,
    /// What begins behind a lexical state, by that before the next lexeme.
    lexemes_behind: FxHashMap<(LexId, LexId), Arc<[LexId]>>,
}

heap_size::tables!(EscapeMemo: can_end, searches, lexemes_behind);

/// What may begin behind a lexeme, with a code point that it can't read.
enum LexemesBehind {
    /// Some lexeme that can end wherever it is.
    Plain,
    Doubtful(Arc<[LexId]>),
}

impl Scanned {
    /// What may begin at a context behind a lexeme.
    fn lexemes_behind(&mut self, before: LexId, ctx: CtxId) -> LexemesBehind {
        if let Some(LexemesByFirstByte { plain, doubtful }) = self.lexemes_by_first_byte_at(ctx) {
            let read = self.lexicon.first_bytes(before);
            if !plain.without(&read).is_empty() {
                return LexemesBehind::Plain;
            }
            let begun = doubtful.iter().filter(|begun| !read.has(begun.0)).map(|begun| begun.1);
            return LexemesBehind::Doubtful(begun.collect());
        }
        let begin = self.begin_unguarded(ctx);
        LexemesBehind::Doubtful(memo!(self.lexeme_ends.lexemes_behind, (before, begin), {
            let mut begun = Vec::new();
            self.lexicon.ways_beyond(before, begin).iter().for_each(|way| add(&mut begun, way.to));
            begun.into()
        }))
    }

    /// Whether the lexeme can end somewhere: at the end of the text, or before a code point that it can't read and the
    /// next lexeme can, which can end in its turn.  (A comment up to the line's end can't where no line break may follow.)
    pub(crate) fn can_end(&mut self, pos: Pos) -> bool {
        if self.separable() || self.always_ends(pos.lex) {
            return true;
        }
        memo!(self.lexeme_ends.can_end, pos, {
            let mut left = Some(LOOKS);
            self.can_end_within(pos, AHEAD, &mut left)
        })
    }

    /// Whether a position stands before a lexeme that some byte begins in vain.
    pub(crate) fn may_begin_dead_lexeme(&mut self, pos: Pos) -> bool {
        if self.separable() || self.begin(pos.ctx) != pos.lex {
            return false;
        }
        let begun: Vec<LexId> =
            (0..=255).filter_map(|byte| stays(self.lexicon.step(pos.lex, byte))).collect();
        begun.into_iter().any(|lex| !self.can_end(Pos { lex, ..pos }))
    }

    /// "No" is sure; "yes" as far as so many lexemes ahead, or as there are looks left. The answer is that of a search
    /// that remembers nothing, so that it is the same whatever was asked before.
    pub(super) fn can_end_within(&mut self, pos: Pos, ahead: u8, left: &mut Option<usize>) -> bool {
        let Some(looks) = *left else { return true };
        if let Some(&(found, cost)) = self.lexeme_ends.searches.get(&(pos, ahead)) {
            *left = looks.checked_sub(cost);
            return left.is_none() || found;
        }
        *left = looks.checked_sub(1);
        let around = self.chart.grammar.looks_around;
        let mut seen = if around { Vec::new() } else { vec![pos.lex] };
        let mut at = 0;
        let mut found = around && self.can_end_in_context(pos, ahead, left, ESCAPE_STATES);
        while at < seen.len() && !found {
            let lex = seen[at];
            at += 1;
            found = self.can_end_at(Pos { lex, ..pos }, ahead, left, &mut seen) || seen.len() > ESCAPE_STATES;
            if !found {
                self.lexicon.ways(lex).iter().for_each(|way| add(&mut seen, way.to));
            }
        }
        if let Some(rest) = *left {
            self.lexeme_ends.searches.insert((pos, ahead), (found, looks - rest));
        }
        found
    }

    /// Whether all that goes on at a context needs two terminals in a row that are read as one.
    fn is_unreadable(&mut self, ctx: CtxId) -> bool {
        let known = self.lexeme_ends.unreadable.take();
        let known = known.unwrap_or_else(|| adjacency::unreadable(&mut self.lexicon, &self.chart.grammar));
        let set = self.context(ctx).set;
        let found = self.chart.all(set, |expansion| known.get(expansion as usize) == Some(&true));
        self.lexeme_ends.unreadable = Some(known);
        found
    }

    /// Whether the lexeme can end at this state. What is ignored brings no text nearer to its end: what may follow it is
    /// looked at beside it.
    fn can_end_at(&mut self, pos: Pos, ahead: u8, left: &mut Option<usize>, beside: &mut Vec<LexId>) -> bool {
        work::spend(16);
        let outcome = self.lexicon.outcome(pos.lex);
        let place = self.chosen_terminal(outcome);
        let Some(next) = place.and_then(|place| self.after(pos.ctx, place)) else { return false };
        if self.context(next).inside.is_some() || self.ends(self.context(next)) {
            return true;
        }
        if self.is_unreadable(next) {
            return false;
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
        let LexemesBehind::Doubtful(begun) = self.lexemes_behind(pos.lex, next) else { return true };
        if next == pos.ctx {
            begun.iter().for_each(|&lex| add(beside, lex));
            return false;
        }
        if ahead == 0 {
            return !begun.is_empty();
        }
        begun.iter().any(|&lex| self.can_end_within(Pos { ctx: next, lex }, ahead - 1, left))
    }
}

pub(super) fn add(seen: &mut Vec<LexId>, lex: LexId) {
    if !seen.contains(&lex) {
        seen.push(lex);
    }
}

pub(super) fn stays(step: Step) -> Option<LexId> {
    match step {
        Step::Stay(lex) => Some(lex),
        _ => None,
    }
}
