//! Lexemes that can't end after some beginnings, read one code point at a time so that no text leads into those.
//!
//! Two terminals may begin alike where only one of them leads on: of `A "a" | C D` with `A: /b/`, `C: /b[^a]+/` and
//! `D: /b/` a `b` may be read, another `b` may not, for it makes a C that swallows every D.  Whether a lexeme can end is asked
//! where it begins ([`super::lexeme_ends`]), which says nothing of its middle.  A context where that matters is *guarded*: its
//! next code point is a lexeme of its own; a place in the tuple stands for all code points that lead to one position.  The
//! context behind it is *inside* the lexeme, which goes on from there or ends as what it was.  Masks, steps and completions
//! need not know.
//! Invariant: a guarded context takes the texts that it takes unguarded, without those that can't end.
//! Complexity, memory: [`ESCAPE_STATES`] states per context; one context more for each code point of a guarded lexeme.

use rustc_hash::FxHashMap;

use super::lexeme_ends::{add, ESCAPE_STATES};
use super::scanned::{Context, Scanned};
use crate::automaton::byte_automaton::{Alive, CtxId, Pos};
use crate::lexical::segments::{Segment, WIDE};
use crate::lexical::{LexId, Lexicon, TermId, Terms};
use crate::{heap_size, work};

/// Where the code points of a guarded context lead, by their places behind all others; the first leads nowhere.
type CodePointTargets = Box<[Option<CtxId>]>;

/// Where code points lead, and which they are: the ranges of each context, first those that lead nowhere.
pub(super) struct LookaheadTargets {
    pub targets: Vec<Option<CtxId>>,
    pub ranges: Vec<Vec<(u32, u32)>>,
}

impl LookaheadTargets {
    pub fn new() -> Self {
        LookaheadTargets { targets: vec![None], ranges: vec![Vec::new()] }
    }

    pub fn add(&mut self, next: Option<CtxId>, ranges: impl IntoIterator<Item = (u32, u32)>) {
        let i = self.targets.iter().position(|o| *o == next).unwrap_or(self.targets.len());
        if i == self.targets.len() {
            self.targets.push(next);
            self.ranges.push(Vec::new());
        }
        self.ranges[i].extend(ranges);
    }
}

/// Memos of guarded contexts.
#[derive(Default)]
pub(super) struct LookaheadMemo {
    /// Contexts may be guarded: not inside another constraint, which ends a lexeme only before what it can't read.
    pub on: bool,
    /// By context: the lexical state before its lexeme, if it is guarded.
    known: FxHashMap<CtxId, Option<LexId>>,
    pub targets: FxHashMap<CtxId, CodePointTargets>,
    returns_to_state: FxHashMap<LexId, bool>,
}

heap_size::tables!(LookaheadMemo: known, targets, returns_to_state; this => this.targets.len() * 512);

impl Scanned {
    /// The lexical state that the next code point is read from where a context is guarded.
    pub(super) fn guard(&mut self, ctx: CtxId) -> Option<LexId> {
        if let Some(inside) = self.context(ctx).inside {
            return Some(inside);
        }
        let looks_around = self.chart.grammar.looks_around;
        if !self.lookahead.on || !looks_around && self.separable() {
            return None;
        }
        memo!(self.lookahead.known, ctx, {
            let looks = looks_around && self.depends_on_context(ctx);
            let guard = looks || !self.separable() && self.has_dead_beginning(ctx);
            let guard = guard.then(|| self.begin_unguarded(ctx));
            guard.filter(|&lex| lex != Lexicon::DEAD)
        })
    }

    /// Whether a lexeme that can end where its first byte is read comes to a state where it can't.
    fn has_dead_beginning(&mut self, ctx: CtxId) -> bool {
        let first: Vec<(LexId, bool)> = match self.lexemes_by_first_byte_at(ctx) {
            Some(known) => known.doubtful.iter().map(|&(_, lex)| (lex, false)).collect(),
            None => {
                let begin = self.begin_unguarded(ctx);
                self.lexicon.ways(begin).iter().map(|way| (way.to, way.last >= WIDE)).collect()
            }
        };
        let mut seen: Vec<LexId> = Vec::new();
        for (lex, wide) in first {
            // a class of Unicode has hundreds of ranges that lead to one state
            if seen.contains(&lex) || !wide && self.returns_to_state(lex) {
                continue;
            }
            match self.can_end(Pos { ctx, lex }) {
                true => seen.push(lex),
                // of one byte: told where the lexeme begins
                false if wide => return true,
                false => {}
            }
        }
        let mut at = 0;
        while at < seen.len() && seen.len() <= ESCAPE_STATES {
            for way in self.doubtful_segments(seen[at]).iter() {
                if seen.contains(&way.to) {
                    continue;
                }
                if !self.can_end(Pos { ctx, lex: way.to }) {
                    return true;
                }
                seen.push(way.to);
            }
            at += 1;
        }
        false
    }

