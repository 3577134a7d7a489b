//! A language defined by the states of its automaton, as one term.
//!
//! For languages that are no expression over others: the words of a terminal before some characters, which
//! end in certain states ([`crate::cfg`]). A term is a state.
//! Invariant: every state can reach an accepting one; small tables are minimal.
//! Complexity: minimized by refining partitions (Moore 1956), up to [`SMALL`] states.
//! Memory: the states and their runs, as long as the arena.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::content::{key, Content};
use super::delta::Run;
use super::term::{Term, TermId, Terms};
pub use crate::regex::lang::{State, StateRuns};
use crate::{heap_size, work};

/// A table with more states is not minimized.
const SMALL: usize = 512;

/// A language by the numbered states of its automaton.
pub(super) trait Automaton: Send + Sync {
    /// Whether a word ends here.
    fn ends(&self, state: u32) -> bool;

    /// The fewest characters to an accepting state; `u32::MAX`: none is reachable.
    fn missing(&self, state: u32) -> u32 {
        !self.ends(state) as u32
    }

    /// Whether a word ends here and none goes on, as far as that is known without the runs.
    fn is_over(&self, _: u32) -> bool {
        false
    }

    fn runs(&mut self, state: u32) -> StateRuns;

    /// The key of the language, independent of ids; `None`: its states are numbered in the order of
    /// discovery.
    fn content(&self) -> Option<Content> {
        None
    }

    fn bytes(&self) -> usize;

    fn copied(&self) -> Box<dyn Automaton>;
}

impl Clone for Box<dyn Automaton> {
    fn clone(&self) -> Self {
        self.copied()
    }
}

/// The states of one language; the first is where words begin.
#[derive(Clone)]
struct Table {
    states: Vec<State>,
    /// The fewest characters from each state to an accepting one.
    missing: Vec<u32>,
    /// The key of the table.
    content: Content,
}

impl Automaton for Table {
    fn copied(&self) -> Box<dyn Automaton> {
        Box::new(self.clone())
    }

    fn ends(&self, state: u32) -> bool {
        self.states[state as usize].ends
    }

    fn missing(&self, state: u32) -> u32 {
        self.missing[state as usize]
    }

    fn is_over(&self, state: u32) -> bool {
        self.ends(state) && self.states[state as usize].runs.iter().all(|run| run.1.is_none())
    }

    fn runs(&mut self, state: u32) -> StateRuns {
        self.states[state as usize].runs.clone()
    }

    fn content(&self) -> Option<Content> {
        Some(self.content)
    }

    fn bytes(&self) -> usize {
        let runs: usize = self.states.iter().map(|state| heap_size::list(&state.runs)).sum();
        heap_size::bytes!(self: states, missing) + runs
    }
}

/// The fewest characters from each state to an accepting one; `u32::MAX`: none is reachable.
fn missing(states: &[State]) -> Vec<u32> {
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); states.len()];
    for (from, state) in (0u32..).zip(states) {
        for to in state.runs.iter().filter_map(|run| run.1) {
            if before[to as usize].last() != Some(&from) {
                before[to as usize].push(from);
            }
        }
    }
    let mut found = vec![u32::MAX; states.len()];
    let mut queue: VecDeque<u32> = (0u32..).zip(states).filter(|s| s.1.ends).map(|s| s.0).collect();
    queue.iter().for_each(|&end| found[end as usize] = 0);
    while let Some(to) = queue.pop_front() {
        for &from in &before[to as usize] {
            if found[from as usize] == u32::MAX {
                found[from as usize] = found[to as usize] + 1;
                queue.push_back(from);
            }
        }
    }
    found
}

