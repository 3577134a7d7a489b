//! Rows of many automata in one call: their masks, and what else a decoding loop needs of each state.
//!
//! The threads take rows one by one, so that a row that has to be built delays no other.
//! Invariant: an error belongs to its row; the other rows are as if it were not there.
//! Complexity: a known row costs its copy; no thread is started but those of the pool, once per process.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::automaton::{TokenAutomaton, FAR};
use super::state::State;
use crate::error::Result;
use crate::process::Process;
use crate::vocab::TokenId;
use crate::work;

/// One row: a state, and where its mask goes.
pub struct Row<'a> {
    /// Whose mask it is.
    pub automaton: &'a TokenAutomaton,
    /// A state of the automaton.
    pub state: &'a State,
    /// Tokens that are left; `None`: without a limit.
    pub budget: Option<u32>,
    /// The words of the mask, [`crate::Vocabulary::mask_words`].
    pub out: &'a mut [u32],
    /// The other results, or the error.
    pub answer: Result<Answer>,
}

/// Results for a state beside its mask.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Whether the text may end here.
    pub accepting: bool,
    /// Whether a token that ends the text was taken.
    pub finished: bool,
    /// Tokens to an accepting state, if requested; [`super::automaton::FAR`]: none is known.
    pub distance: u32,
    /// The bytes that every continuation begins with, if requested.
    pub forced: Vec<u8>,
}

/// What to compute for each state beside its mask and whether the text may end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Tokens to an accepting state.
    pub distance: bool,
    /// The bytes that every continuation begins with.
    pub forced: bool,
}

impl Row<'_> {
    pub(super) fn fill(&mut self, asked: Asked) {
        self.answer = self.ask(asked);
        if self.answer.is_err() {
            self.out.fill(0);
        }
    }

    fn ask(&mut self, asked: Asked) -> Result<Answer> {
        let (automaton, state) = (self.automaton, self.state);
        automaton.check_state(state)?;
        automaton.vocabulary().check_words(self.out.len(), 1)?;
        match (state.known_mask_within(self.budget), self.budget) {
            (Some(mask), _) => mask.write(self.out),
            (None, None) => automaton.mask(state)?.write(self.out),
            (None, Some(budget)) => self.out.copy_from_slice(&automaton.mask_within(state, budget)?),
        }
        Ok(Answer {
            accepting: automaton.accepting(state)?,
            finished: automaton.is_finished(state),
            distance: match asked.distance {
                true => automaton.distance(state, self.budget.unwrap_or(FAR))?,
                false => 0,
            },
            forced: if asked.forced { automaton.forced_bytes(state)? } else { Vec::new() },
        })
    }

    fn is_known(&self) -> bool {
        self.state.known_mask_within(self.budget).is_some()
    }
}

/// Fills rows, on so many threads where some have to be built.
///
/// ```
/// use std::sync::Arc;
/// use tokenform_core::batch::{fill, Asked};
/// use tokenform_core::{Grammar, Kind, Limits, Matcher, Vocabulary};
///
/// let tokens = (0..=255u8).map(|b| Box::from([b])).chain([Box::from(*b"</s>")]).collect();
/// let vocabulary = Arc::new(Vocabulary::new(tokens, vec![256], &[256])?);
/// let automaton = Grammar::choice(["yes", "no"])?.compile(vocabulary.clone(), Limits::default())?;
/// let matchers = [Matcher::new(automaton.clone(), None)?, Matcher::new(automaton, Some(3))?];
/// let mut masks = vec![0; 2 * vocabulary.mask_words()];
/// let places = matchers.iter().zip(masks.chunks_mut(vocabulary.mask_words()));
/// let mut rows: Vec<_> = places.map(|(matcher, out)| matcher.row(out)).collect();
/// fill(&mut rows, Asked::default(), 2);
/// assert!(rows.iter().all(|row| row.answer.is_ok()));
/// // a row of too few words is an error of its own
/// let mut words = [0, 0];
/// let mut short = [matchers[0].row(&mut words)];
/// fill(&mut short, Asked::default(), 1);
/// assert_eq!(short[0].answer.as_ref().err().map(|e| e.kind), Some(Kind::OptionError));
/// # Ok::<(), tokenform_core::Error>(())
/// ```
///
/// What goes wrong in a row is its `answer`, and its words are zeros: also where they are not those of a mask
/// ([`Kind::OptionError`](crate::Kind)) or the state is another automaton's ([`Kind::InvalidState`](crate::Kind)).
pub fn fill(rows: &mut [Row<'_>], asked: Asked, threads: usize) {
    let new = rows.iter().filter(|row| !row.is_known()).count();
    spread(rows, threads.min(new.max(1)), |row| row.fill(asked));
}

/// One token of one sequence.
pub struct Step<'a> {
    /// Whose token it is.
    pub automaton: &'a TokenAutomaton,
    /// A state of the automaton.
    pub state: &'a State,
    /// What comes next.
    pub token: TokenId,
    /// The state after it, once it was taken.
    pub next: Option<Result<State>>,
}

/// Takes a token in each row.
pub fn advance(steps: &mut [Step<'_>], threads: usize) {
    let new = steps
        .iter()
        .filter(|step| step.state.known_next(step.automaton.vocabulary(), step.token).is_none())
        .count();
    spread(steps, threads.min(new.max(1)), |step| {
        step.next = Some(step.automaton.advance(step.state, step.token));
    });
}

/// How long a thread that has done its part waits for the others before it checks for an interrupt.
const PATIENCE: Duration = Duration::from_millis(20);

/// Calls `work` with each of the things, on so many threads, this one included.
pub fn spread<T: Send>(things: &mut [T], threads: usize, work: impl Fn(&mut T) + Sync) {
    let ending = Arc::default();
    let threads = threads.min(things.len());
    let left = Mutex::new(things.iter_mut());
    let one_by_one = || {
        work::together(&ending, || loop {
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
            match next {
                Some(thing) => work(thing),
                None => return,
            }
        })
    };
    let process = Process::current();
    let Some(pool) = (threads > 1).then(|| process.pool()).flatten() else { return one_by_one() };
    let others = (threads - 1).min(pool.current_num_threads());
    let (running, done) = (Mutex::new(others), Condvar::new());
    pool.in_place_scope(|scope| {
        for _ in 0..others {
            scope.spawn(|_| {
                one_by_one();
                *running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
                done.notify_one();
            });
        }
        one_by_one();
        // signals come to this thread alone, so it keeps checking for them
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running > 0 {
            running = done.wait_timeout(running, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
            work::together(&ending, work::interrupted);
        }
    });
}
