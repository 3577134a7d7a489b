//! Sets of tokens as words: bit `t % 32` of word `t / 32` says whether token `t` is in the set.
//!
//! Invariant: this is the layout of every mask row that leaves the engine (int32 or uint32, as decoders and GPU kernels
//! read it), and the only place that knows it.
//! Complexity: a bit is one access; `ids` reads all words, which are V / 32.
//! Memory: none of its own. The words lie wherever the caller has them: in a row of a batch, in an `Arc` that states
//! share, in a vector; a type that owned them would have to be made from each.

/// A set of tokens in words that lie anywhere.
pub trait TokenSet {
    /// Whether a token is in the set; one that the words have no bit for is not.
    fn allows(&self, id: u32) -> bool;
    /// Adds a token; one that the words have no bit for is left out.
    fn allow(&mut self, id: u32);
    /// Takes out a token.
    fn forbid(&mut self, id: u32);

    /// Adds tokens.
    #[inline]
    fn allow_all(&mut self, ids: impl IntoIterator<Item = u32>) {
        ids.into_iter().for_each(|id| self.allow(id));
    }

    /// Takes out tokens.
    #[inline]
    fn forbid_all(&mut self, ids: impl IntoIterator<Item = u32>) {
        ids.into_iter().for_each(|id| self.forbid(id));
    }

    /// How many there are.
    fn count_allowed(&self) -> usize;
    /// The tokens, ascending.
    fn ids(&self) -> Vec<u32>;
}

impl TokenSet for [u32] {
    #[inline]
    fn allows(&self, id: u32) -> bool {
        self.get(id as usize >> 5).is_some_and(|word| word >> (id & 31) & 1 == 1)
    }

    #[inline]
    fn allow(&mut self, id: u32) {
        if let Some(word) = self.get_mut(id as usize >> 5) {
            *word |= 1 << (id & 31);
        }
    }

    #[inline]
    fn forbid(&mut self, id: u32) {
        if let Some(word) = self.get_mut(id as usize >> 5) {
            *word &= !(1 << (id & 31));
        }
    }

    fn count_allowed(&self) -> usize {
        self.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn ids(&self) -> Vec<u32> {
        let mut out = Vec::new();
        for (at, &word) in self.iter().enumerate() {
            let mut bits = word;
            while bits != 0 {
                out.push((at as u32) << 5 | bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A set of words behaves as the set of the standard library.
        #[test]
        fn is_a_set(steps in proptest::collection::vec((any::<bool>(), 0u32..200), 0..100)) {
            let (mut words, mut set) = (vec![0u32; 7], std::collections::BTreeSet::new());
            for (adds, id) in steps {
                if adds {
                    words.allow(id);
                    set.insert(id);
                } else {
                    words.forbid(id);
                    set.remove(&id);
                }
                prop_assert_eq!(words.count_allowed(), set.len());
                prop_assert!((0..300).all(|id| words.allows(id) == set.contains(&id)));
            }
            prop_assert_eq!(words.ids(), set.into_iter().collect::<Vec<_>>());
        }
    }
}
