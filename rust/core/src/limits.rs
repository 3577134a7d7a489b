//! What a caller may bound: counted, so the same on every machine.

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

impl Default for Limits {
    fn default() -> Self {
        Limits { work: 20_000_000, memory: 32 << 20, depth: 10_000 }
    }
}
