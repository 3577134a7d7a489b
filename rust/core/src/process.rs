//! State that the engine shares within one process, and what becomes of it after `fork`.
//!
//! Invariant: a child begins anew: locks that other threads of the parent had locked at the fork would stay locked
//! for ever, so the child never looks at them.  Whatever is global and locked is a
//! [`PerProcess`].

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;

use crate::lock::ParkingLot;

/// Places where threads wait for each other; several things may share one.
const PARKING_LOTS: usize = 64;

/// How often this process was forked from another, as far as the host has reported: asking the system for the process's
/// number costs as much as a mask.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// To be called in a child right after `fork`, before anything else of the engine.
pub fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// A thing of which each process has its own.
pub(crate) struct PerProcess<T: 'static>(LazyLock<ArcSwap<Owned<T>>>);

/// A process's own, and the count of forks when it was made.
pub(crate) struct Owned<T>(u32, T);

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.1
    }
}

impl<T: Default> PerProcess<T> {
    pub const fn new() -> Self {
        PerProcess(LazyLock::new(|| ArcSwap::from_pointee(Owned(forks(), T::default()))))
    }

    pub fn current(&self) -> Arc<Owned<T>> {
        let known = self.0.load_full();
        if known.0 == forks() {
            return known;
        }
        let fresh = Arc::new(Owned(forks(), T::default()));
        // the parent's may be locked by a thread that does not exist here: it is left as it is
        std::mem::forget(self.0.swap(fresh.clone()));
        fresh
    }
}

/// Threads, and places where they wait for each other.
pub(crate) struct Process {
    parking_lots: [ParkingLot; PARKING_LOTS],
    garbage: Mutex<Option<Sender<Box<dyn Send>>>>,
    pool: OnceLock<Option<rayon_core::ThreadPool>>,
}

impl Default for Process {
    fn default() -> Self {
        Process {
            parking_lots: std::array::from_fn(|_| ParkingLot::default()),
            garbage: Mutex::default(),
            pool: OnceLock::new(),
        }
    }
}

static PROCESS: PerProcess<Process> = PerProcess::new();

impl Process {
    pub fn current() -> Arc<Owned<Process>> {
        PROCESS.current()
    }

    /// Where threads wait for the thing at an address.
    pub fn parking_lot(&self, address: usize) -> &ParkingLot {
        &self.parking_lots[(address >> 6) % PARKING_LOTS]
    }

    /// Threads that fill rows, one less than there are processors; `None` where there are none to be had.
    pub fn pool(&self) -> Option<&rayon_core::ThreadPool> {
        let others = || std::thread::available_parallelism().map_or(1, usize::from).max(2) - 1;
        let made = || {
            let named = rayon_core::ThreadPoolBuilder::new().thread_name(|i| format!("tokenform-{i}"));
            named.num_threads(others()).build().ok()
        };
        self.pool.get_or_init(made).as_ref()
    }

    /// Drops something on a thread of its own, or here where there is none to be had.
    pub fn drop_later(&self, thing: Box<dyn Send>) {
        let mut garbage = self.garbage.lock().unwrap_or_else(PoisonError::into_inner);
        if garbage.is_none() {
            let (send, receive) = channel::<Box<dyn Send>>();
            let sweep = move || receive.into_iter().for_each(drop);
            if std::thread::Builder::new().name("tokenform-drop".into()).spawn(sweep).is_ok() {
                *garbage = Some(send);
            }
        }
        if let Some(send) = &*garbage {
            let _ = send.send(thing);
        }
    }
}
