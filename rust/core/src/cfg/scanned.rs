//! A context-free grammar behind a contextual lexer: longest match among the terminals that the parser can take.
//!
//! A context is (item set, open blocks); the lexeme is a tuple of the languages of the terminals that the set can
//! read, and of those that are ignored, walked side by side.  It goes on while any of them can; where none can, the
//! best of those that accept has been read (priority, then literals before patterns, then Lark's order).  A place
//! in the tuple is the terminal's number in every context, so lexical states, and with them their shared masks, are
//! the same wherever the same terminals are left.
//!
//! A text that begins a longer literal and is made of shorter ones (`..` before `...`) is a place of its own, which
//! stands for those in a row.
//!
//! Semantics, where Lark's differ: the longest match wins whatever the priorities, and a lexeme that has gone past
//! one end must reach another (no backtracking).
//!
//! Complexity: a step that was made before is a lookup; a new one costs the items of the new set.

use rustc_hash::FxHashMap;

use super::chart::{Chart, ItemSetId};
use super::grammar::Grammar;
use super::joints::{self, Joints};
use super::layout::{Blocks, WIDEST};
use super::lexeme_ends::EscapeMemo;
use super::literals::{rows, LiteralRun};
use super::lookahead::LookaheadMemo;
use super::separation::SeparationMemo;
use super::trailing_context::TrailingContexts;
use crate::automaton::byte_automaton::{Alive, CtxId, Piece, Pos};
use crate::error::Result;
use crate::heap_size::{self, Interner};
use crate::lexical::spell::{ByteSet, OutcomeId};
use crate::lexical::term::Term;
use crate::lexical::{LexId, Lexicon, Spelling, TermId, Terms};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Context {
    pub set: ItemSetId,
    pub blocks: u32,
    /// What was read of a lexeme that is read code point by code point ([`super::lookahead`]).
    pub inside: Option<LexId>,
    /// The set of the last character, by its number in the grammar's, where its lookbehinds ask for it ([`super::trailing_context`]).
    pub last_char_set: u8,
    /// What may follow the last lexeme, by its number, where not everything may ([`super::split_terminals`]).
    pub following: u8,
    /// Whether the stack is known from its top on alone ([`crate::automaton::byte_automaton::Scanner::top`]).
    pub top: bool,
}

heap_size::plain!(Context, Blocks);

#[derive(Default)]
pub struct Scanned {
    pub(crate) chart: Chart,
    pub(crate) lexicon: Box<Lexicon>,
    contexts: Interner<Context>,
    pub(super) blocks: Interner<Blocks>,
    /// The lexical state before a lexeme, by context and whether it is read as a guarded one.
    begins: FxHashMap<(CtxId, bool), LexId>,
    by_places: FxHashMap<Alive, LexId>,
    after: FxHashMap<(CtxId, u32), Option<CtxId>>,
    tops: FxHashMap<CtxId, CtxId>,
    leaves: FxHashMap<(CtxId, OutcomeId), Option<CtxId>>,
    next_bytes: FxHashMap<CtxId, ByteSet>,
    pub(super) lexeme_ends: EscapeMemo,
    pub(super) lookahead: LookaheadMemo,
    pub(super) separation: SeparationMemo,
    pub(super) trailing: TrailingContexts,
    /// What may begin, by the LR(0) core of the context's set, whether a bracket is open, and what stands before.
    by_core: FxHashMap<(u32, bool, u8, u8), Alive>,
    by_context: FxHashMap<CtxId, Alive>,
    pub(super) start: Option<Pos>,
    pub(super) ignored: Vec<u32>,
    pub(super) literal_runs: Vec<LiteralRun>,
    /// Terminals that are constraints of their own: what they begin with, and a short text of each.
    pub(crate) parts: FxHashMap<u32, Opening>,
    /// Places of a tuple: the terminals, the empty text, the widths of line breaks, literals in a row.
    pub(super) places: usize,
    /// The first place of literals in a row, and of joints.
    pub(super) first_literal_run: usize,
    pub(super) first_joint: usize,
    pub(super) joints: Joints,
}

/// How a terminal that is a constraint of its own begins.
pub(crate) struct Opening {
    /// Bytes that it may begin with; a superset.
    pub first: ByteSet,
    /// It may begin with a special token.
    pub token: bool,
    /// A short text of it, where it has one.
    pub word: Option<Vec<Piece>>,
}

