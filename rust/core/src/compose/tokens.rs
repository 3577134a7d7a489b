//! Tokens that a grammar names, by number or by text, and "any other token".
//!
//! A constraint is on texts, in whatever tokens: a token that is not special stands for its text, and "any other" for
//! every text that tokens but that one can spell.  That is every text where the token is special or its characters can be
//! spelled one by one; or, for a token of one character that no other token holds, every text without the character.
//! Invariant: a name without such a meaning in a vocabulary is refused when the vocabulary is known.
//! Complexity: one pass over the vocabulary for each name.

use rustc_hash::FxHashSet;
use serde_json::Value;

use super::{CompositeAutomaton, Part};
use crate::error::{Error, Kind, Result};
use crate::lexical::{TermId, Terms};
use crate::vocab::{TokenId, Vocabulary};

/// Tokens that a part names.
#[derive(Clone, PartialEq)]
pub(super) enum TokenName {
    Ids(u32, u32),
    Text(Box<str>),
}

impl std::fmt::Display for TokenName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TokenName::Ids(first, last) if first == last => write!(f, "<[{first}]>"),
            TokenName::Ids(first, last) => write!(f, "<[{first}-{last}]>"),
            TokenName::Text(text) => f.write_str(text),
        }
    }
}

/// Which texts a part of named tokens stands for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum TokenChoice {
    /// That of one of the tokens.
    One,
    /// That of one token, which is none of them.
    But,
    /// What any number of tokens but them spell, and the special ones among these.
    Others,
    /// Of these, the texts alone, or the special tokens.
    OtherTexts,
    OtherSpecials,
}

/// The part of a form that names tokens: `{"special": ids}`, `{"but": names}`, `{"other": names}` (or "other texts", "other
/// specials").
pub(super) fn read(form: &Value) -> Option<Part> {
    let known = [
        ("special", TokenChoice::One),
        ("but", TokenChoice::But),
        ("other", TokenChoice::Others),
        ("other texts", TokenChoice::OtherTexts),
        ("other specials", TokenChoice::OtherSpecials),
    ];
    let (value, which) = known.iter().find_map(|&(key, which)| Some((form.get(key)?, which)))?;
    let names = match value {
        Value::Array(list) => list.iter().map(named).collect::<Option<_>>()?,
        one => Box::from([named(one)?]),
    };
    Some(Part::Tokens { names, which, term: Terms::EMPTY, tokens: Vec::new(), ends: false })
}

/// A number, a pair of them (the first and the last), or a text.
fn named(value: &Value) -> Option<TokenName> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match value {
        Value::String(text) => Some(TokenName::Text(text.as_str().into())),
        Value::Array(pair) => Some(TokenName::Ids(id(pair.first()?)?, id(pair.get(1)?)?)),
        one => id(one).map(|id| TokenName::Ids(id, id)),
    }
}

fn refused(message: String) -> Error {
    Error::new(Kind::VocabularyError, message)
}

/// A language, and special tokens beside it; whether all of these end texts.
type BoundTokens = (TermId, Vec<TokenId>, bool);

/// The tokens of a name: those of a text are the special ones, where there are such.
fn tokens_of(vocab: &Vocabulary, name: &TokenName) -> Result<Vec<TokenId>> {
    let size = vocab.size() as u32;
    match name {
        &TokenName::Ids(first, last) => {
            if last >= size {
                let message =
                    format!("the grammar names the token <[{last}]>, and the vocabulary has {size}");
                return Err(refused(message));
            }
            Ok((first..=last).map(TokenId).collect())
        }
        TokenName::Text(text) => Ok(match vocab.special_tokens(text.as_bytes()) {
            special if !special.is_empty() => special,
            _ => (0..size).map(TokenId).filter(|&t| text_of(vocab, t) == text.as_bytes()).collect(),
        }),
    }
}

fn text_of(vocab: &Vocabulary, token: TokenId) -> &[u8] {
    vocab.token(token).unwrap_or_default()
}

/// Whether a text may end in a token.
fn is_end(vocab: &Vocabulary, token: TokenId) -> bool {
    vocab.eos().contains(&token)
}

