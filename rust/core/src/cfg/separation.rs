//! Separation of a grammar's terminals, whatever the context: an ignored text that ends each of them, or their first bytes.
//!
//! Complexity, memory: the states of each terminal, up to a bound, once per grammar.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::scanned::Scanned;
use crate::automaton::byte_automaton::{Alive, CtxId};
use crate::heap_size;
use crate::lexical::segments::{Segment, WIDE};
use crate::lexical::spell::ByteSet;
use crate::lexical::term::{intersect_ranges, union_ranges, Term};
use crate::lexical::{LexId, TermId, Terms};

/// Ranges of code points.
type Ranges = Vec<(u32, u32)>;

/// How the terminals are separated.
pub(super) enum Separation {
    /// Whatever is read can end, and something that is ignored tells it from what follows.
    All,
    /// Lexemes that can only become these places (`true`) can end so; the others of such a grammar are line breaks.
    These(Arc<[bool]>),
    /// Each lexeme is to be looked at.
    None,
}

/// Memos of the grammar's separation, by lexical state and context.
#[derive(Default)]
pub(super) struct SeparationMemo {
    apart: Option<Separation>,
    /// Whether a lexeme can end for the terminals that it may become, and the ways to those that can't so.
    plain: FxHashMap<LexId, bool>,
    doubtful: FxHashMap<LexId, Arc<[Segment]>>,
    lexemes_by_first_byte: FxHashMap<Alive, LexemesByFirstByte>,
    lexemes_by_first_byte_at: FxHashMap<CtxId, LexemesByFirstByte>,
    pub shared_beginnings: Option<Arc<[(u32, u32)]>>,
}

heap_size::tables!(SeparationMemo: plain, doubtful, lexemes_by_first_byte, lexemes_by_first_byte_at; this => (this.doubtful.len() + this.lexemes_by_first_byte.len()) * 256);

/// Lexemes by their first byte.
#[derive(Clone)]
pub(super) struct LexemesByFirstByte {
    /// Bytes that begin what can end wherever it is.
    pub plain: ByteSet,
    /// The others, and the lexical states behind them.
    pub doubtful: Arc<[(u8, LexId)]>,
}

impl Scanned {
    /// How terminals are separated: an ignored text begins with a byte that ends each terminal wherever that may end,
    /// and each ignored text ends before any terminal, with another ignored one between them where need be.
    ///
    /// Of languages that are read side by side one that ends somewhere reads no further than that byte, so each end
    /// leaves fewer of them, and the last one's end is the lexeme's.
    fn separation(&mut self) -> &Separation {
        if self.separation.apart.is_none() {
            self.separation.apart = Some(self.find_separation());
        }
        self.separation.apart.as_ref().unwrap_or(&Separation::None)
    }

    /// Whether nothing need be looked at.
    pub(super) fn separable(&mut self) -> bool {
        matches!(self.separation(), Separation::All)
    }

    /// Whether a lexeme that has begun can end, whatever the context, for the terminals that it may become.
    pub(super) fn always_ends(&mut self, lex: LexId) -> bool {
        let Separation::These(these) = self.separation() else { return false };
        let these = these.clone();
        memo!(self.separation.plain, lex, {
            let tuple = self.lexicon.term(lex).map(|(_, tuple)| self.lexicon.terms.get(tuple));
            matches!(tuple, Some(Term::Tuple(terms)) if {
                let mut places = terms.iter().enumerate().filter(|t| *t.1 != Terms::EMPTY);
                places.all(|(place, _)| these.get(place) == Some(&true))
            })
        })
    }

    /// The ways from a lexical state to those that don't plainly end.
    pub(super) fn doubtful_segments(&mut self, lex: LexId) -> Arc<[Segment]> {
        memo!(self.separation.doubtful, lex, {
            let mut ways = self.lexicon.ways(lex);
            ways.retain(|way| !self.always_ends(way.to));
            ways.into()
        })
    }

    /// How the lexemes of a context begin, where most terminals are known to end.
    pub(super) fn lexemes_by_first_byte_at(&mut self, ctx: CtxId) -> Option<LexemesByFirstByte> {
        if !matches!(self.separation(), Separation::These(_)) {
            return None;
        }
        Some(memo!(self.separation.lexemes_by_first_byte_at, ctx, {
            let places = self.readable_unguarded(ctx);
            self.lexemes_by_first_byte(&places)?
        }))
    }

