//! Terminals that end only before some characters, split by the set of characters that may follow.
//!
//! `"0" /(?![1-9])/ | /[1-9]\d*/` is split into two: words that end anywhere, and words that end before no digit from 1 to 9.
//! Each of these forms is a terminal of the lexer.  Reading one puts the next lexeme, or the end of the text, under a
//! condition, which is part of the context.  So masks and steps are those of any grammar.
//! Invariant: a text is read as by the languages of [`super::trailing_context`].  Where the next or the last character
//! decides as which of several terminals a lexeme ends, terminals are not split, and contexts are guarded instead.
//! Complexity: the states of each such terminal, and its forms beside all terminals, once per grammar.
//! Memory: the tables of the forms' states.

use std::ops::Range;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::context_dependence::{begins, paired_ranges, unreadable_chars, Ranges};
use super::grammar::Terminal;
use super::scanned::Scanned;
use crate::automaton::byte_automaton::CtxId;
use crate::lexical::spell::ByteSet;
use crate::lexical::table::State;
use crate::lexical::term::{intersect_ranges, MAX_CP};
use crate::lexical::{TermId, Terms};
use crate::regex::context::END;
use crate::regex::CharSet;

/// Forms of one terminal, and sets of a grammar, beyond which there are none.
const FORMS: usize = 8;
const SETS: usize = 64;
/// States of a terminal that are looked at.
const STATES: usize = 4096;

/// What may follow a lexeme.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FollowSet {
    /// Characters that may not.
    refused: CharSet,
    /// Whether the text may end there.
    pub at_end: bool,
}

/// The forms of a terminal.
pub struct SplitTerminal {
    /// Its words with what may follow them ([`crate::regex::context`]).
    pub around: TermId,
    /// Their places among the terminals.
    pub places: Range<u32>,
}

/// The words of a terminal by what may follow; `None`: anything.
type WordsByFollow = (TermId, Option<FollowSet>);

/// Gives each terminal that looks at what follows it forms, and returns what may follow; `None`, and nothing is changed,
/// where that would not do. `first`: the characters that terminals begin with.
pub fn split_terminals(
    terms: &mut Terms,
    terminals: &mut Vec<Terminal>,
    first: &Ranges,
) -> Option<Box<[FollowSet]>> {
    let mut found: Vec<(usize, TermId, Vec<WordsByFollow>)> = Vec::new();
    for (at, terminal) in terminals.iter().enumerate() {
        match terminal.around.as_deref() {
            Some(&[around]) => found.push((at, around, words_of(terms, around, first)?)),
            Some(_) => return None,
            None => {}
        }
    }
    for (at, _, words) in &found {
        for (word, _) in words.iter().filter(|w| w.1.is_some()) {
            let worse = |t: &&Terminal| t.rank > terminals[*at].rank;
            let alone = terminals.iter().filter(worse).filter_map(|t| t.term);
            let formed = found.iter().filter(|f| terminals[f.0].rank > terminals[*at].rank);
            let others: Vec<TermId> = alone.chain(formed.flat_map(|f| f.2.iter().map(|w| w.0))).collect();
            if others.into_iter().any(|other| {
                let both = terms.and(&[*word, other]);
                terms.live(both)
            }) {
                return None;
            }
        }
    }
    let mut sets: IndexSet<FollowSet, FxBuildHasher> = IndexSet::default();
    sets.extend(found.iter().flat_map(|f| f.2.iter().filter_map(|w| w.1.clone())));
    if sets.len() > SETS {
        return None;
    }
    for (at, around, words) in found {
        let from = terminals.len() as u32;
        for (term, following) in words {
            let base = &terminals[at];
            let form = Terminal {
                name: base.name.clone(),
                term: Some(term),
                rank: base.rank,
                ignored: base.ignored,
                cost: base.cost,
                form_of: Some(at as u32),
                following: following.map_or(0, |set| sets.insert_full(set).0 as u8 + 1),
                ..Terminal::default()
            };
            terminals.push(form);
        }
        terminals[at].around = None;
        terminals[at].forms = Some(SplitTerminal { around, places: from..terminals.len() as u32 });
    }
    Some(sets.into_iter().collect())
}

/// The words of a terminal, by what may follow.
fn words_of(terms: &mut Terms, around: TermId, first: &Ranges) -> Option<Vec<WordsByFollow>> {
    let mut seen: IndexSet<TermId, FxBuildHasher> = IndexSet::from_iter([around]);
    let mut states: Vec<State> = Vec::new();
    let mut ends: FxHashMap<u32, Option<FollowSet>> = FxHashMap::default();
    while let Some(&state) = seen.get_index(states.len()) {
        if let Some(following) = follow_set_of(terms, state, first) {
            ends.insert(states.len() as u32, following);
        }
        let (mut runs, mut from) = (Vec::new(), 0);
        for run in terms.delta(state).iter() {
            // behind the mark stands what follows
            if from < END {
                let to = (run.to != Terms::EMPTY).then(|| seen.insert_full(run.to).0 as u32);
                runs.push((run.end.min(END - 1), to));
            }
            from = run.end.saturating_add(1);
        }
        runs.push((MAX_CP, None));
        states.push(State { ends: false, runs });
        if seen.len() > STATES {
            return None;
        }
    }
    let mut sets: IndexSet<Option<FollowSet>, FxBuildHasher> = IndexSet::default();
    (0..states.len() as u32).filter_map(|state| ends.get(&state)).for_each(|set| {
        sets.insert(set.clone());
    });
    if sets.len() > FORMS {
        return None;
    }
    let words = sets.into_iter().map(|set| {
        let with_ends = (0u32..).zip(&states).map(|(at, state)| {
            let ends = ends.get(&at) == Some(&set);
            State { ends, runs: state.runs.clone() }
        });
        let term = terms.table(with_ends.collect());
        (term, set)
    });
    Some(words.collect())
}