impl CompositeAutomaton {
    /// Gives the named tokens of the parts their meaning in a vocabulary.
    pub(super) fn bind_tokens(&mut self, vocab: &Vocabulary) -> Result<()> {
        for i in 0..self.parts.len() {
            let Part::Tokens { names, which, .. } = &self.parts[i] else { continue };
            let (names, which) = (names.clone(), *which);
            let mut chosen = FxHashSet::default();
            for name in &*names {
                chosen.extend(tokens_of(vocab, name)?);
            }
            let (term, tokens, ends) = match which {
                TokenChoice::Others => self.others(vocab, &chosen)?,
                TokenChoice::OtherTexts => (self.others(vocab, &chosen)?.0, Vec::new(), false),
                TokenChoice::OtherSpecials => (Terms::EMPTY, self.others(vocab, &chosen)?.1, false),
                TokenChoice::One if chosen.len() == 1 => {
                    self.one(vocab, *chosen.iter().next().expect("it is one"))?
                }
                _ => self.one_of(vocab, |token| chosen.contains(&token) == (which == TokenChoice::One))?,
            };
            self.parts[i] = Part::Tokens { names, which, term, tokens, ends };
        }
        Ok(())
    }

    fn one(&mut self, vocab: &Vocabulary, token: TokenId) -> Result<BoundTokens> {
        if vocab.is_special(token) {
            return Ok((Terms::EMPTY, vec![token], is_end(vocab, token)));
        }
        let text = std::str::from_utf8(text_of(vocab, token)).ok().filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| {
            refused(format!(
                "the token <[{}]> is a part of a character: name the character as a \"literal\"",
                token.0
            ))
        })?;
        Ok((self.lexicon.terms.literal(text), Vec::new(), false))
    }

    /// One of several tokens; those that are parts of characters, and those that end texts, are none.
    fn one_of(&mut self, vocab: &Vocabulary, chosen: impl Fn(TokenId) -> bool) -> Result<BoundTokens> {
        let all =
            (0..vocab.size() as u32).map(TokenId).filter(|&token| chosen(token) && !is_end(vocab, token));
        let (special, plain): (Vec<TokenId>, Vec<TokenId>) = all.partition(|&token| vocab.is_special(token));
        let texts = plain.iter().filter_map(|&token| std::str::from_utf8(text_of(vocab, token)).ok());
        let term = self.lexicon.terms.words(texts.filter(|text| !text.is_empty()).map(Into::into).collect());
        if term == Terms::EMPTY && special.is_empty() {
            return Err(refused("the grammar names a set of tokens none of which may come".into()));
        }
        Ok((term, special, false))
    }

    fn others(&mut self, vocab: &Vocabulary, named: &FxHashSet<TokenId>) -> Result<BoundTokens> {
        let mut chars = vec![(0, 0xD7FF), (0xE000, 0x10_FFFF)];
        for &token in named.iter().filter(|&&t| !vocab.is_special(t)) {
            if let Some(c) = is_unique_text(vocab, token, named)? {
                chars = chars
                    .into_iter()
                    .flat_map(|(lo, hi)| [(lo, hi.min(c.wrapping_sub(1))), (lo.max(c + 1), hi)])
                    .filter(|&(lo, hi)| lo <= hi && !(lo..=hi).contains(&c))
                    .collect();
                chars.dedup();
            }
        }
        let any = self.lexicon.terms.class(&chars);
        let term = self.lexicon.terms.repeat(any, 1, crate::lexical::term::INF);
        let all = (0..vocab.size() as u32).map(TokenId);
        let tokens = all
            .filter(|&t| vocab.is_special(t) && !text_of(vocab, t).is_empty())
            .filter(|t| !is_end(vocab, *t) && !named.contains(t))
            .collect();
        Ok((term, tokens, false))
    }
}

/// The token's character, if it is one that no other token contains; `None` where others spell the token's
/// text.
fn is_unique_text(vocab: &Vocabulary, token: TokenId, named: &FxHashSet<TokenId>) -> Result<Option<u32>> {
    let bytes = text_of(vocab, token);
    let others = || {
        let all = (0..vocab.size() as u32).map(TokenId);
        all.filter(|&t| !vocab.is_special(t) && !named.contains(&t)).map(|t| text_of(vocab, t))
    };
    if bytes.iter().all(|b| others().any(|other| other == [*b])) {
        return Ok(None);
    }
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let mut chars = text.chars();
    let single = chars.next().filter(|_| chars.next().is_none());
    let held = others().any(|other| other.windows(bytes.len().max(1)).any(|part| part == bytes));
    match single {
        Some(c) if !held => Ok(Some(c as u32)),
        _ => Err(refused(format!(
            "what tokens other than <[{}]> ({text:?}) spell is no plain language in this vocabulary; write it as a [^class]",
            token.0
        ))),
    }
}
