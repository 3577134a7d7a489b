//! Rows of many automata in one call: masks written, and what else a decoding loop asks of each state.
//!
//! Rows are handed out one by one to the threads that fill them, so that a row that has to be built delays no other.
//! Invariant: an error belongs to its row; the others are as if it were not there.
//! Complexity: a row that is known costs its copy; no thread is started but the pool's own, once a process.

use std::sync::{Mutex, PoisonError};

use super::automaton::{TokenAutomaton, FAR};
use super::state::State;
use crate::error::Result;
use crate::process::Process;
use crate::vocab::TokenId;

/// One row: a state, and where its mask goes.
pub struct Row<'a> {
    pub automaton: &'a TokenAutomaton,
    pub state: &'a State,
    /// Tokens that are left; `None`: as many as there may be.
    pub budget: Option<u32>,
    pub out: &'a mut [u32],
    pub answer: Result<Answer>,
}

/// What is asked of a state beside its mask.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer {
    pub accepting: bool,
    pub finished: bool,
    /// Tokens to an accepted end where that was asked for; [`super::automaton::FAR`]: none is known.
    pub distance: u32,
}

impl Row<'_> {
    pub(super) fn fill(&mut self, distances: bool) {
        self.answer = self.ask(distances);
        if self.answer.is_err() {
            self.out.fill(0);
        }
    }

    fn ask(&mut self, distances: bool) -> Result<Answer> {
        let (automaton, state) = (self.automaton, self.state);
        match self.budget {
            None => automaton.mask(state)?.write(self.out),
            Some(budget) => self.out.copy_from_slice(&automaton.mask_within(state, budget)?),
        }
        Ok(Answer {
            accepting: automaton.accepting(state)?,
            finished: automaton.is_finished(state),
            distance: if distances { automaton.distance(state, self.budget.unwrap_or(FAR))? } else { 0 },
        })
    }

    fn is_known(&self) -> bool {
        self.budget.is_none() && self.state.known_mask().is_some()
    }
}

/// Fills rows, on so many threads where some have to be built.
pub fn fill(rows: &mut [Row<'_>], distances: bool, threads: usize) {
    let new = rows.iter().filter(|row| !row.is_known()).count();
    spread(rows, threads.min(new.max(1)), |row| row.fill(distances));
}

/// One token of one sequence.
pub struct Step<'a> {
    pub automaton: &'a TokenAutomaton,
    pub state: &'a State,
    pub token: TokenId,
    pub next: Option<Result<State>>,
}

/// Takes a token in each row.
pub fn advance(steps: &mut [Step<'_>], threads: usize) {
    let new = steps.iter().filter(|step| step.state.known_edge(step.token).is_none()).count();
    spread(steps, threads.min(new.max(1)), |step| {
        step.next = Some(step.automaton.advance(step.state, step.token));
    });
}

/// Does something with each of some things, on so many threads, this one among them.
pub fn spread<T: Send>(things: &mut [T], threads: usize, work: impl Fn(&mut T) + Sync) {
    if threads < 2 || things.len() < 2 {
        return things.iter_mut().for_each(work);
    }
    let process = Process::current();
    let Some(pool) = process.pool() else { return things.iter_mut().for_each(work) };
    let threads = threads.min(things.len()).min(pool.current_num_threads() + 1);
    let left = Mutex::new(things.iter_mut());
    let one_by_one = || loop {
        let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
        match next {
            Some(thing) => work(thing),
            None => return,
        }
    };
    pool.in_place_scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|_| one_by_one());
        }
        one_by_one();
    });
}