impl Scanned {
    pub fn new(grammar: Grammar, mut lexicon: Box<Lexicon>) -> Result<Self> {
        let terminals = grammar.terminals.len();
        let rows = rows(&grammar, &mut lexicon.terms);
        let widths = if grammar.layout.is_some() { WIDEST as usize + 1 } else { 0 };
        let first_literal_run = terminals + 1 + widths;
        let first_joint = first_literal_run + rows.len();
        let places = first_joint + if grammar.ambiguous { joints::MOST } else { 0 };
        let ignored = grammar.terminals.iter().enumerate().filter(|(_, t)| t.ignored && t.form_of.is_none());
        let ignored = ignored.map(|(t, _)| t as u32).collect();
        let mut this = Scanned {
            chart: Chart::new(grammar),
            lexicon,
            ignored,
            literal_runs: rows,
            places,
            first_literal_run,
            first_joint,
            ..Scanned::default()
        };
        this.blocks.intern(Blocks::outermost());
        Ok(this)
    }

    pub(super) fn nothing_read(&self) -> u32 {
        self.chart.grammar.terminals.len() as u32
    }

    /// The row that a place stands for.
    fn literal_run(&self, place: u32) -> Option<&LiteralRun> {
        (place as usize).checked_sub(self.first_literal_run).and_then(|i| self.literal_runs.get(i))
    }

    pub(crate) fn context(&self, ctx: CtxId) -> Context {
        self.contexts[ctx.0 as usize]
    }

    pub(super) fn intern(&mut self, context: Context) -> CtxId {
        CtxId(self.contexts.intern(context))
    }

    /// The lexical state before the next lexeme; `DEAD` when there can be none.
    pub(crate) fn begin(&mut self, ctx: CtxId) -> LexId {
        if self.guard(ctx).is_none() {
            return self.begin_unguarded(ctx);
        }
        memo!(self.begins, (ctx, true), {
            let places = self.readable(ctx);
            self.tuple_state(&places)
        })
    }

    pub(super) fn tuple_state(&mut self, places: &Alive) -> LexId {
        memo!(self.by_places, places, places.clone(), {
            let last = places.iter().map(|p| p.0 as usize + 1).max().unwrap_or(0);
            let mut terms = vec![Terms::EMPTY; self.places.max(last)];
            for &(place, term) in places.iter() {
                terms[place as usize] = term;
            }
            let tuple = self.lexicon.terms.tuple(&terms);
            self.lexicon.at(Spelling::Raw, tuple)
        })
    }

    /// The same where nothing is guarded.
    pub(super) fn begin_unguarded(&mut self, ctx: CtxId) -> LexId {
        memo!(self.begins, (ctx, false), {
            let places = self.readable_unguarded(ctx);
            self.tuple_state(&places)
        })
    }

    /// What the next lexeme may be: places of the tuple and their languages.
    pub(super) fn readable(&mut self, ctx: CtxId) -> Alive {
        let Some(lex) = self.guard(ctx) else { return self.readable_unguarded(ctx) };
        if let Some(known) = self.by_context.get(&ctx).filter(|_| self.lookahead.targets.contains_key(&ctx)) {
            return known.clone();
        }
        let places = self.list_guarded(ctx, lex);
        self.by_context.insert(ctx, places.clone());
        places
    }

    pub(super) fn readable_unguarded(&mut self, ctx: CtxId) -> Alive {
        let context = self.context(ctx);
        let inside = self.blocks[context.blocks as usize].brackets > 0;
        // widths of line breaks and literals in a row depend on more than what the set predicts
        let first = self.is_first(&context);
        let own =
            (self.chart.grammar.layout.is_some() && !inside) || first || self.literal_run_begins(context.set);
        let key = (self.chart.core_id(context.set), inside, context.last_char_set, context.following);
        let known = if own { self.by_context.get(&ctx) } else { self.by_core.get(&key) };
        if let Some(known) = known {
            return known.clone();
        }
        let places: Alive = self.list_readable(context).into();
        if own {
            self.by_context.insert(ctx, places.clone());
        } else {
            self.by_core.insert(key, places.clone());
        }
        places
    }

    fn list_readable(&mut self, context: Context) -> Vec<(u32, TermId)> {
        let lr0 = self.chart.lr0(context.set).clone();
        let nowhere = self.is_first(&context) || self.chart.grammar.ambiguous && lr0.terminals.is_empty();
        let ignored: &[u32] = if nowhere { &[] } else { &self.ignored };
        let mut all: Vec<u32> = lr0.terminals.iter().chain(ignored).copied().collect();
        if let Some(layout) = &self.chart.grammar.layout {
            let inside = self.blocks[context.blocks as usize].brackets > 0;
            // a bracket that closes none leads nowhere
            all.retain(|&t| t != layout.newline && (inside || !layout.close.contains(&t)));
            if inside {
                all.push(layout.newline);
            }
        }
        crate::lists::sort_unique(&mut all);
        let mut out: Vec<(u32, TermId)> = Vec::with_capacity(all.len());
        for &terminal in &all {
            out.extend(self.split_among(terminal, &all, context.last_char_set));
        }
        for i in 0..self.literal_runs.len() {
            let LiteralRun { longer, literals, word } = &self.literal_runs[i];
            if lr0.terminals.contains(longer) && lr0.terminals.contains(&literals[0]) {
                let (literals, word) = (literals.clone(), *word);
                let end = literals.iter().try_fold(context.set, |set, &t| self.chart.step(set, t));
                if end.is_some() {
                    out.push(((self.first_literal_run + i) as u32, word));
                }
            }
        }
        for width in self.widths(context) {
            let layout = self.chart.grammar.layout.as_mut().expect("it has widths");
            let term = layout.line_break(&mut self.lexicon.terms, width);
            out.push((self.nothing_read() + 1 + width as u32, term));
        }
        let out = self.allowed_after(out, context.following);
        match self.chart.grammar.ambiguous {
            true => self.with_joints(out),
            false => out,
        }
    }

