//! Terminals with assertions about the text around them (trailing context): `/if\b/`, `/(?<!c)b/`, `/a(?=b)/`.
//!
//! The language of such a terminal holds what may follow as well ([`crate::regex::context`]): a word, a mark, the text behind
//! it; one language for each set of characters before it.  Where the lexer reads on under whatever the assertion asks for
//! (`(?!if\b)\w+` never ends before a letter), or another terminal there does, the context decides nothing
//! ([`super::context_dependence`]), and the words alone are the language.  Where only the next character is restricted, the
//! terminal is split ([`super::split_terminals`]).  Elsewhere the context is guarded ([`super::lookahead`]): a lexeme may be
//! one terminal before one character and another before the next, and contexts know the set of the last character.
//! Invariant: what is read is what Lark's lexer reads, but for the longest match.
//! Complexity, memory: the ends of a lexeme, by lexical state.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::context_dependence::{covers, paired_ranges, Ranges, TEXT};
use super::lookahead::LookaheadTargets;
use super::scanned::{Context, Scanned};
use crate::automaton::byte_automaton::{Alive, CtxId, Pos};
use crate::lexical::segments::{Segment, WIDE};
use crate::lexical::term::{intersect_ranges, union_ranges, Term};
use crate::lexical::{LexId, TermId, Terms};
use crate::regex::context::END;
use crate::regex::CharSet;
use crate::{heap_size, work};

/// How a lexeme that was read so far may end: at the end of the text, and before which characters, as which terminal.
struct LexemeEnds {
    at_end: Option<u32>,
    before: Box<[(u32, Ranges)]>,
}

/// Memos: which terminals cover others, and the ends of lexemes.
#[derive(Default)]
pub(super) struct TrailingContexts {
    /// Whether a terminal goes on wherever another one depends on what follows, by both.
    covers: FxHashMap<(u32, u32), bool>,
    endings: FxHashMap<LexId, Arc<LexemeEnds>>,
    /// Ranges in them: a class of Unicode has hundreds.
    ranges: usize,
}

heap_size::tables!(TrailingContexts: covers, endings; this => this.endings.len() * 64 + this.ranges * 8);

impl Scanned {
    /// The language of a terminal where all of these may be read.
    pub(super) fn term_among(&mut self, terminal: u32, all: &[u32], last_char_set: u8) -> Option<TermId> {
        let entry = &self.chart.grammar.terminals[terminal as usize];
        let (Some(around), alone) = (entry.around_after(last_char_set), entry.term) else {
            return entry.term;
        };
        let one = entry.around.as_ref().is_some_and(|by_past| by_past.len() == 1);
        if one && all.iter().any(|&other| self.is_covered(terminal, around, other)) {
            return alone;
        }
        (around != Terms::EMPTY).then_some(around)
    }

    pub(super) fn is_covered(&mut self, terminal: u32, around: TermId, other: u32) -> bool {
        let entry = &self.chart.grammar.terminals[other as usize];
        let Some(term) = entry.term.filter(|_| entry.around.is_none() && entry.forms.is_none()) else {
            return false;
        };
        memo!(self.trailing.covers, (terminal, other), covers(&mut self.lexicon.terms, around, term))
    }

    /// Whether it hangs on the text around a context's next lexeme what it may be.
    pub(super) fn depends_on_context(&mut self, ctx: CtxId) -> bool {
        if !self.chart.grammar.pasts.is_empty() {
            return true;
        }
        let places = self.readable_unguarded(ctx);
        let terminals = &self.chart.grammar.terminals;
        places.iter().any(|&(place, term)| {
            let around = terminals.get(place as usize).and_then(|t| t.around.as_ref());
            around.is_some_and(|by_past| by_past.contains(&term))
        })
    }

    fn endings(&mut self, lex: LexId) -> Arc<LexemeEnds> {
        memo!(self.trailing.endings, lex, {
            let found = Arc::new(self.find_endings(lex));
            self.trailing.ranges += found.before.iter().map(|before| before.1.len()).sum::<usize>();
            found
        })
    }