    /// Whether a lexeme leads back to a state from wherever it leads, so that all can end if that one can.
    fn returns_to_state(&mut self, lex: LexId) -> bool {
        memo!(self.lookahead.returns_to_state, lex, {
            let mut seen = vec![lex];
            let mut targets: Vec<Vec<LexId>> = Vec::new();
            while targets.len() < seen.len() && seen.len() <= ESCAPE_STATES {
                let ways: Vec<LexId> =
                    self.doubtful_segments(seen[targets.len()]).iter().map(|way| way.to).collect();
                ways.iter().for_each(|&to| add(&mut seen, to));
                targets.push(ways);
            }
            let mut back = vec![lex];
            let mut before = 0;
            while before < back.len() {
                before = back.len();
                for (&from, ways) in seen.iter().zip(&targets) {
                    if ways.iter().any(|to| back.contains(to)) {
                        add(&mut back, from);
                    }
                }
            }
            back.len() == seen.len()
        })
    }

    /// The context outside the lexeme.
    pub(super) fn outside(&mut self, ctx: CtxId) -> CtxId {
        let context = self.context(ctx);
        match context.inside {
            Some(_) => self.intern(Context { inside: None, ..context }),
            None => ctx,
        }
    }

    /// The position that stands for the same text where nothing is guarded; in the middle of a code point its own.
    pub(super) fn unguarded(&mut self, pos: Pos) -> Pos {
        let Some(lex) = self.guard(pos.ctx) else { return pos };
        if self.begin(pos.ctx) == pos.lex {
            return Pos { ctx: self.outside(pos.ctx), lex };
        }
        let Some(next) = self.after_lexeme(pos) else { return pos };
        match self.context(next).inside {
            Some(lex) => Pos { ctx: self.outside(next), lex },
            None => pos,
        }
    }

    /// The code points that may come at a position of a guarded lexeme, by where they lead; `None` at others.
    pub(super) fn code_points(&mut self, pos: Pos) -> Option<Vec<TermId>> {
        self.guard(pos.ctx)?;
        let ctx = if self.begin(pos.ctx) == pos.lex { pos.ctx } else { self.after_lexeme(pos)? };
        self.guard(ctx)?;
        let alive = self.readable(ctx);
        Some(alive.iter().filter(|p| p.0 as usize > self.places).map(|p| p.1).collect())
    }

    /// The next code points of a guarded context by where they lead, and the empty text where the lexeme may end.
    pub(super) fn list_guarded(&mut self, ctx: CtxId, lex: LexId) -> Alive {
        if self.chart.grammar.looks_around {
            return self.list_trailing_context(ctx, lex);
        }
        let outer = self.outside(ctx);
        let inside = self.context(ctx).inside.is_some();
        let outcome = self.lexicon.outcome(lex);
        let chosen_terminal = self.chosen_terminal(outcome).filter(|_| inside);
        let mut ways: Vec<(Segment, CtxId)> =
            self.lexicon.ways(lex).into_iter().map(|s| (s, outer)).collect();
        if let Some(next) = chosen_terminal.and_then(|place| self.after(outer, place)) {
            // beyond one byte the end and what is read on may begin alike, so that what follows is read here
            let begin = self.begin_unguarded(next);
            let left = self.lexicon.ways_beyond(lex, begin).into_iter().filter(|s| s.last >= WIDE);
            ways.extend(left.map(|s| (Segment { first: s.first.max(WIDE), ..s }, next)));
        }
        let mut leads = LookaheadTargets::new();
        for (segment, ctx) in ways {
            work::spend(4);
            let pos = Pos { ctx, lex: segment.to };
            let next = match self.can_end(pos) {
                true => Some(self.intern(Context { inside: Some(pos.lex), ..self.context(ctx) })),
                false => None,
            };
            leads.add(next, [(segment.first, segment.last)]);
        }
        // beyond one byte what leads nowhere is left out: no lexeme ends before it either
        let nowhere = leads.ranges[0].iter().filter(|r| r.0 < WIDE);
        leads.ranges[0] = nowhere.map(|r| (r.0, r.1.min(WIDE - 1))).collect();
        self.record_list(ctx, chosen_terminal, leads)
    }

    /// Takes down where the code points of a guarded context lead.
    pub(super) fn record_list(&mut self, ctx: CtxId, end: Option<u32>, leads: LookaheadTargets) -> Alive {
        let mut out: Vec<(u32, TermId)> = end.map(|place| (place, Terms::EPS)).into_iter().collect();
        for (i, mut ranges) in leads.ranges.into_iter().enumerate() {
            ranges.sort_unstable();
            if !ranges.is_empty() {
                out.push(((self.places + i) as u32, self.lexicon.terms.class(&ranges)));
            }
        }
        self.lookahead.targets.insert(ctx, leads.targets.into());
        out.into()
    }

    /// The context behind a code point of a guarded context.
    pub(super) fn after_code_point(&mut self, ctx: CtxId, place: u32) -> Option<CtxId> {
        self.readable(ctx);
        self.lookahead.targets.get(&ctx)?.get(place as usize - self.places).copied()?
    }
}
