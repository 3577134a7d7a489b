//! What the engine shares within one process, and what becomes of it after `fork`.
//!
//! Invariant: a child begins anew: locks that other threads of the parent held when it was forked would stay locked
//! for ever, so the child never looks at them.  Everything global that is locked belongs here.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Condvar, LazyLock, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::cache::Cache;
use crate::mask::store::Store;
use crate::mask::TokenAutomaton;

/// Places where threads wait for each other; several things may share one.
const ROOMS: usize = 64;

/// How often this process was forked from another, as far as the host has told: asking the system for the process's
/// number costs as much as a mask.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// To be called in a child right after `fork`, before anything else of the engine.
pub fn forked() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

pub(crate) struct Process {
    id: u32,
    pub automata: Mutex<Vec<Weak<TokenAutomaton>>>,
    pub store: Store,
    pub cache: Cache,
    rooms: [Room; ROOMS],
    garbage: Mutex<Option<Sender<Box<dyn Send>>>>,
    pool: OnceLock<Option<rayon_core::ThreadPool>>,
}

static PROCESS: LazyLock<ArcSwap<Process>> = LazyLock::new(|| ArcSwap::from_pointee(Process::new()));

impl Process {
    fn new() -> Self {
        Process {
            id: epoch(),
            automata: Mutex::default(),
            store: Store::default(),
            cache: Cache::default(),
            rooms: [const { Room { door: Mutex::new(()), bell: Condvar::new() } }; ROOMS],
            garbage: Mutex::default(),
            pool: OnceLock::new(),
        }
    }

    pub fn current() -> Arc<Process> {
        let known = PROCESS.load_full();
        if known.id == epoch() {
            return known;
        }
        let fresh = Arc::new(Process::new());
        // the parent's may be locked by a thread that does not exist here: it is left as it is
        std::mem::forget(PROCESS.swap(fresh.clone()));
        fresh
    }

    /// Where threads wait for the thing at an address.
    pub fn room(&self, address: usize) -> &Room {
        &self.rooms[(address >> 6) % ROOMS]
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

/// A place to wait.
pub(crate) struct Room {
    door: Mutex<()>,
    bell: Condvar,
}

impl Room {
    /// Waits until somebody rings, while `busy`; false where that took longer than `most`.
    pub fn wait(&self, most: Duration, busy: impl Fn() -> bool) -> bool {
        let door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        if !busy() {
            return true;
        }
        let (_door, time) = self.bell.wait_timeout(door, most).unwrap_or_else(PoisonError::into_inner);
        !time.timed_out()
    }

    /// Wakes all who wait.
    pub fn wake(&self) {
        drop(self.door.lock());
        self.bell.notify_all();
    }
}