    fn find_endings(&mut self, lex: LexId) -> LexemeEnds {
        let outcome = self.lexicon.outcome(lex);
        let mut ends: Vec<(u32, bool, Ranges)> = Vec::new();
        if !self.lexicon.is_behind(outcome) {
            let ended = self.lexicon.outcome_list(outcome);
            ends.extend(ended.iter().map(|&place| (place, true, TEXT.to_vec())));
        }
        let tuple = self.lexicon.term(lex).map(|(_, tuple)| self.lexicon.terms.get(tuple).clone());
        if let Some(Term::Tuple(all)) = tuple {
            // in other languages the mark is a character like any
            let marked = self.chart.grammar.terminals.iter().map(|t| t.around.is_some());
            let marked: Vec<u32> = (0u32..).zip(marked).filter(|t| t.1).map(|t| t.0).collect();
            for (place, term) in
                marked.into_iter().filter_map(|place| Some((place, *all.get(place as usize)?)))
            {
                let terms = &mut self.lexicon.terms;
                let after = terms.derive(term, END);
                if after != Terms::EMPTY {
                    let follow = paired_ranges(terms, after, Terms::EMPTY);
                    let follow = follow.into_iter().filter(|f| f.1 != Terms::EMPTY).map(|f| f.0);
                    ends.push((place, terms.nullable(after), union_ranges(&follow.collect::<Ranges>(), &[])));
                }
            }
        }
        ends.sort_by_key(|end| self.rank(end.0));
        let at_end = ends.iter().find(|end| end.1).map(|end| end.0);
        let mut left = CharSet::full();
        let mut before = Vec::new();
        for (place, _, follow) in ends {
            let follow = CharSet(follow);
            let own = intersect_ranges(&left.0, &follow.0);
            left = left.minus(&follow);
            if !own.is_empty() {
                before.push((place, own));
            }
        }
        LexemeEnds { at_end, before: before.into() }
    }

    /// Whether two contexts differ at most in what the text before them says of the next lexeme.
    pub(super) fn is_alike(&self, one: CtxId, other: CtxId) -> bool {
        let (one, other) = (self.context(one), self.context(other));
        one == Context { last_char_set: one.last_char_set, following: one.following, ..other }
    }

    /// The terminal that a lexeme of these characters is at the end of the text, or else before some character.
    pub(super) fn terminal_at_end(&mut self, lex: LexId) -> Option<u32> {
        if !self.chart.grammar.looks_around {
            let outcome = self.lexicon.outcome(lex);
            return self.chosen_terminal(outcome);
        }
        let endings = self.endings(lex);
        endings.at_end.or_else(|| endings.before.first().map(|before| before.0))
    }

    /// Whether a lexeme may be a terminal, before some character or at the end of the text.
    pub(super) fn may_be_terminal(&mut self, lex: LexId, place: u32) -> bool {
        if !self.chart.grammar.looks_around {
            return self.terminal_at_end(lex).is_some_and(|ended| {
                self.terminal_of(ended) == place
                    || self.joint(ended).is_some_and(|members| members.contains(&place))
            });
        }
        let endings = self.endings(lex);
        endings.at_end == Some(place) || endings.before.iter().any(|before| before.0 == place)
    }

    /// The context behind a lexeme that the text ends with.
    pub(super) fn after_last(&mut self, pos: Pos) -> Option<CtxId> {
        match self.chart.grammar.looks_around {
            true => self.endings(pos.lex).at_end.and_then(|place| self.after(pos.ctx, place)),
            false => self.after_lexeme(pos),
        }
    }

    /// The contexts behind a lexeme, each with the first characters there that the lexeme can't read.
    fn contexts_with_next_chars(&mut self, ctx: CtxId, lex: LexId) -> Vec<(CtxId, Vec<Segment>)> {
        let endings = self.endings(lex);
        let mut out = Vec::new();
        for (place, follow) in endings.before.iter() {
            let Some(next) = self.after(ctx, *place) else { continue };
            if self.context(next).inside.is_some() {
                out.push((next, Vec::new()));
                continue;
            }
            let begin = self.begin_unguarded(next);
            let ways = self.lexicon.ways_beyond(lex, begin);
            let clipped = ways.into_iter().flat_map(|way| {
                let ranges = intersect_ranges(&[(way.first, way.last)], follow);
                ranges.into_iter().map(move |(first, last)| Segment { first, last, ..way })
            });
            out.push((next, clipped.collect()));
        }
        out
    }

    /// Bytes that may follow a lexeme as far as it was read; a superset.
    pub(super) fn contexts_behind(&mut self, ctx: CtxId, lex: LexId) -> Vec<CtxId> {
        self.contexts_with_next_chars(ctx, lex).into_iter().map(|way| way.0).collect()
    }

