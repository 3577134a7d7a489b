//! The lock around an epoch's builder (`mask::epoch`): a thread takes the builder out, works without a lock, and puts it back.
//!
//! A mutex would be locked for as long as the work takes, across unwinding and `fork`.  This lock can be closed while
//! another thread has the builder, and threads that wait go elsewhere after a while.
//! Invariant: the thread that moves the status from HERE or UNBUILT to TAKEN owns the builder until it puts it back.  CLOSED
//! is final: the thread that then has the builder, or finds it, drops it; nobody else does.
//! `rust/loom` runs this file under every order of two and three threads; [`crate::sync`] names what it is made of.

use std::sync::PoisonError;
use std::time::Duration;

use crate::sync::{AtomicU32, Condvar, Mutex, Ordering, Slot};

/// Where the thing is: nobody has asked for anything yet; here; with a thread; nowhere, for ever.
const UNBUILT: u32 = 0;
const HERE: u32 = 1;
const TAKEN: u32 = 2;
const CLOSED: u32 = 3;

/// What a thread gets that asks for the thing.
pub enum Taken<T> {
    Thing(Box<T>),
    /// There is none yet: this thread makes it.
    None,
    /// Another thread has it.
    Busy,
    /// For ever.
    Closed,
}

pub struct Lock<T> {
    status: AtomicU32,
    thing: Slot<T>,
    waiting: AtomicU32,
}

impl<T> Lock<T> {
    pub fn new() -> Self {
        Lock { status: AtomicU32::new(UNBUILT), thing: Slot::new(None), waiting: AtomicU32::new(0) }
    }

    fn moves(&self, from: u32, to: u32) -> bool {
        self.status.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The thing, where no other thread has it.
    pub fn take(&self) -> Taken<T> {
        loop {
            match self.status.load(Ordering::Acquire) {
                HERE if self.moves(HERE, TAKEN) => {
                    return Taken::Thing(self.thing.take().expect("it was here"));
                }
                UNBUILT if self.moves(UNBUILT, TAKEN) => return Taken::None,
                TAKEN => return Taken::Busy,
                CLOSED => return Taken::Closed,
                _ => {}
            }
        }
    }

    /// Puts the thing back; true where it was closed meanwhile: the thing is to be let go.
    #[must_use]
    pub fn put(&self, thing: Box<T>) -> bool {
        self.thing.store(Some(thing));
        self.status.compare_exchange(TAKEN, HERE, Ordering::SeqCst, Ordering::SeqCst).is_err()
    }

    /// Closes it; true where the thing is here and to be let go.
    #[must_use]
    pub fn close(&self) -> bool {
        self.status.swap(CLOSED, Ordering::SeqCst) == HERE
    }

    /// The same where the thing is here; otherwise nothing happens.
    #[must_use]
    pub fn close_idle(&self) -> bool {
        self.moves(HERE, CLOSED)
    }

    /// What is to be let go.
    pub fn let_go(&self) -> Option<Box<T>> {
        self.thing.take()
    }

    pub fn is_busy(&self) -> bool {
        self.status.load(Ordering::Relaxed) == TAKEN
    }

    /// Waits until somebody wakes those at this place, while another thread has the thing; false where that took longer
    /// than `most`.
    pub fn wait(&self, place: &ParkingLot, most: Duration) -> bool {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let in_time = place.wait(most, || self.status.load(Ordering::SeqCst) == TAKEN);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        in_time
    }

    /// Whether somebody waits, to be woken after the thing was put back or the lock closed.
    pub fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }
}

/// A place to wait.
#[derive(Default)]
pub struct ParkingLot {
    lock: Mutex<()>,
    woken: Condvar,
}

impl ParkingLot {
    /// Waits until somebody rings, while `busy`; false where that took longer than `most`.
    pub fn wait(&self, most: Duration, busy: impl Fn() -> bool) -> bool {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !busy() {
            return true;
        }
        let (_lock, time) = self.woken.wait_timeout(lock, most).unwrap_or_else(PoisonError::into_inner);
        !time.timed_out()
    }

    /// Wakes all who wait.
    pub fn wake(&self) {
        drop(self.lock.lock());
        self.woken.notify_all();
    }
}
