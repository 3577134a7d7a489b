//! A finished mask, in the smallest of three forms.
//!
//! A dense mask of 131,072 tokens is 16 KB; most states allow fewer than a hundred tokens, and most others
//! differ from a shared mask by a few.  Writing a row is a fill and a few bits, or one copy and a few bits.
//! Invariant: the forms of one set write the same words. Memory: at most a bit per token of the vocabulary.

use std::sync::Arc;

use crate::vocab::TokenSet;

/// The allowed tokens of a state.
///
/// ```
/// use tokenform_core::Mask;
///
/// let mask = Mask::Sparse(Box::new([3, 64]));
/// assert!(mask.has(64) && !mask.has(9999));
/// let mut row = [0; 3];
/// mask.write(&mut row);
/// assert_eq!((row, mask.ids(3)), ([8, 0, 1], vec![3, 64]));
/// ```
pub enum Mask {
    /// Ids in no order: to sort them would cost more than all queries of a mask.
    Sparse(Box<[u32]>),
    /// A shared mask and the ids that it lacks, in no order.
    Based(Arc<[u32]>, Box<[u32]>),
    /// A bit per token, in words.
    Dense(Box<[u32]>),
}

/// Lists longer than this share of the vocabulary are kept dense (a list of n ids takes 4n bytes, a dense
/// mask of V tokens V/8).
const DENSE_SHARE: usize = 32;

/// Ids from which on a list is counted: it may be better kept as a mask.
const MANY: usize = 1024;

impl Mask {
    pub(crate) fn from_ids(ids: Vec<u32>, size: usize) -> Self {
        if ids.len() < MANY {
            return Mask::Sparse(ids.into());
        }
        // by bits instead of a sort: several lists have the same ids
        let mut words = vec![0u32; size.div_ceil(32)];
        words.allow_all(ids);
        let count = words.count_allowed();
        let mask = Mask::Dense(words.into());
        if count > size / DENSE_SHARE {
            return mask;
        }
        Mask::Sparse(mask.ids(size.div_ceil(32)).into())
    }

    pub(crate) fn based(base: Arc<[u32]>, ids: Vec<u32>) -> Self {
        if ids.len() >= MANY {
            return Self::joined(&[base], &ids);
        }
        Mask::Based(base, ids.into())
    }

    /// Several shared masks and some ids, as one.
    pub(crate) fn joined(bases: &[Arc<[u32]>], ids: &[u32]) -> Self {
        let mut words = bases[0].to_vec();
        for base in &bases[1..] {
            words.iter_mut().zip(base.iter()).for_each(|(a, b)| *a |= b);
        }
        words.allow_all(ids.iter().copied());
        Mask::Dense(words.into())
    }

    /// Writes the row: tokens for which `out` has no bit are left out, words beyond the vocabulary are zeros.
    pub fn write(&self, out: &mut [u32]) {
        let copy = |words: &[u32], out: &mut [u32]| {
            let both = words.len().min(out.len());
            out[..both].copy_from_slice(&words[..both]);
            out[both..].fill(0);
        };
        let ids = match self {
            Mask::Dense(words) => return copy(words, out),
            Mask::Sparse(ids) => {
                out.fill(0);
                ids
            }
            Mask::Based(base, ids) => {
                copy(base, out);
                ids
            }
        };
        out.allow_all(ids.iter().copied());
    }

    /// Adds its tokens to a row.  `part`: words that may be overwritten.
    pub fn add(&self, out: &mut [u32], part: &mut [u32]) {
        if let Mask::Sparse(ids) = self {
            return out.allow_all(ids.iter().copied());
        }
        self.write(part);
        out.iter_mut().zip(part).for_each(|(a, b)| *a |= *b);
    }

    /// Whether a token is allowed; one that the vocabulary lacks is not.
    pub fn has(&self, id: u32) -> bool {
        match self {
            Mask::Dense(words) => words.allows(id),
            Mask::Sparse(ids) => ids.contains(&id),
            Mask::Based(base, ids) => base.allows(id) || ids.contains(&id),
        }
    }

    /// Whether a token of the words is in the mask.
    pub fn meets(&self, words: &[u32]) -> bool {
        let both = |own: &[u32]| own.iter().zip(words).any(|(a, b)| a & b != 0);
        match self {
            Mask::Dense(own) => both(own),
            Mask::Sparse(ids) => ids.iter().any(|&id| words.allows(id)),
            Mask::Based(base, ids) => both(base) || ids.iter().any(|&id| words.allows(id)),
        }
    }

    /// Sorted ids of the allowed tokens.
    pub fn ids(&self, words: usize) -> Vec<u32> {
        if let Mask::Sparse(ids) = self {
            let mut ids = ids.to_vec();
            crate::lists::sort_unique(&mut ids);
            return ids;
        }
        let mut row = vec![0u32; words];
        self.write(&mut row);
        row.ids()
    }

    /// Calls `show` with each token, once, in no order.
    pub fn each(&self, mut show: impl FnMut(u32)) {
        let words = |words: &[u32], show: &mut dyn FnMut(u32)| {
            for (at, &word) in words.iter().enumerate() {
                let mut bits = word;
                while bits != 0 {
                    show((at as u32) << 5 | bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
        };
        match self {
            Mask::Dense(own) => words(own, &mut show),
            Mask::Sparse(ids) => ids.iter().for_each(|&id| show(id)),
            Mask::Based(base, ids) => {
                words(base, &mut show);
                ids.iter().for_each(|&id| show(id));
            }
        }
    }

    /// Bytes that the mask takes by itself.
    pub fn bytes(&self) -> usize {
        match self {
            Mask::Dense(words) => words.len() * 4,
            Mask::Sparse(ids) | Mask::Based(_, ids) => ids.len() * 4,
        }
    }
}