    /// The context behind characters, by the sets that the grammar's lookbehinds ask for.
    fn contexts_by_last_char(&mut self, ctx: CtxId, first: u32, last: u32) -> Vec<(CtxId, Ranges)> {
        let read = intersect_ranges(&[(first, last)], &TEXT);
        let pasts = self.chart.grammar.pasts.clone();
        if pasts.is_empty() {
            return if read.is_empty() { Vec::new() } else { vec![(ctx, read)] };
        }
        let mut out = Vec::new();
        for (last_char_set, set) in (1u8..).zip(pasts.iter()) {
            let ranges = intersect_ranges(&read, &set.0);
            if !ranges.is_empty() {
                out.push((self.intern(Context { last_char_set, ..self.context(ctx) }), ranges));
            }
        }
        out
    }

    /// The next code points of a guarded context by where they lead, and the empty text where the text may end.
    pub(super) fn list_trailing_context(&mut self, ctx: CtxId, lex: LexId) -> Alive {
        let outer = self.outside(ctx);
        let mut ways: Vec<(Segment, CtxId)> =
            self.lexicon.ways(lex).into_iter().map(|way| (way, outer)).collect();
        let mut end = None;
        if self.context(ctx).inside.is_some() {
            end = self.endings(lex).at_end;
            for (next, behind) in self.contexts_with_next_chars(outer, lex) {
                ways.extend(behind.into_iter().map(|way| (way, next)));
            }
        }
        let mut leads = LookaheadTargets::new();
        for (way, from) in ways {
            work::spend(4);
            for (behind, read) in self.contexts_by_last_char(from, way.first, way.last) {
                let next = match self.can_end(Pos { ctx: behind, lex: way.to }) {
                    true => Some(self.intern(Context { inside: Some(way.to), ..self.context(behind) })),
                    false => None,
                };
                leads.add(next, read);
            }
        }
        // a byte that isn't read would end the lexeme, whatever it is
        let mut read: Ranges = leads.ranges[1..].concat();
        read.sort_unstable();
        let read = CharSet(union_ranges(&read, &[]));
        leads.ranges[0] = intersect_ranges(&[(0, WIDE - 1)], &read.negate().0);
        self.record_list(ctx, end, leads)
    }

    /// As [`Scanned::can_end`] where it hangs on the text around a lexeme what it is.
    pub(super) fn can_end_in_context(
        &mut self,
        pos: Pos,
        ahead: u8,
        left: &mut Option<usize>,
        most: usize,
    ) -> bool {
        let mut seen = vec![(pos.ctx, pos.lex)];
        let mut at = 0;
        while at < seen.len() {
            let (ctx, lex) = seen[at];
            at += 1;
            if self.ends_around(Pos { ctx, lex }, ahead, left, &mut seen) || seen.len() > most {
                return true;
            }
            let listed = self.is_listed(lex);
            for way in self.lexicon.ways(lex) {
                match listed {
                    true => add(&mut seen, (ctx, way.to)),
                    false => {
                        let behind = self.contexts_by_last_char(ctx, way.first, way.last);
                        behind.iter().for_each(|&(ctx, _)| add(&mut seen, (ctx, way.to)));
                    }
                }
            }
        }
        false
    }

    /// Whether a state is one of a guarded context's code points.
    fn is_listed(&self, lex: LexId) -> bool {
        let Some((_, tuple)) = self.lexicon.term(lex) else { return true };
        match self.lexicon.terms.get(tuple) {
            Term::Tuple(all) => all.iter().skip(self.places).any(|&term| term != Terms::EMPTY),
            _ => false,
        }
    }

    fn ends_around(
        &mut self,
        pos: Pos,
        ahead: u8,
        left: &mut Option<usize>,
        beside: &mut Vec<(CtxId, LexId)>,
    ) -> bool {
        work::spend(16);
        if let Some(next) = self.after_last(pos).map(|next| self.context(next)) {
            if next.inside.is_some() || self.ends(next) {
                return true;
            }
        }
        for (next, ways) in self.contexts_with_next_chars(pos.ctx, pos.lex) {
            if self.context(next).inside.is_some() {
                return true;
            }
            // each once: a class has hundreds of ranges, and looks are few
            let mut begun: Vec<(CtxId, LexId)> = Vec::new();
            for way in ways {
                let behind = self.contexts_by_last_char(next, way.first, way.last);
                behind.iter().for_each(|&(ctx, _)| add(&mut begun, (ctx, way.to)));
            }
            if next == pos.ctx {
                begun.into_iter().for_each(|began| add(beside, began));
                continue;
            }
            for (ctx, lex) in begun {
                if ahead == 0 || self.can_end_within(Pos { ctx, lex }, ahead - 1, left) {
                    return true;
                }
            }
        }
        false
    }
}

fn add<T: PartialEq>(seen: &mut Vec<T>, one: T) {
    if !seen.contains(&one) {
        seen.push(one);
    }
}
