//! The vocabulary: the bytes of every token, and their trie.
//!
//! In: the tokens' bytes by id, the ids that end a text, the special ones.  Out: [`Vocabulary`].
//! Data: a trie in depth-first order ([`trie`]): the tokens below a node are one range.
//! Invariant: ids are those of the model; tokens that are empty, special or end a text are matched by no bytes.
//! Complexity: linear in the tokens' bytes, once.
//! Memory: the bytes, the trie by bytes and, when first asked for, that by characters: some 20 MB for 131,072 tokens.
//! Paper: Fredkin 1960 (tries).
//! Start: this file; [`set`] is the layout of masks, `chars` the trie by code points, `openings` what brackets a token has.

pub(crate) mod chars;
mod openings;
pub(crate) mod set;
pub(crate) mod trie;

use crate::error::{Error, Kind, Result};
pub(crate) use chars::Chars;
pub(crate) use openings::Openings;
pub(crate) use set::TokenSet;
pub(crate) use trie::{NodeId, Trie};

use crate::lexical::number::alike::NumberReach;

/// The number of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenId(pub u32);

/// Bytes of every id, which ids end a text, and which are special (never spelled by bytes).
pub struct Vocabulary {
    tokens: Vec<Box<[u8]>>,
    eos: Vec<TokenId>,
    special: Vec<bool>,
    trie: Trie,
    chars: Chars,
    longest: usize,
    /// Tokens that are too long for the trie, and bytes of the longest in it.
    long: Vec<TokenId>,
    height: usize,
    closings: u32,
    openings: Openings,
    reach: NumberReach,
    key: u64,
    spelled: std::sync::OnceLock<(Box<[u32]>, Trie)>,
    /// Each byte is a token.
    complete: bool,
    texts: std::sync::OnceLock<Box<[u32]>>,
    /// The tokens of [`Vocabulary::is_whole_text`], as a mask.
    whole: Box<[u32]>,
    /// The tokens that are nothing but digits, as a mask, and the least of each number of digits from one on.
    digits: Box<[u32]>,
    numerals: Vec<Option<TokenId>>,
}

/// Digits of the longest token for which another may stand: see [`Vocabulary::numeral`].
pub(crate) const NUMERAL: usize = 4;

/// Bytes that a token of the trie may have: what walks it may recurse once a byte. Real vocabularies end at 256.
const IN_TRIE: usize = 512;

/// Whether a JSON string spells the bytes as they are.
fn is_plain(text: &[u8]) -> bool {
    !text.iter().any(|&b| b < 0x20 || b == b'"' || b == b'\\')
}

impl Vocabulary {
    /// Tokens that are empty, special or end a text are never matched by bytes.
    pub fn new(tokens: Vec<Box<[u8]>>, eos: Vec<u32>, special: &[u32]) -> Result<Self> {
        let size = tokens.len();
        if size == 0 {
            return Err(Error::new(Kind::VocabularyError, "the vocabulary has no tokens"));
        }
        let mut is_special = vec![false; size];
        for &id in eos.iter().chain(special) {
            let Some(slot) = is_special.get_mut(id as usize) else {
                return Err(Error::new(
                    Kind::VocabularyError,
                    format!("id {id} is named as special or end of text, but there are only {size} tokens"),
                ));
            };
            *slot = true;
        }
        if eos.is_empty() {
            return Err(Error::new(
                Kind::VocabularyError,
                "the vocabulary has no end-of-text id; name at least one",
            ));
        }
        let spelled = |i: u32| Some(tokens[i as usize].len()).filter(|&n| n > 0 && !is_special[i as usize]);
        let in_trie = (0u32..).zip(&tokens).filter(|&(i, _)| spelled(i).is_some_and(|n| n <= IN_TRIE));
        let trie = Trie::new(in_trie.map(|(i, bytes)| (i, &**bytes)));
        let long =
            (0..size as u32).filter(|&i| spelled(i).is_some_and(|n| n > IN_TRIE)).map(TokenId).collect();
        let height = trie.height(Trie::ROOT) as usize;
        let chars = Chars::new(&trie);
        let longest = tokens.iter().map(|t| t.len()).max().unwrap_or(0);
        let closings_of = |t: &[u8]| t.iter().filter(|b| matches!(b, b']' | b'}')).count() as u32;
        let closings = tokens.iter().map(|t| closings_of(t)).max().unwrap_or(0);
        let openings = tokens.iter().map(|t| Openings::of(t)).fold(Openings::default(), Openings::most);
        let reach = NumberReach::of(&tokens);
        let mut eos: Vec<TokenId> = eos.into_iter().map(TokenId).collect();
        crate::lists::sort_unique(&mut eos);
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let key = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut whole = vec![0u32; size.div_ceil(32)];
        let in_text = |&i: &u32| {
            spelled(i).is_some()
                && is_plain(&tokens[i as usize])
                && std::str::from_utf8(&tokens[i as usize]).is_ok()
        };
        whole.allow_all((0..size as u32).filter(in_text));
        let is_numeral = |&i: &u32| {
            let token = &tokens[i as usize];
            spelled(i).is_some_and(|n| n <= NUMERAL) && token.iter().all(u8::is_ascii_digit)
        };
        let mut digits = vec![0u32; size.div_ceil(32)];
        digits.allow_all((0..size as u32).filter(is_numeral));
        let least = |n: usize| digits.ids().into_iter().find(|&i| tokens[i as usize].len() == n).map(TokenId);
        let numerals = (1..=NUMERAL).map(least).collect();
        let (spelled, texts) = Default::default();
        let complete = (0..=255u8).all(|b| {
            // bytes that no UTF-8 text holds are not needed
            matches!(b, 0xC0 | 0xC1 | 0xF5..)
                || trie.child(Trie::ROOT, b).is_some_and(|n| !trie.tokens(n).is_empty())
        });
        Ok(Vocabulary {
            tokens,
            eos,
            special: is_special,
            trie,
            chars,
            longest,
            long,
            height,
            closings,
            openings,
            reach,
            key,
            spelled,
            texts,
            whole: whole.into(),
            digits: digits.into(),
            numerals,
            complete,
        })
    }

