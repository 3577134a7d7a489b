//! A context-free grammar without a lexer: every segmentation of the text into terminals counts.
//!
//! A context is the item set that the text so far leads to (if it leads to one) and the terminals that have begun
//! and not ended: (set at their beginning, terminal, rest of its language).  A lexeme is one code point: the classes
//! of code points that lead to different contexts are told apart by the outcome.
//!
//! Complexity: a context that was met before is a lookup a code point; a new one costs its items.

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::chart::{Chart, ItemSetId};
use super::completion;
use super::grammar::Grammar;
use crate::automaton::byte_automaton::{ByteAutomaton, CtxId, Piece, Pos, Seen};
use crate::heap_size::{self, Interner};
use crate::lexical::spell::{ByteSet, OutcomeId};
use crate::lexical::{LexId, Lexicon, Spelling, Step, TermId, Terms};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Context {
    set: Option<ItemSetId>,
    begun: Box<[(ItemSetId, u32, TermId)]>,
}

/// How a context reads one code point.
#[derive(Clone)]
struct CharTransitions {
    lex: LexId,
    first: ByteSet,
    /// The context after each class, worked out when it is first asked for.
    after: Box<[Option<Option<CtxId>>]>,
    /// A code point of each class.
    samples: Box<[u32]>,
}

heap_size::owned!(Context, this => heap_size::slice(&this.begun));

pub struct Scannerless {
    chart: Chart,
    lexicon: Box<Lexicon>,
    contexts: Interner<Context>,
    transitions: FxHashMap<CtxId, CharTransitions>,
    start: Option<CtxId>,
}

impl Scannerless {
    pub fn new(grammar: Grammar, lexicon: Box<Lexicon>) -> Self {
        Scannerless {
            chart: Chart::new(grammar),
            lexicon,
            contexts: Interner::default(),
            transitions: FxHashMap::default(),
            start: None,
        }
    }

    fn intern(&mut self, context: Context) -> CtxId {
        CtxId(self.contexts.intern(context))
    }

    /// Everything that may be read from a context: the terminals that have begun, and those that begin here.
    fn threads(&mut self, ctx: CtxId) -> Vec<(ItemSetId, u32, TermId)> {
        let context = self.contexts[ctx.0 as usize].clone();
        let mut out = context.begun.to_vec();
        if let Some(set) = context.set {
            let lr0 = self.chart.lr0(set).clone();
            let terminals = &self.chart.grammar.terminals;
            out.extend(lr0.terminals.iter().filter_map(|&t| terminals[t as usize].term.map(|x| (set, t, x))));
            let ignored = (0..terminals.len() as u32).filter(|&t| terminals[t as usize].ignored);
            out.extend(ignored.filter_map(|t| terminals[t as usize].term.map(|x| (set, t, x))));
            crate::lists::sort_unique(&mut out);
        }
        out
    }

    fn transitions_at(&mut self, ctx: CtxId) -> &mut CharTransitions {
        if !self.transitions.contains_key(&ctx) {
            let transitions_at = self.find_transitions(ctx);
            self.transitions.insert(ctx, transitions_at);
        }
        self.transitions.get_mut(&ctx).expect("just made")
    }

    fn find_transitions(&mut self, ctx: CtxId) -> CharTransitions {
        let mut threads: Vec<TermId> = self.threads(ctx).iter().map(|t| t.2).collect();
        // one language at many places reads the same code points at each; contexts that differ by places share a tuple
        crate::lists::sort_unique(&mut threads);
        let terms = &mut self.lexicon.terms;
        let tuple = terms.tuple(&threads);
        let mut classes: indexmap::IndexMap<TermId, Vec<(u32, u32)>, FxBuildHasher> = Default::default();
        if !threads.is_empty() {
            let mut from = 0u32;
            for run in terms.delta(tuple).iter() {
                if run.to != Terms::EMPTY {
                    classes.entry(run.to).or_default().push((from, run.end));
                }
                from = run.end.saturating_add(1);
            }
        }
        let samples = classes.values().map(|ranges| ranges[0].0).collect();
        let places: Vec<TermId> = classes.values().map(|ranges| terms.class(ranges)).collect();
        let term = terms.tuple(&places);
        let lex = if places.is_empty() { Lexicon::DEAD } else { self.lexicon.at(Spelling::Raw, term) };
        let first = if lex == Lexicon::DEAD { ByteSet::default() } else { self.lexicon.first_bytes(lex) };
        CharTransitions { lex, first, after: vec![None; places.len()].into(), samples }
    }

    /// The context after a code point of a class.
    fn after(&mut self, ctx: CtxId, class: u32) -> Option<CtxId> {
        let transitions_at = self.transitions_at(ctx);
        if let Some(known) = transitions_at.after[class as usize] {
            return known;
        }
        let sample = transitions_at.samples[class as usize];
        let next = self.follow(ctx, sample);
        self.transitions_at(ctx).after[class as usize] = Some(next);
        next
    }

    fn follow(&mut self, ctx: CtxId, code_point: u32) -> Option<CtxId> {
        let mut begun = Vec::new();
        let mut ended: Vec<(ItemSetId, u32)> = Vec::new();
        for (set, terminal, term) in self.threads(ctx) {
            let rest = self.lexicon.terms.derive(term, code_point);
            if rest == Terms::EMPTY {
                continue;
            }
            if self.lexicon.terms.nullable(rest) {
                ended.push((set, terminal));
            }
            if rest != Terms::EPS {
                begun.push((set, terminal, rest));
            }
        }
        crate::lists::sort_unique(&mut ended);
        let set = self.chart.after(&ended);
        crate::lists::sort_unique(&mut begun);
        if set.is_none() && begun.is_empty() {
            return None;
        }
        Some(self.intern(Context { set, begun: begun.into() }))
    }

