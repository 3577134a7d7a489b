//! Masks that are made before they are asked for, where a host has time: what the first texts of a constraint meet.
//!
//! First the states along a short document, byte by byte, then those that one token leads to from these, one for each
//! class of tokens, the most frequent first: texts differ in what they say, and little in how they begin and are put
//! together, and what lexical states share is made on the way.
//! Invariant: nothing is made that a text could not reach, and nothing is kept that would not be kept when it is asked for.
//! Complexity: at most so many masks, and so much work that what the call was allowed is not used up.
//! Rejected: tokens drawn at random (strings take most of them); the first states breadth first (they are ways to
//! begin, and the first key is not behind them).

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::builder::Builder;
use super::completion::FAR;
use super::core::StateId;
use super::state::State;
use crate::automaton::byte_automaton::Piece;
use crate::error::Result;
use crate::work;

/// Bytes of the short document that are followed.
const LONGEST: usize = 512;

impl Builder {
    /// Makes the masks of up to `most` states that texts meet from a state on, with what budgets ask of them, and stops
    /// when `work` units were spent; how many states were met.
    pub fn prepare(&mut self, start: &State, most: usize, work: u64) -> Result<usize> {
        let end = work::spent().saturating_add(work);
        let start = self.here(start)?.into_owned();
        self.distance(&start, LONGEST as u32)?;
        let (mut made, mut seen) = (0, FxHashSet::from_iter([start.0.id]));
        let mut ready = VecDeque::from([start.clone()]);
        let mut at = start;
        for piece in self.engine.way_out(at.0.id, LONGEST).unwrap_or_default() {
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
