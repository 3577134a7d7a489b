//! Memory of the process: how much all automata hold, and which of them free theirs when it is too much.
//!
//! Each epoch counts what it holds; the sum is bounded. Past the bound the least recently used automata free
//! their epochs, and make them again on demand: the bound costs time, never a state that a caller holds.
//! Invariant: an automaton that is being built keeps its memory; the sum falls below three quarters of the
//! bound where the others hold that much, so that the next check is far away.
//! Complexity: one addition per miss; a check of all automata when the bound is passed.
//! Rejected: a thread that watches (it does not survive `fork`); bounds for each automaton alone (it does not know
//! that it is one of thousands).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::process::{PerProcess, Process};

/// The default bound on the bytes of a process's epochs.
pub const PROCESS_BYTES: usize = 160 << 20;

/// An owner of memory that it can make again.
pub(super) trait Holder: Send + Sync {
    /// Bytes that it could free.
    fn bytes(&self) -> usize;
    /// When it was last used, on the clock of [`now`].
    fn last_used(&self) -> u64;
    /// Frees them, except where a thread is at work.
    fn let_go(&self);
}

/// Every automaton of the process.
static AUTOMATA: PerProcess<Mutex<Vec<Weak<dyn Holder>>>> = PerProcess::new();
static HELD: AtomicUsize = AtomicUsize::new(0);
static BOUND: AtomicUsize = AtomicUsize::new(PROCESS_BYTES);
/// Advances whenever automata are compared by their last use.
static CLOCK: AtomicU64 = AtomicU64::new(1);

/// Now, on the clock by which automata are compared.
pub(super) fn now() -> u64 {
    CLOCK.load(Ordering::Relaxed)
}

/// Bytes of epochs that the process holds.
pub fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// The bound on [`held`].
pub fn bound() -> usize {
    BOUND.load(Ordering::Relaxed)
}

/// Sets the bound, at once.
pub fn set_bound(bytes: usize) {
    BOUND.store(bytes, Ordering::Relaxed);
    keep_within_bound();
}

/// Sets the bytes of an epoch.
pub(super) fn recount(slot: &AtomicUsize, bytes: usize) {
    let before = slot.swap(bytes, Ordering::Relaxed);
    if bytes >= before {
        HELD.fetch_add(bytes - before, Ordering::Relaxed);
    } else {
        HELD.fetch_sub(before - bytes, Ordering::Relaxed);
    }
}

/// Adds an automaton to those that free memory.
pub(super) fn enroll(automaton: Weak<dyn Holder>) {
    let automata = AUTOMATA.current();
    let mut automata = automata.lock().unwrap_or_else(PoisonError::into_inner);
    if automata.len() == automata.capacity() {
        automata.retain(|a| a.strong_count() > 0);
    }
    automata.push(automaton);
}

/// If too much is held, the least recently used automata free theirs.
pub(super) fn keep_within_bound() {
    let bound = bound();
    if held() <= bound {
        return;
    }
    let automata = AUTOMATA.current();
    let mut all: Vec<Arc<dyn Holder>> = {
        let Ok(automata) = automata.try_lock() else { return };
        automata.iter().filter_map(Weak::upgrade).filter(|a| a.bytes() > 0).collect()
    };
    CLOCK.fetch_add(1, Ordering::Relaxed);
    all.sort_by_cached_key(|a| a.last_used());
    for automaton in &all {
        if held() <= bound / 4 * 3 {
            return;
        }
        automaton.let_go();
    }
}

/// Below this many bytes, to drop costs less than to hand over.
const SMALL: usize = 1 << 19;

/// Above this many, it must not exist beside what the next call makes; to make it took far longer than to
/// drop it.
const LARGE: usize = 64 << 20;

/// Drops something of so many bytes on a thread of its own: giving megabytes back takes milliseconds, which no call
/// should wait for.
pub(super) fn later<T: Send + 'static>(garbage: T, bytes: usize) {
    if !(SMALL..LARGE).contains(&bytes) {
        return drop(garbage);
    }
    Process::current().drop_later(Box::new(garbage));
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{channel, Sender};
    use std::thread::{current, ThreadId};

    use super::*;

    struct DropNotice(Sender<ThreadId>);

    impl Drop for DropNotice {
        fn drop(&mut self) {
            let _ = self.0.send(current().id());
        }
    }

    /// What a call cut by its limit has made is gone when the call returns, and never beside that of the next.
    #[test]
    fn only_what_is_of_middling_size_waits_to_be_dropped() {
        let (send, told) = channel();
        for bytes in [0, SMALL - 1, LARGE, usize::MAX] {
            later(DropNotice(send.clone()), bytes);
            assert_eq!(told.try_recv(), Ok(current().id()), "{bytes} bytes");
        }
        later(DropNotice(send), SMALL);
        assert_ne!(told.recv(), Ok(current().id()));
    }
}