    /// How many ids there are.
    pub fn size(&self) -> usize {
        self.tokens.len()
    }

    /// Words of a mask row.
    pub fn mask_words(&self) -> usize {
        self.size().div_ceil(32)
    }

    /// # Errors
    /// [`Kind::OptionError`]: so many words are not so many rows of masks.
    pub(crate) fn check_words(&self, words: usize, rows: usize) -> Result<()> {
        let width = self.mask_words();
        if rows.checked_mul(width) == Some(words) {
            return Ok(());
        }
        let message =
            format!("{rows} rows of masks over this vocabulary take {width} words each; out has {words}");
        Err(Error::new(Kind::OptionError, message))
    }

    /// The bytes of a token; `None`: the vocabulary has no such id.
    ///
    /// ```
    /// use tokenform_core::{TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::new(vec![Box::from(*b"a"), Box::from(*b"</s>")], vec![1], &[])?;
    /// assert_eq!(vocabulary.token(TokenId(0)), Some(&b"a"[..]));
    /// assert_eq!(vocabulary.token(TokenId(2)), None);
    /// # Ok::<(), tokenform_core::Error>(())
    /// ```
    pub fn token(&self, id: TokenId) -> Option<&[u8]> {
        self.tokens.get(id.0 as usize).map(|bytes| &**bytes)
    }

    /// The bytes of a token that the vocabulary has.
    #[inline]
    pub(crate) fn text_of(&self, id: TokenId) -> &[u8] {
        &self.tokens[id.0 as usize]
    }

    /// The bytes of every token, by id.
    pub fn tokens(&self) -> &[Box<[u8]>] {
        &self.tokens
    }

    /// Whether the token ends a text.
    pub fn is_eos(&self, id: TokenId) -> bool {
        self.eos.binary_search(&id).is_ok()
    }

    /// The tokens that end a text, ascending.
    pub fn eos(&self) -> &[TokenId] {
        &self.eos
    }

    /// Special tokens have no bytes that a text could hold; no id that the vocabulary lacks is one.
    pub fn is_special(&self, id: TokenId) -> bool {
        self.special.get(id.0 as usize) == Some(&true)
    }

    /// The special tokens whose text this is.
    pub(crate) fn special_tokens(&self, text: &[u8]) -> Vec<TokenId> {
        let ids = (0..self.size() as u32).map(TokenId);
        ids.filter(|&id| self.is_special(id) && self.text_of(id) == text).collect()
    }

    /// The tokens that a JSON string spells as they are, as a mask, and a trie of the others.
    pub(crate) fn spelled_in_json(&self) -> &(Box<[u32]>, Trie) {
        self.spelled.get_or_init(|| {
            let mut words = vec![0u32; self.mask_words()];
            let known = |i: &u32| !self.is_special(TokenId(*i)) && !self.tokens[*i as usize].is_empty();
            let ids = || (0u32..self.size() as u32).filter(known);
            words.allow_all(ids().filter(|&i| is_plain(&self.tokens[i as usize])));
            let short = |i: &u32| self.tokens[*i as usize].len() <= IN_TRIE;
            let others = ids().filter(short).filter(|&i| !is_plain(&self.tokens[i as usize]));
            (words.into(), Trie::new(others.map(|i| (i, &*self.tokens[i as usize]))))
        })
    }

