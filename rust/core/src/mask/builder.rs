//! The builder of an epoch: one engine, and the records of the states that it has reached.
//!
//! Invariant: a state of any epoch of the same automaton can be made again here. Its record and those before
//! it name the tokens that lead to it; the builder follows these from the nearest state that it knows. That
//! costs the length of the text once per epoch; the memory counts as needed by a live text (`moved`).
//!
//! Masks may be made ahead, where a host has time ([`Builder::prepare`]): for the states along a short
//! document, byte by byte, then for those one token further, one for each class of tokens, the most frequent
//! first. Texts differ in content, but little in how they begin and in their structure. Masks that lexical
//! states share are made on the way.
//! Invariant: no state is made that a text could not reach, and nothing is kept that a call on demand would not keep.
//! Rejected: random tokens (most of them go into strings); breadth first (the first states are variants of
//! the beginning, without the first key).

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::completion::{Completions, FAR};
use super::engine::{Engine, StateId};
use super::row::Mask;
use super::state::EDGE;
use super::state::{ReachedBy, Record, State, RECORD};
use crate::automaton::byte_automaton::Piece;
use crate::error::{Error, Kind, Result};
use crate::vocab::{TokenId, Vocabulary};
use crate::{heap_size, work};

/// Calls after which memory is counted again.
const CALLS: u32 = 16;
/// Memory is counted after a call that spent more work: 4 MiB, if all of it were memory.
const LONG: u64 = 1 << 14;
/// Steps of a portion of a text that is read again, if a call may not spend more: about a second. In tests
/// few, so that short texts have many portions.
const REMADE: u64 = if cfg!(test) { 20_000 } else { 100_000_000 };
/// Further steps for each token: more than constraints need that are not hostile.
const REMADE_TOKEN: u64 = if cfg!(test) { 0 } else { 20_000 };

pub(super) struct Builder {
    pub engine: Box<dyn Engine>,
    pub vocab: Arc<Vocabulary>,
    owner: u64,
    epoch: u32,
    /// By state id; `None` where no token leads.
    records: Vec<Option<State>>,
    /// The number of records.
    states: usize,
    pub completions: Completions,
    /// Bytes of what records hold.
    pub(super) published: usize,
    /// Bytes that the engine held before any text.
    own: usize,
    /// Bytes that texts of older epochs needed here.
    moved: usize,
    calls: u32,
    /// The error of a call that ended before its text was read again.
    unfinished: Option<Error>,
}

impl Builder {
    pub fn new(mut engine: Box<dyn Engine>, vocab: Arc<Vocabulary>, start: &State) -> Result<Self> {
        let first = engine.start()?;
        let own = engine.bytes();
        debug_assert_eq!(first, start.0.id);
        let records = vec![Some(start.clone())];
        let (owner, epoch) = (start.0.owner, start.0.epoch);
        Ok(Builder {
            engine,
            vocab,
            owner,
            epoch,
            records,
            states: 1,
            completions: Completions::default(),
            published: 0,
            own,
            moved: 0,
            calls: 0,
            unfinished: None,
        })
    }

    /// Bytes that the builder and the records of its states hold.
    pub fn bytes(&mut self) -> usize {
        self.engine.bytes()
            + heap_size::bytes!(self: completions, records)
            + self.states * RECORD
            + self.published
    }

    /// [`Builder::bytes`] after a call that spent so much work: every few calls, more often at first, and
    /// after a call that may have made megabytes, since memory counts as work too.
    pub fn count(&mut self, spent: u64) -> Option<usize> {
        self.calls = self.calls.wrapping_add(1);
        let due = self.calls.is_power_of_two() || self.calls.is_multiple_of(CALLS);
        (due || spent > LONG).then(|| self.bytes())
    }

    /// Bytes of [`Builder::bytes`] that texts begun in older epochs brought along.
    pub fn moved(&self) -> usize {
        self.moved
    }

    /// Bytes that are allowed for the limit `most`. Twice the memory that live texts brought along is added,
    /// so that a text that does not fit is not made again at every call. A constraint that takes up to twice
    /// the limit by itself gets half of the limit beside it, for the same reason.
    pub fn allowance(&self, most: usize) -> usize {
        let own = self.own.min(most.saturating_mul(2));
        most.max(own.saturating_add(most / 2)).saturating_add(2 * self.moved)
    }

    pub fn states(&self) -> usize {
        self.states
    }

