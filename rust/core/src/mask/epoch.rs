//! An epoch: the memory in which an automaton is built, until it is let go as a whole.
//!
//! All that an automaton has interned and remembered lives in its [`Builder`].  Whoever misses something takes the
//! builder out of its place, works without holding any lock, and puts it back; a builder that a call left in an
//! unknown state (a limit, an interrupt, a panic) is not put back: the epoch is closed and another begins.
//! States hold no epoch (see [`super::state`]), so a closed one is freed at once.
//! Invariant: who moves the status from HERE or UNBUILT to TAKEN owns the builder until it puts it back; no lock is
//! held meanwhile.  After `fork` a builder that another thread had taken never comes back: the epoch is known by
//! its process, and closed.
//! Complexity: two atomic loads where nothing has to be built.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_utils::atomic::AtomicCell;

use super::builder::Builder;
use super::core::StateId;
use super::reclaim;
use super::state::{Record, State};
use crate::process::{forks, Process};
use crate::work::{self, Cut};

/// How long a thread waits for the builder before it looks elsewhere, and whether it is to go on.
const PATIENCE: Duration = Duration::from_millis(2);

/// Where the builder is: nobody has asked for anything yet; here; with a thread; nowhere, for ever.
const UNBUILT: u32 = 0;
const HERE: u32 = 1;
const TAKEN: u32 = 2;
const CLOSED: u32 = 3;

/// What the thread that has the builder asks, where that is no state: it makes the builder; a text of its own.
const BUILDING: usize = 0;
pub(super) const ANY: usize = 1;

/// Builders that threads may have side by side.
pub(super) const SHARDS: usize = 4;

pub(super) struct Epoch {
    pub number: u32,
    pub start: State,
    status: AtomicU32,
    builder: AtomicCell<Option<Box<Builder>>>,
    /// The process of the thread that took the builder last.
    process: AtomicU32,
    waiting: AtomicU32,
    /// What the thread that took the builder last asks: the address of a state, or one of the above.
    subject: AtomicUsize,
    /// Bytes that the builder held when it was last put back.
    bytes: AtomicUsize,
    /// Its states then, and the bytes that texts of older epochs had brought along.
    states: AtomicUsize,
    moved: AtomicUsize,
}

/// What a thread gets that asks for the builder.
pub(super) enum Taken {
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
            status: AtomicU32::new(UNBUILT),
            builder: AtomicCell::new(None),
            process: AtomicU32::new(forks()),
            waiting: AtomicU32::new(0),
            subject: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            states: AtomicUsize::new(0),
            moved: AtomicUsize::new(0),
        }
    }

    fn moves(&self, from: u32, to: u32) -> bool {
        self.status.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The builder, where no other thread has it; `subject`: what is to be asked, the address of a state or [`ANY`].
    pub fn take(&self, subject: usize) -> Taken {
        loop {
            match self.status.load(Ordering::Acquire) {
                HERE if self.moves(HERE, TAKEN) => {
                    self.note(subject);
                    return Taken::Builder(self.builder.take().expect("it was here"));
                }
                UNBUILT if self.moves(UNBUILT, TAKEN) => {
                    self.note(BUILDING);
                    return Taken::None;
                }
                TAKEN if self.process.load(Ordering::Relaxed) != forks() => {
                    self.status.store(CLOSED, Ordering::Release);
                    return Taken::Closed;
                }
                TAKEN => return Taken::Busy,
                CLOSED => return Taken::Closed,
                _ => {}
            }
        }
    }

    fn note(&self, subject: usize) {
        self.process.store(forks(), Ordering::Relaxed);
        self.subject.store(subject, Ordering::Relaxed);
    }

    pub fn is_busy(&self) -> bool {
        self.status.load(Ordering::Relaxed) == TAKEN
    }

    /// Whether the thread that has the builder does what another would have to do as well: it asks the same, or makes
    /// the builder.
    pub fn is_at(&self, subject: usize) -> bool {
        let now = self.subject.load(Ordering::Relaxed);
        now == BUILDING || now == subject && now != ANY
    }

    /// Waits a while for the builder to come back; false where it has not.
    pub fn wait(&self) -> Result<bool, Cut> {
        let process = Process::current();
        let room = process.parking_lot(self as *const Self as usize);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let in_time = room.wait(PATIENCE, || self.status.load(Ordering::SeqCst) == TAKEN);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        if !in_time && work::interrupted() {
            return Err(Cut::Interrupted);
        }
        Ok(in_time)
    }

    fn wake(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
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
        self.builder.store(Some(builder));
        if self.status.compare_exchange(TAKEN, HERE, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            self.drop_builder();
        }
        self.wake();
    }

    /// Ends the epoch; a builder that is at work is dropped by whoever has it.
    pub fn close(&self) {
        if self.status.swap(CLOSED, Ordering::SeqCst) == HERE {
            self.drop_builder();
        }
        reclaim::recount(&self.bytes, 0);
        self.wake();
    }

    fn drop_builder(&self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        reclaim::recount(&self.bytes, 0);
        if let Some(builder) = self.builder.take() {
            reclaim::later(builder, bytes);
        }
    }

    /// The same where no thread works with the builder; false otherwise.
    pub fn close_idle(&self) -> bool {
        if !self.moves(HERE, CLOSED) {
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
