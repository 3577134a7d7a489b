//! The slow, right version of a mask: every token, byte by byte, from the state.
//!
//! It shares the automaton over bytes with the fast version, and nothing of the token layer: no trie, no
//! shared lexical masks, no memo.

use super::builder::Builder;
use super::state::State;
use crate::error::Result;
use crate::vocab::TokenId;
use crate::work;

/// Sorted ids of the tokens that the state allows.
pub(super) fn mask(builder: &mut Builder, s: &State) -> Result<Vec<u32>> {
    let here = builder.here(s)?.0.id;
    let accepting = builder.engine.accepting(here);
    let mut out = Vec::new();
    for id in 0..builder.vocab.size() as u32 {
        let token = TokenId(id);
        // each token has the work limit of a call
        work::refill();
        if builder.vocab.is_eos(token) && accepting || builder.follow(here, token).is_some() {
            out.push(id);
        }
    }
    Ok(out)
}