    /// Whether a call ended with this error before its own work began: then all that was built is complete.
    pub fn ended_early(&mut self, error: &Error) -> bool {
        self.unfinished.take().is_some_and(|own| own == *error)
    }

    /// The state of this epoch that equals a state: itself if it was made here, as there is one record per
    /// id.
    pub fn here<'a>(&mut self, s: &'a State) -> Result<Cow<'a, State>> {
        if s.0.epoch == self.epoch {
            return Ok(Cow::Borrowed(s));
        }
        match s.0.place(self.epoch) {
            Some(id) => Ok(Cow::Owned(self.known(id))),
            None => self.remake(s).map(Cow::Owned),
        }
    }

    fn known(&self, id: StateId) -> State {
        self.records[id.0 as usize].clone().expect("a state that was met here")
    }

    /// Reads the text before a state again, or a portion of it; whether the state is known here now.
    pub fn read_on(&mut self, s: &State) -> Result<bool> {
        let known = s.0.epoch == self.epoch || s.0.place(self.epoch).is_some();
        Ok(known || self.portion(s)?.is_ok())
    }

    /// The same where one portion is all that may be read.
    fn remake(&mut self, s: &State) -> Result<State> {
        self.portion(s)?.map_err(|most| {
            let error = Error::limit(format!(
                "reading the text again takes more than {most} steps of work: what was made for it was let go, as a call \
                 on the constraint was over its limit (Limits.work) or the memory was full (Limits.memory); what was \
                 read anew is kept: ask again, or raise the limit"
            ));
            self.unfinished = Some(error.clone());
            error
        })
    }

    /// Follows the tokens that lead to a state, from the nearest one before it that is known here.
    ///
    /// Each token has the work limit of the call that took it first, and all together that of one portion.
    /// Past that comes the inner error: what was read is kept, and the next portion goes on from there.
    fn portion(&mut self, s: &State) -> Result<std::result::Result<State, u64>> {
        let held = self.bytes();
        let mut way = vec![s];
        let mut known = None;
        while let Some((before, _)) = &way[way.len() - 1].0.from {
            known = before.0.place(self.epoch);
            if known.is_some() {
                break;
            }
            way.push(before);
        }
        let mut at = match known {
            Some(id) => self.known(id),
            None => {
                let start = self.known(StateId(0));
                way.pop().expect("the start").0.set_place(self.epoch, start.0.id);
                start
            }
        };
        let most = REMADE.max(work::allowed()) + REMADE_TOKEN * way.len() as u64;
        let mut spent = 0;
        while let Some(next) = way.pop() {
            let (_, via) = next.0.from.as_ref().expect("only the start has nothing before it");
            spent += work::spent();
            if spent > most {
                work::refill();
                self.moved += self.bytes().saturating_sub(held);
                return Ok(Err(most));
            }
            work::refill();
            let id = match via {
                ReachedBy::Token(token) => self.follow(at.0.id, *token),
                ReachedBy::Bytes(bytes) => self.engine.advance_bytes(at.0.id, bytes),
            };
            let id = id.ok_or_else(|| Error::new(Kind::EngineError, "a text can't be read again"))?;
            at = self.record(id, &at, via.clone());
            next.0.set_place(self.epoch, id);
            if let Some(mask) = next.0.mask().filter(|mask| at.0.set_mask(mask)) {
                self.published += mask.bytes();
            }
        }
        work::refill();
        self.moved += self.bytes().saturating_sub(held);
        Ok(Ok(at))
    }

    /// The record of a state that was reached from another.
    pub(super) fn record(&mut self, id: StateId, from: &State, via: ReachedBy) -> State {
        let at = id.0 as usize;
        if at >= self.records.len() {
            self.records.resize(at + 1, None);
        }
        let slot = &mut self.records[at];
        if let Some(known) = slot {
            return known.clone();
        }
        self.states += 1;
        let from = Some((from.clone(), via));
        let kept = self.engine.is_kept_by_text(id);
        slot.insert(Record::fresh(self.owner, self.epoch, id, from, kept)).clone()
    }

    pub fn mask(&mut self, s: &State) -> Result<Arc<Mask>> {
        let here = self.here(s)?;
        let mask = match here.0.mask() {
            Some(mask) => mask.clone(),
            None => {
                let (mask, accepting) = self.engine.mask(here.0.id);
                here.0.set_accepting(accepting);
                here.0.set_mask(&mask);
                self.published += mask.bytes();
                mask
            }
        };
        if let Cow::Owned(here) = &here {
            if let Some(accepting) = here.0.accepting() {
                s.0.set_accepting(accepting);
            }
            s.0.set_mask(&mask);
        }
        Ok(mask)
    }

    pub fn accepting(&mut self, s: &State) -> Result<bool> {
        let here = self.here(s)?;
        let accepting = match here.0.accepting() {
            Some(known) => known,
            None => self.engine.accepting(here.0.id),
        };
        here.0.set_accepting(accepting);
        s.0.set_accepting(accepting);
        Ok(accepting)
    }

    /// The state after a token other than one that ends the text.
    pub fn step(&mut self, s: &State, token: TokenId) -> Result<Option<State>> {
        let here = self.here(s)?;
        let next = match here.known_edge(&self.vocab, token) {
            Some(next) => next,
            None => {
                let Some(id) = self.follow(here.0.id, token) else { return Ok(None) };
                if self.vocab.numeral(token).is_some() && self.engine.counts_digits(here.0.id) {
                    here.0.set_counts_digits();
                    s.0.set_counts_digits();
                }
                let next = self.record(id, &here, ReachedBy::Token(token));
                here.0.edges.add(here.0.edge_token(&self.vocab, token), &next.0);
                self.published += EDGE;
                next
            }
        };
        if let Cow::Borrowed(_) = here {
            return Ok(Some(next));
        }
        // another shard may have been first: every call with this token gets the same state
        let edge = s.0.edge_token(&self.vocab, token);
        let first = if s.0.edges.add(edge, &next.0) { None } else { s.known_edge(&self.vocab, token) };
        Ok(Some(first.unwrap_or(next)))
    }

    /// The id of the state after a token of the text, special ones included.
    pub fn follow(&mut self, id: StateId, token: TokenId) -> Option<StateId> {
        if self.vocab.is_special(token) {
            return self.engine.take_special(id, token);
        }
        match self.vocab.text_of(token) {
            [] => None,
            bytes => self.engine.advance_bytes(id, bytes),
        }
    }

    pub fn step_bytes(&mut self, s: &State, bytes: &[u8]) -> Result<Option<State>> {
        let here = self.here(s)?;
        let next = self.engine.advance_bytes(here.0.id, bytes);
        Ok(next.map(|id| self.record(id, &here, ReachedBy::Bytes(bytes.into()))))
    }

    pub fn forced(&mut self, s: &State, limit: usize) -> Result<Vec<u8>> {
        let here = self.here(s)?;
        let bytes = match here.0.forced() {
            Some(known) => known.to_vec(),
            None => self.engine.forced(here.0.id, limit),
        };
        here.0.set_forced(&bytes);
        s.0.set_forced(&bytes);
        self.published += 2 * bytes.len();
        Ok(bytes)
    }
}