    fn after_outcome(&mut self, ctx: CtxId, outcome: OutcomeId) -> Option<CtxId> {
        if self.transitions_at(ctx).lex == Lexicon::DEAD {
            return None;
        }
        let class = *self.lexicon.outcome_list(outcome).first()?;
        self.after(ctx, class)
    }

    fn at_border(&mut self, pos: Pos) -> Option<CtxId> {
        let begin = self.transitions_at(pos.ctx).lex;
        if begin == pos.lex || begin == Lexicon::DEAD {
            return Some(pos.ctx);
        }
        let outcome = self.lexicon.outcome(pos.lex);
        self.after_outcome(pos.ctx, outcome)
    }
}

impl ByteAutomaton for Scannerless {
    fn lexicon(&mut self) -> &mut Lexicon {
        &mut self.lexicon
    }

    fn bytes(&mut self) -> usize {
        // a fan's lists: a few classes
        heap_size::bytes!(self: contexts, transitions)
            + self.transitions.len() * 256
            + self.chart.bytes()
            + self.lexicon.bytes()
    }

    fn start(&mut self) -> Option<Pos> {
        let set = self.chart.start();
        let ctx = self.intern(Context { set: Some(set), begun: Box::new([]) });
        self.start = Some(ctx);
        let lex = self.transitions_at(ctx).lex;
        if lex != Lexicon::DEAD {
            return Some(Pos { ctx, lex });
        }
        // nothing can be read: the empty text is all there is
        let lex = self.lexicon.at(Spelling::Raw, Terms::EPS);
        self.chart.accepts(set).then_some(Pos { ctx, lex })
    }

    fn leave(&mut self, ctx: CtxId, outcome: OutcomeId, _: &[u8], byte: u8) -> Option<Pos> {
        let ctx = self.after_outcome(ctx, outcome)?;
        let transitions_at = self.transitions_at(ctx);
        if !transitions_at.first.has(byte) {
            return None;
        }
        let lex = transitions_at.lex;
        match self.lexicon.step(lex, byte) {
            Step::Stay(lex) => Some(Pos { ctx, lex }),
            _ => None,
        }
    }

    fn leave_bytes(&mut self, ctx: CtxId, outcome: OutcomeId) -> ByteSet {
        match self.after_outcome(ctx, outcome) {
            Some(ctx) => self.transitions_at(ctx).first,
            None => ByteSet::default(),
        }
    }

    fn accepting(&mut self, pos: Pos, _: &[u8]) -> bool {
        let Some(ctx) = self.at_border(pos) else { return false };
        let set = self.contexts[ctx.0 as usize].set;
        set.is_some_and(|set| self.chart.accepts(set))
    }

    fn completion(&mut self, pos: Pos, _: &[u8], most: usize) -> Option<Vec<Piece>> {
        let mut out = Vec::new();
        let ctx = match self.at_border(pos) {
            Some(ctx) => ctx,
            None => {
                // finish the code point that was begun
                let (bytes, lex) = crate::lexical::shortest_lexeme(&mut self.lexicon, pos.lex, most)?;
                out.extend(bytes);
                self.at_border(Pos { lex, ..pos })?
            }
        };
        out.extend(self.shortest_end(ctx, most)?);
        Some(vec![Piece::Bytes(out)])
    }

    fn describe(&mut self, pos: Pos, _: Seen) -> (Vec<String>, Option<String>) {
        let Some(ctx) = self.at_border(pos) else { return (vec!["the rest of a character".into()], None) };
        let threads = self.threads(ctx);
        let mut read = threads;
        read.retain(|&(set, terminal, _)| self.chart.lr0(set).terminals.contains(&terminal));
        let mut left: Vec<(u32, Option<TermId>)> = read.into_iter().map(|t| (t.1, Some(t.2))).collect();
        crate::lists::sort_unique(&mut left);
        let ends = self.accepting(pos, &[]);
        (super::describe::in_words(&self.chart.grammar, &mut self.lexicon, &left, ends), None)
    }
}

impl Scannerless {
    /// The shortest of the ways: end a terminal that has begun, or begin none, and follow the plan from there.
    fn shortest_end(&mut self, ctx: CtxId, most: usize) -> Option<Vec<u8>> {
        let context = self.contexts[ctx.0 as usize].clone();
        let mut starts: Vec<(Vec<u8>, ItemSetId)> =
            context.set.map(|s| (Vec::new(), s)).into_iter().collect();
        for &(set, terminal, rest) in context.begun.iter() {
            let Some(word) = self.word(rest, most) else { continue };
            let ignored = self.chart.grammar.terminals[terminal as usize].ignored;
            let back = ignored.then_some(set);
            let sets = [back, self.chart.step(set, terminal)];
            starts.extend(sets.into_iter().flatten().map(|set| (word.clone(), set)));
        }
        let mut best: Option<Vec<u8>> = None;
        for (mut text, set) in starts {
            let Some(plan) = completion::plan(&mut self.chart, set, most) else { continue };
            for terminal in plan {
                let term = self.chart.grammar.terminals[terminal as usize].term?;
                text.extend(self.word(term, most)?);
            }
            if best.as_ref().is_none_or(|b: &Vec<u8>| text.len() < b.len()) {
                best = Some(text);
            }
        }
        best
    }

    fn word(&mut self, term: TermId, most: usize) -> Option<Vec<u8>> {
        let lex = self.lexicon.at(Spelling::Raw, term);
        crate::lexical::shortest_lexeme(&mut self.lexicon, lex, most).map(|w| w.0)
    }
}