    /// How the lexemes of a list begin, where most terminals are known to end.
    pub(super) fn lexemes_by_first_byte(&mut self, alive: &Alive) -> Option<LexemesByFirstByte> {
        let Separation::These(these) = self.separation() else { return None };
        let these = these.clone();
        Some(memo!(self.separation.lexemes_by_first_byte, alive, alive.clone(), {
            let (mut plain, mut others) = (ByteSet::default(), ByteSet::default());
            let first: Vec<ByteSet> = alive.iter().map(|&(_, term)| self.lexicon.first_of(term)).collect();
            for (&(place, _), first) in alive.iter().zip(&first) {
                if these.get(place as usize) == Some(&true) { &mut plain } else { &mut others }.add(first);
            }
            let mut doubtful = Vec::new();
            for byte in others.iter() {
                let begun = alive.iter().zip(&first).filter(|(_, first)| first.has(byte));
                let begun: Vec<(u32, TermId)> = begun.map(|(&read, _)| read).collect();
                let terms = &mut self.lexicon.terms;
                let begun = begun.into_iter().map(|(place, term)| (place, terms.derive(term, byte.into())));
                let begun: Alive = begun.collect::<Vec<_>>().into();
                doubtful.push((byte, self.tuple_state(&begun)));
            }
            LexemesByFirstByte { plain: plain.without(&others), doubtful: doubtful.into() }
        }))
    }

    fn find_separation(&mut self) -> Separation {
        let grammar = &self.chart.grammar;
        let terms: Vec<Option<TermId>> = grammar.terminals.iter().map(|t| t.term).collect();
        let ignored = self.ignored_terms();
        let formed = self.ignored.iter().any(|&t| grammar.terminals[t as usize].forms.is_some());
        // the code points of a guarded context are lexemes that may lead nowhere
        if ignored.is_empty() || grammar.looks_around || formed {
            return Separation::None;
        }
        let first: Vec<_> = ignored.iter().map(|&t| self.lexicon.first_of(t)).collect();
        let mut begins = first[0];
        first.iter().for_each(|set| begins.add(set));
        let grammar = &self.chart.grammar;
        let read: Vec<usize> =
            (0..terms.len()).filter(|&t| !grammar.terminals[t].ignored && terms[t].is_some()).collect();
        let mut these = vec![false; terms.len()];
        for &t in &read {
            let followed = self.bytes_allowed_after(t, &begins);
            these[t] = terms[t].is_none_or(|term| self.lexicon.ends_before(term).meets(&followed));
        }
        if let Some(layout) = &self.chart.grammar.layout {
            // a line break hangs on columns
            let newline = layout.newline as usize;
            let mut rest = read.iter().all(|&t| these[t] || t == newline);
            // the first byte decides what is examined
            let looked_at: Vec<TermId> = terms[newline].into_iter().chain(ignored).collect();
            rest &= looked_at.iter().all(|&t| self.lexicon.wide_ways(t).is_empty());
            these[newline] = false;
            // those of a width are listed only where they lead on
            these.push(false);
            these.resize(self.first_literal_run, true);
            return if rest { Separation::These(these.into()) } else { Separation::None };
        }
        match read.iter().all(|&t| these[t]) && self.ignored_end(&ignored, &first, &read, &terms) {
            true => Separation::All,
            false => Separation::None,
        }
    }

    /// Whether each ignored text ends before any terminal, maybe with others between them.
    fn ignored_end(
        &mut self,
        ignored: &[TermId],
        first: &[ByteSet],
        read: &[usize],
        terms: &[Option<TermId>],
    ) -> bool {
        let ends: Vec<ByteSet> = ignored.iter().map(|&t| self.lexicon.ends_before(t)).collect();
        read.iter().filter_map(|&t| terms[t]).all(|t| {
            let begin = self.lexicon.first_of(t);
            let mut free: Vec<bool> = ends.iter().map(|e| e.meets(&begin)).collect();
            for _ in 0..free.len() {
                for i in 0..free.len() {
                    free[i] |= (0..free.len()).any(|other| free[other] && ends[i].meets(&first[other]));
                }
            }
            free.iter().all(|&f| f)
        })
    }

    /// Code points of several bytes that may begin a lexeme where another one, which can't read them, reads one that
    /// begins with the same byte.
    pub(super) fn find_shared_beginnings(&mut self) -> Ranges {
        let terminals = &self.chart.grammar.terminals;
        let mut terms: Vec<TermId> = terminals.iter().filter_map(|t| t.term).collect();
        terms.extend(terminals.iter().filter_map(|t| t.around.as_ref()).flatten());
        crate::lists::sort_unique(&mut terms);
        let mut begins = Ranges::new();
        for &term in &terms {
            begins = union_ranges(&begins, &self.lexicon.wide_ways(term));
        }
        if begins.is_empty() {
            return begins;
        }
        let mut shared = Ranges::new();
        for &term in &terms {
            let unreadable_chars = self.lexicon.unread_beside(term).unwrap_or_else(|| vec![(WIDE, u32::MAX)]);
            shared = union_ranges(&shared, &intersect_ranges(&begins, &unreadable_chars));
        }
        shared
    }
}