/// Bytes of the short document that are followed.
const LONGEST: usize = 512;

impl Builder {
    /// Makes the masks of up to `most` states that texts reach from a state on, with the bounds that budgets
    /// need, and stops after `work` units; how many were made.
    pub fn prepare(&mut self, start: &State, most: usize, work: u64) -> Result<usize> {
        let end = work::spent().saturating_add(work);
        let start = self.here(start)?.into_owned();
        self.distance(&start, LONGEST as u32)?;
        let (mut made, mut seen) = (0, FxHashSet::from_iter([start.0.id]));
        let mut ready = VecDeque::from([start.clone()]);
        let mut at = start;
        for piece in self.engine.completion(at.0.id, LONGEST).unwrap_or_default() {
            let Piece::Bytes(bytes) = piece else { break };
            for byte in bytes {
                let Some(next) = self.step_bytes(&at, &[byte])? else { break };
                at = next;
                if seen.insert(at.0.id) {
                    ready.push_back(at.clone());
                }
            }
        }
        while let Some(next) = ready.pop_front().filter(|_| made < most && work::spent() < end) {
            self.mask(&next)?;
            self.is_far(&next, FAR)?;
            made += 1;
            if made + ready.len() < most {
                self.lead_on(&next, &mut seen, &mut ready)?;
            }
        }
        Ok(made)
    }

    /// The states after one token of each class.
    fn lead_on(
        &mut self,
        s: &State,
        seen: &mut FxHashSet<StateId>,
        ready: &mut VecDeque<State>,
    ) -> Result<()> {
        for successor in self.engine.classes_after(s.0.id) {
            if let Some(next) = self.step(s, successor.first)?.filter(|next| seen.insert(next.0.id)) {
                ready.push_back(next);
            }
        }
        Ok(())
    }
}
