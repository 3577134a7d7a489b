//! Shards: builders that threads use side by side.
//!
//! Threads that keep missing what is not known yet get builders of their own.  Each shard has a current epoch; a state of
//! one is made again in another from its text.  A shard is opened when threads have waited for each other about as long
//! as that costs.
//! Invariant: a shard that was opened stays open; a closed epoch is followed by one with a number of its own.
//! Memory: all shards share the limit of one automaton.

use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use arc_swap::Guard;

use super::automaton::TokenAutomaton;
use super::builder::Builder;
use super::epoch::{BuilderSlot, Epoch, ANY, SHARDS};
use super::state::State;
use crate::error::{Error, Result};

/// The epoch that was a shard's current one at the look-up, without a change of its reference count.
pub(super) struct Current(Guard<Option<Arc<Epoch>>>);

impl Deref for Current {
    type Target = Arc<Epoch>;

    fn deref(&self) -> &Arc<Epoch> {
        self.0.as_ref().expect("a shard that was opened stays open")
    }
}

/// Times that threads wait for each other before one of them goes to another shard.
const PATIENT: u32 = 8;

impl TokenAutomaton {
    /// The current epoch of a shard, which is opened if it is not open yet.
    pub(super) fn shard(&self, shard: usize) -> Current {
        let epoch = self.shards[shard].load();
        if epoch.is_some() {
            return Current(epoch);
        }
        self.begin(shard, None);
        Current(self.shards[shard].load())
    }

    /// Begins the next epoch of a shard, after a closed one.
    pub(super) fn begin(&self, shard: usize, closed: Option<&Arc<Epoch>>) {
        // a number is used once, even where another thread is quicker
        let count = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let number = count.wrapping_mul(SHARDS as u32) + shard as u32;
        let next = Arc::new(Epoch::new(self.number, number));
        if let Some(closed) = closed {
            next.start.inherit(&closed.start);
        }
        let before = self.shards[shard].compare_and_swap(&closed.cloned(), Some(next));
        if before.as_ref().map(Arc::as_ptr) == closed.map(Arc::as_ptr) {
            self.epochs.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn open_shards(&self) -> impl Iterator<Item = Arc<Epoch>> + '_ {
        self.shards.iter().filter_map(|shard| shard.load_full())
    }

    /// Bytes that the current epochs held when they were last at work.
    pub fn bytes(&self) -> usize {
        self.open_shards().map(|epoch| epoch.bytes()).sum()
    }

    /// Closes the epochs in which no thread works.
    pub(super) fn let_go(&self) {
        for epoch in self.open_shards() {
            if epoch.close_idle() {
                self.cleared.fetch_add(1, Ordering::Relaxed);
                self.renew(&epoch);
            }
        }
    }

    /// Frees everything but the states that callers hold, which are made again on demand.
    pub fn clear(&self) {
        for epoch in self.open_shards() {
            epoch.close();
            self.renew(&epoch);
        }
        self.cleared.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn renew(&self, closed: &Arc<Epoch>) {
        self.begin(closed.number as usize % SHARDS, Some(closed));
    }

    /// The shard in which a state is known, or the first.
    fn home(&self, s: &State) -> Current {
        // nearly always the state was made in a current epoch
        let own = self.shard(s.0.epoch as usize % SHARDS);
        if own.number == s.0.epoch {
            return own;
        }
        let known = |g: &Current| s.0.place(g.number).is_some();
        let mut open =
            (0..SHARDS).map(|shard| self.shards[shard].load()).filter(|g| g.is_some()).map(Current);
        open.find(known).unwrap_or_else(|| self.shard(0))
    }

    /// A builder that no other thread has: of the shard in which the state is known, unless threads keep
    /// waiting there.
    pub(super) fn take(&self, s: Option<&State>) -> Result<(Current, Box<Builder>)> {
        let subject = s.map_or(ANY, State::address);
        let mut epoch = s.map_or_else(|| self.shard(0), |s| self.home(s));
        loop {
            let shard = epoch.number as usize % SHARDS;
            match epoch.take(subject) {
                BuilderSlot::Builder(builder) => return Ok((epoch, builder)),
                BuilderSlot::None => {
                    let builder = self.build(&epoch, None)?;
                    return Ok((epoch, builder));
                }
                BuilderSlot::Closed => {
                    self.renew(&epoch);
                    epoch = self.shard(shard);
                }
                BuilderSlot::Busy => {
                    let in_time = epoch.wait().map_err(Error::from)?;
                    if epoch.is_at(subject) {
                        continue;
                    }
                    let lost = if in_time { 1 } else { PATIENT };
                    if self.lost.fetch_add(lost, Ordering::Relaxed) + lost >= PATIENT {
                        self.lost.store(0, Ordering::Relaxed);
                        epoch = self.shard(self.free_shard(shard));
                    }
                }
            }
        }
    }

    /// A shard after this one whose builder no thread has; this one where there is none.
    fn free_shard(&self, shard: usize) -> usize {
        let free = |next: &usize| self.shards[*next].load().as_ref().is_none_or(|g| !g.is_busy());
        (1..SHARDS).map(|on| (shard + on) % SHARDS).find(free).unwrap_or(shard)
    }
}
