//! Lanes: builders that threads use side by side.
//!
//! Threads that keep missing what is not known yet get builders of their own: each lane has a current generation, and a
//! state of one is made again in another from its text. A lane is opened when threads have waited for each other about
//! as long as that costs.
//! Invariant: a lane that was opened stays open; a closed generation is followed by one with a number of its own.
//! Memory: all lanes share the limit of one automaton.

use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use arc_swap::Guard;

use super::automaton::TokenAutomaton;
use super::builder::Builder;
use super::generation::{Generation, Taken, ANY, LANES};
use super::state::State;
use crate::error::{Error, Result};

/// The generation that was a lane's current one when it was looked up, held without being counted.
pub(super) struct Current(Guard<Option<Arc<Generation>>>);

impl Deref for Current {
    type Target = Arc<Generation>;

    fn deref(&self) -> &Arc<Generation> {
        self.0.as_ref().expect("a lane that was opened stays open")
    }
}

/// Times that threads wait for each other before one of them goes to another lane.
const PATIENT: u32 = 8;

impl TokenAutomaton {
    /// The current generation of a lane, which is opened where it is not.
    pub(super) fn lane(&self, lane: usize) -> Current {
        let generation = self.lanes[lane].load();
        if generation.is_some() {
            return Current(generation);
        }
        self.begin(lane, None);
        Current(self.lanes[lane].load())
    }

    /// The next generation of a lane follows on a closed one.
    pub(super) fn begin(&self, lane: usize, closed: Option<&Arc<Generation>>) {
        // a number is used once, even where another thread is quicker
        let count = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let number = count.wrapping_mul(LANES as u32) + lane as u32;
        let next = Arc::new(Generation::new(self.number, number));
        if let Some(closed) = closed {
            next.start.inherit(&closed.start);
        }
        let before = self.lanes[lane].compare_and_swap(&closed.cloned(), Some(next));
        if before.as_ref().map(Arc::as_ptr) == closed.map(Arc::as_ptr) {
            self.generations.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn open_lanes(&self) -> impl Iterator<Item = Arc<Generation>> + '_ {
        self.lanes.iter().filter_map(|lane| lane.load_full())
    }

    /// Bytes that the current generations held when they were last at work.
    pub fn bytes(&self) -> usize {
        self.open_lanes().map(|generation| generation.bytes()).sum()
    }

    /// Lets go of generations where nobody works in them.
    pub(super) fn let_go(&self) {
        for generation in self.open_lanes() {
            if generation.close_idle() {
                self.cleared.fetch_add(1, Ordering::Relaxed);
                self.renew(&generation);
            }
        }
    }

    /// Lets go of everything but the states that are held, which are made again when they are asked for.
    pub fn clear(&self) {
        for generation in self.open_lanes() {
            generation.close();
            self.renew(&generation);
        }
        self.cleared.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn renew(&self, closed: &Arc<Generation>) {
        self.begin(closed.number as usize % LANES, Some(closed));
    }

    /// The lane in which a state is known, or the first.
    fn home(&self, s: &State) -> Current {
        // nearly always it was made where it is asked about
        let own = self.lane(s.0.generation as usize % LANES);
        if own.number == s.0.generation {
            return own;
        }
        let known = |g: &Current| s.0.place(g.number).is_some();
        let mut open = (0..LANES).map(|lane| self.lanes[lane].load()).filter(|g| g.is_some()).map(Current);
        open.find(known).unwrap_or_else(|| self.lane(0))
    }

    /// A builder that no other thread has: of the lane in which the state is known, unless threads keep meeting there.
    pub(super) fn take(&self, s: Option<&State>) -> Result<(Current, Box<Builder>)> {
        let subject = s.map_or(ANY, State::address);
        let mut generation = s.map_or_else(|| self.lane(0), |s| self.home(s));
        loop {
            let lane = generation.number as usize % LANES;
            match generation.take(subject) {
                Taken::Builder(builder) => return Ok((generation, builder)),
                Taken::None => {
                    let builder = self.build(&generation, None)?;
                    return Ok((generation, builder));
                }
                Taken::Closed => {
                    self.renew(&generation);
                    generation = self.lane(lane);
                }
                Taken::Busy => {
                    let in_time = generation.wait().map_err(Error::from)?;
                    if generation.is_at(subject) {
                        continue;
                    }
                    let lost = if in_time { 1 } else { PATIENT };
                    if self.lost.fetch_add(lost, Ordering::Relaxed) + lost >= PATIENT {
                        self.lost.store(0, Ordering::Relaxed);
                        generation = self.lane(self.free_lane(lane));
                    }
                }
            }
        }
    }

    /// A lane after this one whose builder no thread has; this one where there is none.
    fn free_lane(&self, lane: usize) -> usize {
        let free = |next: &usize| self.lanes[*next].load().as_ref().is_none_or(|g| !g.is_busy());
        (1..LANES).map(|on| (lane + on) % LANES).find(free).unwrap_or(lane)
    }
}