    /// Whether literals may come at a set that together begin a longer one.
    fn literal_run_begins(&mut self, set: ItemSetId) -> bool {
        let lr0 = self.chart.lr0(set);
        let comes = |t: &u32| lr0.terminals.binary_search(t).is_ok();
        self.literal_runs.iter().any(|row| comes(&row.longer) && comes(&row.literals[0]))
    }

    /// What [`crate::automaton::byte_automaton::Scanner::top`] says.
    pub(super) fn top(&mut self, ctx: CtxId) -> CtxId {
        memo!(self.tops, ctx, {
            let context = self.context(ctx);
            let grammar = &self.chart.grammar;
            let more = grammar.layout.is_some() || grammar.ambiguous || context.inside.is_some();
            if more || !self.separable() || self.is_first(&context) || self.literal_run_begins(context.set) {
                return ctx;
            }
            let set = self.chart.top(context.set);
            self.intern(Context { set, top: true, ..context })
        })
    }

    /// Whether nothing that is ignored may stand at a context.
    fn is_first(&mut self, context: &Context) -> bool {
        self.chart.grammar.starts_at_once && context.set == self.chart.start()
    }

    /// The context after a lexeme, by its place in the tuple.
    pub(crate) fn after(&mut self, ctx: CtxId, place: u32) -> Option<CtxId> {
        memo!(self.after, (ctx, place), self.follow(ctx, place))
    }

    fn follow(&mut self, ctx: CtxId, place: u32) -> Option<CtxId> {
        if place == self.nothing_read() {
            return Some(ctx);
        }
        if place >= self.places as u32 {
            return self.after_code_point(ctx, place);
        }
        let context = self.context(ctx);
        if context.inside.is_some() {
            let outside = self.outside(ctx);
            return self.after(outside, place);
        }
        if let Some(members) = self.joint(place).map(<[u32]>::to_vec) {
            let next = self.after_joint(context, &members)?;
            return self.live_context(next);
        }
        if let Some(literals) = self.literal_run(place).map(|r| r.literals.clone()) {
            return literals.into_iter().try_fold(ctx, |ctx, t| self.after(ctx, t));
        }
        if place > self.nothing_read() {
            let next = self.after_line_break(context, (place - self.nothing_read() - 1) as u16)?;
            return Some(self.intern(next));
        }
        let entry = &self.chart.grammar.terminals[place as usize];
        let (following, ignored, place) = (entry.following, entry.ignored, self.terminal_of(place));
        let stays = Context { following, ..context };
        let mut blocks = context.blocks;
        if let Some(layout) = &self.chart.grammar.layout {
            if place == layout.newline {
                return Some(self.intern(stays));
            }
            let mut counted = self.blocks[blocks as usize].clone();
            if layout.open.contains(&place) {
                counted.brackets += 1;
            } else if layout.close.contains(&place) {
                counted.brackets = counted.brackets.checked_sub(1)?;
            }
            blocks = self.blocks.intern(counted);
        }
        if ignored {
            return Some(self.intern(stays));
        }
        let set = self.chart.step(context.set, place)?;
        // literals in a row are found by steps, which a top may not know
        if set == ItemSetId::BELOW || context.top && self.literal_run_begins(set) {
            return Some(CtxId::BELOW);
        }
        self.live_context(Context { set, blocks, inside: None, following, ..context })
    }

    /// A context, where a text can go on or end there.
    fn live_context(&mut self, next: Context) -> Option<CtxId> {
        let next = self.intern(next);
        let goes_on = !self.readable_unguarded(next).is_empty() || self.parts_at(next).next().is_some();
        (goes_on || self.ends(self.context(next))).then_some(next)
    }

