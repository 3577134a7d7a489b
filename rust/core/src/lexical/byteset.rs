//! Sets of bytes.

/// A set of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);
    pub const ASCII: ByteSet = ByteSet([u64::MAX, u64::MAX, 0, 0]);
    /// First bytes of multi-byte code points, 0xC2 to 0xF4.
    pub const LEADS: ByteSet = ByteSet([0, 0, 0, ((1 << 0x35) - 1) & !0b11]);
    /// The other bytes of multi-byte code points.
    pub const CONTINUATION: ByteSet = ByteSet([0, 0, u64::MAX, 0]);

    pub fn of(bytes: &[u8]) -> Self {
        let mut set = ByteSet::default();
        for &b in bytes {
            set.insert(b);
        }
        set
    }

    pub fn insert(&mut self, b: u8) {
        self.0[b as usize >> 6] |= 1 << (b & 63);
    }

    pub fn add(&mut self, other: &ByteSet) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a |= b;
        }
    }

    /// The bytes that are in both sets.
    pub fn and(&self, other: &ByteSet) -> Self {
        ByteSet(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// The bytes that the other set lacks.
    pub fn without(&self, other: &ByteSet) -> Self {
        ByteSet(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Its bytes, ascending.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0u8..).zip(self.0).flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as u8)?;
                word &= word - 1;
                Some(at << 6 | bit)
            })
        })
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether some byte is in both sets.
    pub fn meets(&self, other: &ByteSet) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }

    #[inline]
    pub fn has(&self, b: u8) -> bool {
        self.0[b as usize >> 6] >> (b & 63) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads_are_the_first_bytes_of_characters() {
        let firsts = (0x80..=0x10FFFF).filter_map(char::from_u32).map(|c| c.to_string().as_bytes()[0]);
        let mut set = ByteSet::default();
        firsts.for_each(|byte| set.insert(byte));
        assert_eq!(set, ByteSet::LEADS);
    }
}