/// What may follow a word that leads to a state: `None` where it is none, whatever follows.
///
/// What the terminal reads on with, or no terminal begins with, makes no difference.
fn follow_set_of(terms: &mut Terms, state: TermId, first: &Ranges) -> Option<Option<FollowSet>> {
    let after = terms.derive(state, END);
    if after == Terms::EMPTY {
        return None;
    }
    let follow = paired_ranges(terms, after, Terms::EMPTY).into_iter().filter(|f| f.1 != Terms::EMPTY);
    let follow = CharSet(follow.map(|f| f.0).collect());
    let open = CharSet(intersect_ranges(&unreadable_chars(terms, state), first));
    let refused = open.minus(&follow);
    let at_end = terms.nullable(after);
    match (refused.is_empty(), at_end) {
        (true, true) => Some(None),
        (false, false) if refused == open => None,
        _ => Some(Some(FollowSet { refused, at_end })),
    }
}

impl Scanned {
    /// The languages of a terminal where all of these may be read, each with its place.
    pub(super) fn split_among(
        &mut self,
        terminal: u32,
        all: &[u32],
        last_char_set: u8,
    ) -> Vec<(u32, TermId)> {
        let Some(forms) = &self.chart.grammar.terminals[terminal as usize].forms else {
            return self
                .term_among(terminal, all, last_char_set)
                .map(|term| (terminal, term))
                .into_iter()
                .collect();
        };
        let (around, places) = (forms.around, forms.places.clone());
        if all.iter().any(|&other| self.is_covered(terminal, around, other)) {
            let alone = self.chart.grammar.terminals[terminal as usize].term;
            return alone.map(|term| (terminal, term)).into_iter().collect();
        }
        let terminals = &self.chart.grammar.terminals;
        places.filter_map(|place| Some((place, terminals[place as usize].term?))).collect()
    }

    /// What of these may come behind a lexeme that some characters may not follow.
    pub(super) fn allowed_after(&mut self, places: Vec<(u32, TermId)>, following: u8) -> Vec<(u32, TermId)> {
        let Some(following) = self.follow_set(following) else { return places };
        let refused = following.refused.0.clone();
        let allowed = following.refused.negate().0;
        let terms = &mut self.lexicon.terms;
        let first = terms.class(&allowed);
        let allowed = terms.concat(first, Terms::ALL);
        let mut out = Vec::with_capacity(places.len());
        for (place, term) in places {
            let own = begins(terms, term);
            let term = match intersect_ranges(&own, &refused).is_empty() {
                true => term,
                false => {
                    let both = terms.and(&[term, allowed]);
                    terms.prune(both)
                }
            };
            if term != Terms::EMPTY {
                out.push((place, term));
            }
        }
        out
    }

    /// The languages that spell a terminal at a context, one of which may be that of a place of its own.
    pub(super) fn spelled_as(&self, ctx: CtxId, place: u32, term: TermId) -> Vec<TermId> {
        let Some(terminal) = self.chart.grammar.terminals.get(place as usize) else { return vec![term] };
        match &terminal.forms {
            Some(forms) => {
                let forms =
                    &self.chart.grammar.terminals[forms.places.start as usize..forms.places.end as usize];
                std::iter::once(term).chain(forms.iter().filter_map(|form| form.term)).collect()
            }
            None => vec![terminal.around_after(self.context(ctx).last_char_set).unwrap_or(term)],
        }
    }

    /// Those of some bytes that may follow a terminal.
    pub(super) fn bytes_allowed_after(&self, terminal: usize, bytes: &ByteSet) -> ByteSet {
        let following = self.follow_set(self.chart.grammar.terminals[terminal].following);
        let refused = following.map_or(&[][..], |following| &following.refused.0);
        let refuses = |byte: &u8| refused.iter().any(|r| (r.0..=r.1).contains(&u32::from(*byte)));
        ByteSet::of(&bytes.iter().filter(|byte| !refuses(byte)).collect::<Vec<u8>>())
    }

    /// What may follow, by its number in contexts.
    pub(super) fn follow_set(&self, number: u8) -> Option<&FollowSet> {
        self.chart.grammar.following.get(usize::from(number).checked_sub(1)?)
    }

    /// The terminal that a place of the tuple is a form of, or is.
    pub(super) fn terminal_of(&self, place: u32) -> u32 {
        let terminal = self.chart.grammar.terminals.get(place as usize);
        terminal.and_then(|t| t.form_of).unwrap_or(place)
    }
}
