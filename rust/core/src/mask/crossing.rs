//! Tokens in which a code point of several bytes may end one lexeme and begin the next, though both could go on with its
//! first bytes.
//!
//! What a list of languages does with a token is told byte by byte for each language alone, where such a code point is
//! no end: its first bytes are read and its last one can't be.  The few tokens that hold one are tried one by one.
//!
//! Complexity: the vocabulary, once an automaton whose terminals have such code points; then those tokens, each mask.

use crate::lexical::ways::lead;
use crate::vocab::{TokenId, Vocabulary};

/// Tokens from which on masks are made by the walk byte by byte, which knows such ends.
pub const MOST: usize = 2048;

/// Tokens with a code point of these ranges, or one of several bytes that is cut off and may become one.
pub fn tokens_with(vocab: &Vocabulary, ranges: &[(u32, u32)]) -> Vec<TokenId> {
    if ranges.is_empty() {
        return Vec::new();
    }
    let meets = |first: u32, last: u32| {
        let at = ranges.partition_point(|r| r.1 < first);
        ranges.get(at).is_some_and(|r| r.0 <= last)
    };
    let ids = (0..vocab.size() as u32).map(TokenId);
    ids.filter(|&id| !vocab.is_special(id) && points(vocab.token(id)).any(|(a, b)| meets(a, b))).collect()
}

/// The code points of several bytes, as ranges of what they may become.
fn points(text: &[u8]) -> impl Iterator<Item = (u32, u32)> + '_ {
    text.utf8_chunks().flat_map(|chunk| {
        let whole = chunk.valid().chars().filter(|c| !c.is_ascii()).map(|c| (c as u32, c as u32));
        whole.chain(cut(chunk.invalid()))
    })
}

/// What the beginning of a code point may become; `None` of bytes that begin none.
fn cut(bytes: &[u8]) -> Option<(u32, u32)> {
    let (&first, more) = bytes.split_first()?;
    let (left, bits, _) = lead(first)?;
    let open = 6 * (left - more.len() as u32);
    let point = more.iter().fold(bits, |point, b| point << 6 | u32::from(b & 0x3F));
    Some((point << open, ((point + 1) << open) - 1))
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_code_point_that_is_cut_off_is_a_range() {
        assert_eq!(cut(b"\xE3"), Some((0x3000, 0x3FFF)));
        assert_eq!(cut(b"\xE3\x80"), Some((0x3000, 0x303F)));
        assert_eq!(cut(b"\xF0\x9F\x98"), Some((0x1F600, 0x1F63F)));
        assert_eq!(cut(b"\x80"), None);
    }
}
