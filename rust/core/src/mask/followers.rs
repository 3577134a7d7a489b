//! Successors of a state with their tokens: the edges of a canvas.
//!
//! Invariant: each token of the state's mask is in one group; tokens that end a text lead to the finished state, after
//! which only such tokens may follow.
//! Complexity: that of [`super::successors`], with every text that matters distinguished.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::automaton::TokenAutomaton;
use super::builder::Builder;
use super::row::Mask;
use super::state::{ReachedBy, State};
use crate::error::Result;
use crate::vocab::TokenId;
use crate::work;

/// A state, and the tokens that lead to it.
#[derive(Clone)]
pub struct Follower {
    /// The state.
    pub to: State,
    /// Its tokens.
    pub tokens: Arc<Mask>,
}

impl TokenAutomaton {
    /// The states that a token leads to, each with its tokens (`None`: there are more than `most`), and the work that it took
    /// to find them.
    pub fn followers(&self, s: &State, most: usize) -> Result<(Option<Vec<Follower>>, u64)> {
        self.check_state(s)?;
        let ends: Vec<u32> = self.vocabulary().eos().iter().map(|t| t.0).collect();
        let accepting = self.accepting(s)?;
        let (found, spent) = match self.is_finished(s) {
            true => (Some(Vec::new()), 0),
            false => self.with(Some(s), |builder| {
                let found = builder.followers(s, most, accepting)?;
                Ok((found, work::spent()))
            })?,
        };
        let Some(mut out) = found else { return Ok((None, spent)) };
        if accepting {
            out.push(Follower { to: self.finished(), tokens: Arc::new(Mask::Sparse(ends.into())) });
        }
        Ok((Some(out), spent))
    }
}

impl Builder {
    /// The same without the tokens that end the text.
    fn followers(&mut self, s: &State, most: usize, accepting: bool) -> Result<Option<Vec<Follower>>> {
        let here = self.here(s)?.into_owned();
        let Some(found) = self.engine.followers(here.0.id, most) else { return Ok(None) };
        let mut places = FxHashMap::default();
        let mut out = Vec::with_capacity(found.len());
        for (id, first, tokens) in found {
            places.insert(id, out.len());
            out.push(Follower { to: self.record(id, &here, ReachedBy::Token(first)), tokens });
        }
        for token in self.engine.specials(here.0.id) {
            // where the text may end, a token that ends texts does that
            if accepting && self.vocab.is_eos(token) {
                continue;
            }
            let Some(id) = self.engine.take_special(here.0.id, token) else { continue };
            let size = self.vocab.size();
            match places.get(&id) {
                Some(&place) => {
                    let own: &mut Follower = &mut out[place];
                    own.tokens = Arc::new(with(&own.tokens, token, size));
                }
                None => {
                    places.insert(id, out.len());
                    let tokens = Arc::new(Mask::Sparse(Box::new([token.0])));
                    out.push(Follower { to: self.record(id, &here, ReachedBy::Token(token)), tokens });
                }
            }
        }
        Ok(Some(out))
    }
}

fn with(mask: &Mask, token: TokenId, size: usize) -> Mask {
    let mut ids = mask.ids(size.div_ceil(32));
    ids.push(token.0);
    Mask::from_ids(ids, size)
}