    /// Adds the tokens below a node that are texts, or the beginnings of some, to a mask (an empty one grows).
    pub(crate) fn add_texts_below(&self, node: NodeId, mask: &mut Vec<u32>) {
        let texts = self.texts.get_or_init(|| {
            let mut words = vec![0u32; self.mask_words()];
            for at in 1..self.chars.len() as u32 {
                words.allow_all(self.trie.tokens(self.chars.node(at)).iter().map(|t| t.0));
            }
            words.into()
        });
        if node == Trie::ROOT {
            *mask = texts.to_vec();
            return;
        }
        mask.resize(self.mask_words(), 0);
        let own = self.trie.tokens(node).len();
        let below = self.trie.subtree_tokens(node)[own..].iter().map(|t| t.0);
        mask.allow_all(below.filter(|&id| texts.allows(id)));
    }

    /// Whether a token is whole characters that a JSON string spells as they are.
    pub(crate) fn is_whole_text(&self, id: TokenId) -> bool {
        self.whole.get(id.0 as usize >> 5).is_some_and(|word| word >> (id.0 & 31) & 1 == 1)
    }

    /// Of a token that is nothing but up to [`NUMERAL`] digits, the least one that has as many: where only their number
    /// matters, one edge stands for all of them.
    pub(crate) fn numeral(&self, id: TokenId) -> Option<TokenId> {
        let word = self.digits.get(id.0 as usize >> 5)?;
        if word >> (id.0 & 31) & 1 == 0 {
            return None;
        }
        self.numerals[self.text_of(id).len() - 1]
    }

    /// Whether each byte is a token, so that every text can be spelled.
    pub(crate) fn spells_every_byte(&self) -> bool {
        self.complete
    }

    pub(crate) fn trie(&self) -> &Trie {
        &self.trie
    }

    /// The trie by code points.
    pub(crate) fn chars(&self) -> &Chars {
        &self.chars
    }

    /// Bytes of the longest token.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// A trie of some of the tokens.
    pub(crate) fn trie_of(&self, ids: &[TokenId]) -> Trie {
        Trie::new(ids.iter().map(|id| (id.0, &*self.tokens[id.0 as usize])))
    }

    /// Bytes of the longest token of the trie.
    pub(crate) fn longest_in_trie(&self) -> usize {
        self.height
    }

    /// Tokens that the trie does not hold: a walk of the trie must try each of them by itself.
    pub(crate) fn long(&self) -> &[TokenId] {
        &self.long
    }

    /// Those of [`Vocabulary::long`] with which a text begins, and their lengths.
    pub(crate) fn long_at<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = (usize, TokenId)> + 'a {
        let own = self.long.iter().map(|&id| (self.text_of(id), id));
        own.filter(|(bytes, _)| text.starts_with(bytes)).map(|(bytes, id)| (bytes.len(), id))
    }

    /// Closing brackets of the token that has the most: how many levels one token can leave.
    pub(crate) fn most_closings(&self) -> u32 {
        self.closings
    }

    /// How many objects and arrays one token can open inside each other.
    pub(crate) fn most_openings(&self) -> Openings {
        self.openings
    }

    /// What one token can do to a number.
    pub(crate) fn reach(&self) -> NumberReach {
        self.reach
    }

    /// Tells vocabularies of one process apart.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The tokens of a text, longest first from the left: a stand-in where no tokenizer is at hand.
    pub fn greedy_tokens(&self, mut text: &[u8]) -> Option<Vec<TokenId>> {
        let mut out = Vec::new();
        while !text.is_empty() {
            let long = self.long_at(text).max_by_key(|l| l.0);
            let (len, id) = long.or_else(|| self.trie.longest_match(text))?;
            out.push(id);
            text = &text[len..];
        }
        Some(out)
    }

    /// Tokens of a text with the fewest pieces, by dynamic programming over the trie.
    pub(crate) fn fewest_tokens(&self, text: &[u8]) -> Option<Vec<TokenId>> {
        let n = text.len();
        let mut best: Vec<Option<(u32, TokenId, usize)>> = vec![None; n + 1];
        best[n] = Some((0, TokenId(0), n));
        for i in (0..n).rev() {
            for (length, id) in self.long_at(&text[i..]) {
                if let Some((rest, _, _)) = best[i + length] {
                    if best[i].is_none_or(|b| rest + 1 < b.0) {
                        best[i] = Some((rest + 1, id, i + length));
                    }
                }
            }
            let mut node = Trie::ROOT;
            for j in i..n {
                match self.trie().child(node, text[j]) {
                    Some(next) => node = next,
                    None => break,
                }
                if let (Some(&id), Some((rest, _, _))) = (self.trie().tokens(node).first(), best[j + 1]) {
                    if best[i].is_none_or(|b| rest + 1 < b.0) {
                        best[i] = Some((rest + 1, id, j + 1));
                    }
                }
            }
        }
        let mut out = Vec::new();
        let mut i = 0;
        while i < n {
            let (_, id, next) = best[i]?;
            out.push(id);
            i = next;
        }
        Some(out)
    }
}
