//! The objects and arrays that one token can open.

/// Objects and arrays that are opened inside each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Openings {
    objects: u8,
    arrays: u8,
}

impl Openings {
    /// Those that a token may open, whatever was read before it: a brace is followed by a key, a bracket by a value.
    /// One that is closed at once, and one that stands in a string, may be counted.
    pub fn of(token: &[u8]) -> Self {
        let mut found = Openings::default();
        for (i, &byte) in token.iter().enumerate() {
            let next = token[i + 1..].iter().find(|b| !b" \t\r\n".contains(b));
            match byte {
                b'{' if next.is_none_or(|&b| b == b'"') => found.objects = found.objects.saturating_add(1),
                b'[' if next.is_none_or(|b| b"\"[{-0123456789tfn".contains(b)) => {
                    found.arrays = found.arrays.saturating_add(1)
                }
                _ => {}
            }
        }
        found
    }

    /// Whichever is more, of each.
    pub fn most(self, other: Self) -> Self {
        Openings { objects: self.objects.max(other.objects), arrays: self.arrays.max(other.arrays) }
    }

    /// What is left after an object is opened; `None`: none can be.
    pub fn object(self) -> Option<Self> {
        Some(Openings { objects: self.objects.checked_sub(1)?, ..self })
    }

    /// What is left after an array is opened; `None`: none can be.
    pub fn array(self) -> Option<Self> {
        Some(Openings { arrays: self.arrays.checked_sub(1)?, ..self })
    }

    /// Levels in all.
    pub fn levels(self) -> u32 {
        self.objects as u32 + self.arrays as u32
    }

    /// Whether nothing was too much to be counted.
    pub fn is_exact(self) -> bool {
        self.objects < u8::MAX && self.arrays < u8::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_followed_by_keys() {
        let of = |token: &str| {
            let found = Openings::of(token.as_bytes());
            (found.objects, found.arrays)
        };
        assert_eq!(of("{"), (1, 0));
        assert_eq!(of("{{{ {"), (1, 0));
        assert_eq!(of("[[[{\""), (1, 3));
        assert_eq!(of("{\"}\": {\""), (2, 0));
        assert_eq!(of("[]("), (0, 0));
        assert_eq!(of("[ {\n"), (1, 1));
    }
}