    /// Of places that end together the least one wins.
    pub(super) fn rank(&self, place: u32) -> (u32, u32) {
        let grammar = &self.chart.grammar;
        if let Some(members) = self.joint(place) {
            return (1, u32::MAX - members.len() as u32);
        }
        let rank = match place.cmp(&self.nothing_read()) {
            _ if self.literal_run(place).is_some() => u32::MAX - 1,
            std::cmp::Ordering::Less if grammar.ambiguous && grammar.terminals[place as usize].ignored => 0,
            std::cmp::Ordering::Less => grammar.terminals[place as usize].rank.saturating_add(2),
            std::cmp::Ordering::Equal => u32::MAX,
            std::cmp::Ordering::Greater => {
                grammar.layout.as_ref().map_or(0, |l| grammar.terminals[l.newline as usize].rank)
            }
        };
        (rank, place)
    }

    /// The place of the terminal that the lexer chooses.
    pub(crate) fn chosen_terminal(&self, outcome: OutcomeId) -> Option<u32> {
        if self.lexicon.is_behind(outcome) {
            return None;
        }
        self.lexicon.outcome_list(outcome).iter().copied().min_by_key(|&p| self.rank(p))
    }

    /// The context after the lexeme that ends with this outcome.
    pub(crate) fn after_outcome(&mut self, ctx: CtxId, outcome: OutcomeId) -> Option<CtxId> {
        memo!(
            self.leaves,
            (ctx, outcome),
            self.chosen_terminal(outcome).and_then(|place| self.after(ctx, place))
        )
    }

    /// The bytes that may follow the lexeme that ends with this outcome; a superset.
    pub(crate) fn bytes_after_outcome(&mut self, ctx: CtxId, outcome: OutcomeId) -> ByteSet {
        if self.lexicon.is_behind(outcome) {
            return ByteSet::CONTINUATION;
        }
        self.after_outcome(ctx, outcome).map_or(ByteSet::default(), |next| self.next_bytes(next))
    }

    /// Bytes that may come next between lexemes, or inside a guarded one; a superset.
    pub(super) fn next_bytes(&mut self, ctx: CtxId) -> ByteSet {
        memo!(self.next_bytes, ctx, {
            match self.context(ctx).inside {
                None => match self.begin_unguarded(ctx) {
                    Lexicon::DEAD => ByteSet::default(),
                    lex => self.lexicon.first_bytes(lex),
                },
                Some(lex) => {
                    let (outer, outcome) = (self.outside(ctx), self.lexicon.outcome(lex));
                    let mut bytes = self.bytes_after_outcome(outer, outcome);
                    if self.chart.grammar.looks_around {
                        for next in self.contexts_behind(outer, lex) {
                            bytes.add(&self.next_bytes(next));
                        }
                    }
                    bytes.add(&self.lexicon.first_bytes(lex));
                    bytes
                }
            }
        })
    }

    pub(crate) fn after_lexeme(&mut self, pos: Pos) -> Option<CtxId> {
        let outcome = self.lexicon.outcome(pos.lex);
        self.after_outcome(pos.ctx, outcome)
    }

    /// The terminals that may come at a context and are constraints of their own.
    pub(crate) fn parts_at(&mut self, ctx: CtxId) -> impl Iterator<Item = u32> + '_ {
        let lr0 = self.chart.lr0(self.contexts[ctx.0 as usize].set).clone();
        let terminals = &self.chart.grammar.terminals;
        let all: Vec<u32> = lr0.terminals.to_vec();
        all.into_iter().filter(|&t| terminals[t as usize].part.is_some())
    }

    /// The context before the first lexeme.
    pub(crate) fn start_context(&mut self) -> CtxId {
        let set = self.chart.start();
        self.intern(Context { set, blocks: 0, inside: None, last_char_set: 0, following: 0, top: false })
    }

    pub(super) fn is_start(&self, pos: Pos) -> bool {
        self.start == Some(pos)
    }

    /// Terminals that a tuple still holds.
    pub(super) fn places_of(&self, tuple: TermId) -> Vec<u32> {
        let Term::Tuple(terms) = self.lexicon.terms.get(tuple) else { return Vec::new() };
        (0u32..)
            .zip(terms.iter())
            .filter(|t| *t.1 != Terms::EMPTY && *t.1 != Terms::EPS)
            .map(|t| t.0)
            .collect()
    }

    pub(super) fn ignored_terms(&self) -> Vec<TermId> {
        self.ignored.iter().filter_map(|&t| self.chart.grammar.terminals[t as usize].term).collect()
    }

    /// Bytes of all tables.
    pub(super) fn memory_bytes(&mut self) -> usize {
        // lists of what may begin: a few dozen terminals each
        let lists = self.by_places.len() + self.by_core.len() + self.by_context.len();
        let known =
            heap_size::bytes!(self: begins, by_places, after, tops, leaves, next_bytes, by_core, by_context);
        let asked = heap_size::bytes!(self: contexts, blocks, lexeme_ends, lookahead, separation, trailing);
        known + asked + self.blocks.len() * 64 + lists * 256 + self.chart.bytes() + self.lexicon.bytes()
    }
}
