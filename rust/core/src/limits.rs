//! What a caller may bound: counted, so the same on every machine.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Limits of one automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps of work that one call may need, making a constraint included.
    pub work: u64,
    /// Bytes that an automaton keeps beside what live texts need.
    pub memory: usize,
    /// Nesting of arrays and objects in a document.
    pub depth: u32,
}

const WORK: u64 = 50_000_000;
const MEMORY: usize = 32 << 20;
const DEPTH: u32 = 10_000;

static DEFAULT: (AtomicU64, AtomicUsize, AtomicU32) =
    (AtomicU64::new(WORK), AtomicUsize::new(MEMORY), AtomicU32::new(DEPTH));

impl Default for Limits {
    /// Those of the process.
    fn default() -> Self {
        let (work, memory, depth) = &DEFAULT;
        Limits { work: work.load(Relaxed), memory: memory.load(Relaxed), depth: depth.load(Relaxed) }
    }
}

impl Limits {
    /// From now on these are the limits of whatever says nothing else in this process.
    pub fn make_default(self) {
        DEFAULT.0.store(self.work, Relaxed);
        DEFAULT.1.store(self.memory, Relaxed);
        DEFAULT.2.store(self.depth, Relaxed);
    }
}