/// The same language without dead states, and with equivalent states merged.
fn reduced(mut states: Vec<State>) -> Vec<State> {
    let missing = missing(&states);
    let mut blocks: Vec<u32> = states.iter().map(|state| state.ends as u32).collect();
    let mut count = 0;
    for state in &mut states {
        work::spend(1 + state.runs.len() as u64 / 8);
        for run in &mut state.runs {
            run.1 = run.1.filter(|&to| missing[to as usize] != u32::MAX);
        }
    }
    while states.len() <= SMALL {
        let mut known: FxHashMap<(u32, StateRuns), u32> = FxHashMap::default();
        let next: Vec<u32> = states
            .iter()
            .zip(&blocks)
            .map(|(state, &block)| {
                let key = (block, led_to(state, &blocks));
                let new = known.len() as u32;
                *known.entry(key).or_insert(new)
            })
            .collect();
        work::spend(states.iter().map(|state| 2 + state.runs.len() as u64 / 4).sum());
        blocks = next;
        if known.len() == count {
            break;
        }
        count = known.len();
    }
    if states.len() > SMALL {
        blocks = (0..states.len() as u32).collect();
    }
    let mut out: Vec<State> = Vec::new();
    for (state, &block) in states.iter().zip(&blocks) {
        if block as usize == out.len() {
            out.push(State { ends: state.ends, runs: led_to(state, &blocks) });
        }
    }
    out
}

/// The runs of a state, by the blocks that they lead to.
fn led_to(state: &State, blocks: &[u32]) -> StateRuns {
    let mut out: StateRuns = Vec::with_capacity(state.runs.len());
    for &(end, to) in &state.runs {
        let to = to.map(|to| blocks[to as usize]);
        match out.last_mut() {
            Some(last) if last.1 == to => last.0 = end,
            _ => out.push((end, to)),
        }
    }
    out
}

impl Terms {
    /// The language of some states; words begin at the first.
    pub fn table(&mut self, states: Vec<State>) -> TermId {
        let states = reduced(states);
        let missing = missing(&states);
        if missing.first().is_none_or(|&most| most == u32::MAX) {
            return Self::EMPTY;
        }
        let content = key(&states);
        self.automaton(Table { states, missing, content })
    }

    /// The language of an automaton from its first state on.
    pub(super) fn automaton(&mut self, automaton: impl Automaton + 'static) -> TermId {
        self.automata.push(Box::new(automaton));
        self.state(self.automata.len() as u32 - 1, 0)
    }

    fn state(&mut self, table: u32, state: u32) -> TermId {
        match self.automata[table as usize].is_over(state) {
            true => Self::EPS,
            false => self.intern(Term::State(table, state)),
        }
    }

    pub(super) fn state_runs(&mut self, table: u32, state: u32) -> Vec<Run> {
        let runs = self.automata[table as usize].runs(state);
        work::spend(1 + runs.len() as u64 / 4);
        runs.into_iter()
            .map(|(end, to)| Run { end, to: to.map_or(Self::EMPTY, |to| self.state(table, to)) })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of `a` and `b` spell binary numbers; the states are their remainders, each twice.
    #[test]
    fn a_word_is_read_from_state_to_state() {
        for modulus in 1u32..7 {
            let mut terms = Terms::default();
            let states = (0..2 * modulus).map(|at| {
                let to = |digit: u32| Some((at * 2 + digit) % modulus + modulus * digit);
                let runs = vec![(96, None), (97, to(0)), (98, to(1)), (super::super::term::MAX_CP, None)];
                State { ends: at % modulus == 0, runs }
            });
            let term = terms.table(states.collect());
            for length in 0..8u32 {
                for word in 0..1 << length {
                    let digits = (0..length).rev().map(|i| word >> i & 1);
                    let text: String = digits.clone().map(|d| if d == 1 { 'b' } else { 'a' }).collect();
                    assert_eq!(terms.accepts(term, &text), word % modulus == 0, "{modulus} {text}");
                }
            }
            let states = terms.terms.iter().filter(|term| matches!(term, Term::State(..))).count();
            assert!(states <= modulus as usize);
            assert_eq!(terms.least_length(term), Some(0));
        }
    }

    #[test]
    fn what_leads_to_no_end_is_left_out() {
        let mut terms = Terms::default();
        let last = super::super::term::MAX_CP;
        let on = |ends, to| State { ends, runs: vec![(97, to), (last, None)] };
        assert_eq!(terms.table(vec![on(false, Some(1)), on(false, Some(0))]), Terms::EMPTY);
        assert_eq!(terms.table(vec![on(true, Some(1)), on(false, None)]), Terms::EPS);
        let term = terms.table(vec![on(false, Some(1)), on(true, Some(2)), on(false, None)]);
        assert!(terms.accepts(term, "a") && !terms.accepts(term, "aa") && !terms.accepts(term, ""));
        assert_eq!(terms.derive(term, 'a' as u32), Terms::EPS);
    }
}
