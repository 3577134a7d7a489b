//! An epoch: the memory in which an automaton is built, freed as a whole.
//!
//! All that an automaton has interned and memoised is in its [`Builder`]. A thread that misses something
//! takes the builder out of its [`Lock`], works without a lock, and puts it back. A builder that a call left
//! in an unknown state (a limit, an interrupt, a panic) is not put back: the epoch is closed and another
//! begins. States don't refer to the epoch ([`super::state`]), so a closed one is freed at once.
//! Invariant: one thread at a time has the builder.  After `fork`, a builder that another thread had taken never comes
//! back: the epoch records its process, and is closed in any other.
//! Complexity: two atomic loads where nothing has to be built.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use super::builder::Builder;
use super::engine::StateId;
use super::reclaim;
use super::state::{Record, State};
use crate::lock::{Lock, Taken};
use crate::process::{forks, Process};
use crate::work::{self, Cut};

/// How long a thread waits for the builder before it tries elsewhere, and checks for an interrupt.
const PATIENCE: Duration = Duration::from_millis(2);

/// Subjects of the thread that has the builder, other than a state: it makes the builder; a text of its own.
const BUILDING: usize = 0;
pub(super) const ANY: usize = 1;

/// Builders that threads may have side by side.
pub(super) const SHARDS: usize = 4;

pub(super) struct Epoch {
    pub number: u32,
    pub start: State,
    builder: Lock<Builder>,
    /// The process of the thread that took the builder last.
    process: AtomicU32,
    /// The subject of the thread that took the builder last: the address of a state, or one of the above.
    subject: AtomicUsize,
    /// Bytes that the builder held when it was last put back.
    bytes: AtomicUsize,
    /// Its states then, and the bytes that texts of older epochs had brought along.
    states: AtomicUsize,
    moved: AtomicUsize,
}

/// The result of [`Epoch::take`].
pub(super) enum BuilderSlot {
    Builder(Box<Builder>),
    /// There is none yet: this thread makes it.
    None,
    /// Another thread has it.
    Busy,
    /// The epoch has ended: ask the automaton for the next.
    Closed,
}

impl Epoch {
    pub fn new(owner: u64, number: u32) -> Self {
        Epoch {
            number,
            start: Record::fresh(owner, number, StateId(0), None, false),
            builder: Lock::new(),
            process: AtomicU32::new(forks()),
            subject: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            states: AtomicUsize::new(0),
            moved: AtomicUsize::new(0),
        }
    }

    /// The builder, if no other thread has it; `subject`: that of the call, the address of a state or
    /// [`ANY`].
    pub fn take(&self, subject: usize) -> BuilderSlot {
        match self.builder.take() {
            Taken::Thing(builder) => {
                self.note(subject);
                BuilderSlot::Builder(builder)
            }
            Taken::None => {
                self.note(BUILDING);
                BuilderSlot::None
            }
            Taken::Busy if self.process.load(Ordering::Relaxed) != forks() => {
                // it never comes back, unless a thread has only just taken it
                if self.builder.close() {
                    self.drop_builder();
                }
                BuilderSlot::Closed
            }
            Taken::Busy => BuilderSlot::Busy,
            Taken::Closed => BuilderSlot::Closed,
        }
    }

    fn note(&self, subject: usize) {
        self.process.store(forks(), Ordering::Relaxed);
        self.subject.store(subject, Ordering::Relaxed);
    }

    pub fn is_busy(&self) -> bool {
        self.builder.is_busy()
    }

    /// Whether the thread that has the builder does what another would have to do as well: it has the same
    /// subject, or makes the builder.
    pub fn is_at(&self, subject: usize) -> bool {
        let now = self.subject.load(Ordering::Relaxed);
        now == BUILDING || now == subject && now != ANY
    }

    /// Waits a while for the builder to come back; false where it has not.
    pub fn wait(&self) -> Result<bool, Cut> {
        let process = Process::current();
        let in_time = self.builder.wait(process.parking_lot(self as *const Self as usize), PATIENCE);
        if !in_time && work::interrupted() {
            return Err(Cut::Interrupted);
        }
        Ok(in_time)
    }

    fn wake(&self) {
        if self.builder.is_awaited() {
            Process::current().parking_lot(self as *const Self as usize).wake();
        }
    }

    /// Puts the builder back, unless the epoch was closed meanwhile; `bytes`: where they were counted again.
    pub fn put(&self, builder: Box<Builder>, bytes: Option<usize>) {
        if let Some(bytes) = bytes {
            reclaim::recount(&self.bytes, bytes);
        }
        self.states.store(builder.states(), Ordering::Relaxed);
        self.moved.store(builder.moved(), Ordering::Relaxed);
        if self.builder.put(builder) {
            self.drop_builder();
        }
        self.wake();
    }

    /// Ends the epoch; a builder that is at work is dropped by the thread that has it.
    pub fn close(&self) {
        if self.builder.close() {
            self.drop_builder();
        }
        reclaim::recount(&self.bytes, 0);
        self.wake();
    }

    fn drop_builder(&self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        reclaim::recount(&self.bytes, 0);
        if let Some(builder) = self.builder.let_go() {
            reclaim::later(builder, bytes);
        }
    }

    /// The same where no thread works with the builder; false otherwise.
    pub fn close_idle(&self) -> bool {
        if !self.builder.close_idle() {
            return false;
        }
        self.drop_builder();
        self.wake();
        true
    }

    /// Its states, and the bytes that texts of older epochs brought along.
    pub fn counts(&self) -> (usize, usize) {
        (self.states.load(Ordering::Relaxed), self.moved.load(Ordering::Relaxed))
    }

    /// Bytes that it held when its builder was last put back.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        self.close();
    }
}
