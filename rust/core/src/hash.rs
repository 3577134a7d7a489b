//! Hashing of what comes from outside: texts, sets, and whatever is made of them.
//!
//! Invariant: nobody who writes a schema, a grammar or a text can know which of them fall into one place of a table:
//! the keys are the process's own. What is numbered here (states, terms, contexts) is counted from zero, which nobody
//! chooses; such keys are hashed by `rustc_hash`, which is the fastest for them.
//! Order: tables that are walked through keep the order in which they were filled ([`indexmap`]), so that no result
//! depends on the keys.
//! Source: Crosby, Wallach, Denial of service via algorithmic complexity attacks, USENIX Security 2003.
//! Rejected: SipHash, `std`'s own: its hash of a term takes longer than the rest of interning it.

use std::collections::{HashMap, HashSet};

/// Builds hashers with the process's keys.
pub type Keyed = foldhash::fast::RandomState;
pub type KeyedMap<K, V> = HashMap<K, V, Keyed>;
pub type KeyedSet<T> = HashSet<T, Keyed>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn tables_have_keys_of_their_own() {
        let text = "which place this takes can't be known";
        let places: HashSet<u64> = (0..8).map(|_| Keyed::default().hash_one(text)).collect();
        assert!(places.len() > 1);
    }
}
