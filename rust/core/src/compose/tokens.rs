//! Tokens that a grammar names, by number or by text, and "any other token".
//!
//! A constraint is on texts, in whatever tokens: a token that is not special stands for its text, and "any other" for
//! every text that tokens but that one can spell.  That is every text where the token is special or its characters can be
//! spelled one by one; or, for a token of one character that no other token holds, every text without the character.
//! Invariant: what a vocabulary gives no such meaning is refused when the vocabulary is known.
//! Complexity: one pass over the vocabulary for each name.

use serde_json::Value;

use super::{CompositeAutomaton, Named, Part};
use crate::error::{Error, Kind, Result};
use crate::lexical::Terms;
use crate::vocab::{TokenId, Vocabulary};

/// The part of a form that names a token by its number, or any other token.
pub(super) fn read(form: &Value) -> Option<Part> {
    let (term, tokens) = (Terms::EMPTY, Vec::new());
    if let Some(id) = form["special"].as_u64() {
        return Some(Part::Numbered { id: id as u32, term, tokens, ends: false });
    }
    let name = match &form["other"] {
        Value::String(text) => Named::Text(text.as_str().into()),
        other => Named::Id(other.as_u64()? as u32),
    };
    Some(Part::Other { name, term, tokens })
}

fn refused(message: String) -> Error {
    Error::new(Kind::VocabularyError, message)
}

fn token_of(vocab: &Vocabulary, id: u32) -> Result<TokenId> {
    if id as usize >= vocab.size() {
        let message =
            format!("the grammar names the token <[{id}]>, and the vocabulary has {}", vocab.size());
        return Err(refused(message));
    }
    Ok(TokenId(id))
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
            let bound = match &self.parts[i] {
                &Part::Numbered { id, .. } => self.numbered(vocab, id)?,
                Part::Other { name, .. } => {
                    let name = name.clone();
                    self.other(vocab, name)?
                }
                _ => continue,
            };
            self.parts[i] = bound;
        }
        Ok(())
    }

    fn numbered(&mut self, vocab: &Vocabulary, id: u32) -> Result<Part> {
        let token = token_of(vocab, id)?;
        if vocab.is_special(token) {
            return Ok(Part::Numbered {
                id,
                term: Terms::EMPTY,
                tokens: vec![token],
                ends: is_end(vocab, token),
            });
        }
        let text = std::str::from_utf8(text_of(vocab, token)).ok().filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| {
            refused(format!(
                "the token <[{id}]> is a part of a character: name the character as a \"literal\""
            ))
        })?;
        let term = self.lexicon.terms.literal(text);
        Ok(Part::Numbered { id, term, tokens: Vec::new(), ends: false })
    }

    fn other(&mut self, vocab: &Vocabulary, name: Named) -> Result<Part> {
        let tokens_named = match &name {
            Named::Id(id) => vec![token_of(vocab, *id)?],
            Named::Text(text) => match vocab.special_tokens(text.as_bytes()) {
                special if !special.is_empty() => special,
                _ => (0..vocab.size() as u32)
                    .map(TokenId)
                    .filter(|&t| text_of(vocab, t) == text.as_bytes())
                    .collect(),
            },
        };
        let mut chars = vec![(0, 0xD7FF), (0xE000, 0x10_FFFF)];
        for &token in tokens_named.iter().filter(|&&t| !vocab.is_special(t)) {
            if let Some(c) = only_here(vocab, token, &tokens_named)? {
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
            .filter(|t| !is_end(vocab, *t) && !tokens_named.contains(t))
            .collect();
        Ok(Part::Other { name, term, tokens })
    }
}

/// The character that no other token holds, where the token is that; none where others spell the token's text.
fn only_here(vocab: &Vocabulary, token: TokenId, named: &[TokenId]) -> Result<Option<u32>> {
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
