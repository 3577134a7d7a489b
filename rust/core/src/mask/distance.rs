//! How far the end is: the tokens of a short completion, and what a budget of tokens leaves of a mask.
//!
//! Invariant: along a completion, the distance falls by at least one per token. What the mask of a budget has
//! allowed can be finished within the budget, whatever memory was freed since ([`CachedDistance`]).
//! Complexity: completions are memoised by class, so that a long text pays only for its new part.

use std::sync::Arc;

use super::builder::Builder;
use super::completion::{
    length, tokens_of, CachedDistance, Completion, CompletionEnds, Link, TokenGroups, FAR,
};
use super::engine::{DistanceClass, StateId};
use super::row::Mask;
use super::state::State;
use crate::automaton::byte_automaton::Piece;
use crate::error::{Error, Kind, Result};
use crate::lexical::LONGEST;
use crate::vocab::{TokenId, TokenSet};

/// Bytes up to which a whole completion is cut into the fewest tokens.
const SHORT_WAY: usize = 64;

/// Most distances that one mask of a budget may add: where each token leads to an end of its own (keys that
/// patterns distinguish), the mask lacks the later tokens. The same for the lexical terms that completions
/// need.
const MOST_ENDS: usize = 16_384;
const MOST_TERMS: usize = 10_000;

/// States whose [`CompletionEnds`] are kept.
const KEPT_ENDS: usize = 4;

/// Tokens beyond the farthest end up to which a budget counts as near: what was found for it is kept with the state.
const NEAR: u32 = 64;

impl Builder {
    /// A number of tokens within which an accepting state can be reached, [`FAR`] when none is known, or only
    /// one that plainly needs more than `within`.
    pub fn distance(&mut self, s: &State, within: u32) -> Result<u32> {
        let here = self.here(s)?;
        let distance = self.shortest(s, &here, within)?.map_or(FAR, |completion| length(&completion));
        if distance != FAR || within == FAR {
            here.0.set_distance(distance);
            s.0.set_distance(distance);
        }
        Ok(distance)
    }

    /// The shortest completion ever known of a state.
    fn shortest(&mut self, s: &State, here: &State, within: u32) -> Result<Option<Completion>> {
        let found = self.completion(here.0.id, within)?;
        Ok(match s.0.cached_distance() {
            Some(mut cached_distance) => cached_distance.shorter(found),
            None => found,
        })
    }

    /// Most bytes of so many tokens, at most those of the longest completion.
    fn bytes_of(&self, tokens: u32) -> usize {
        (tokens as usize).saturating_mul(self.vocab.longest().max(4)).min(LONGEST)
    }

    /// A completion, `None` when none is known.
    fn completion(&mut self, s: StateId, within: u32) -> Result<Option<Completion>> {
        if self.engine.accepting(s) {
            return Ok(Some(None));
        }
        let class = self.engine.class(s);
        if let Some(known) = self.completions.known.get(&class) {
            return Ok(known.clone());
        }
        let most = self.bytes_of(within);
        let Some(completion) = self.engine.completion(s, most) else {
            if most == LONGEST {
                self.completions.known.insert(class, None);
            }
            return Ok(None);
        };
        let (completion, beyond) = self.until_known(s, completion);
        let Some(tokens) = tokens_of(&self.vocab, &completion) else {
            let texts =
                completion
                    .iter()
                    .filter_map(|p| if let Piece::Bytes(b) = p { Some(b.as_slice()) } else { None });
            let text = texts.collect::<Vec<_>>().concat();
            return Err(Error::new(
                Kind::VocabularyError,
                format!("the vocabulary lacks bytes that {:?} needs", String::from_utf8_lossy(&text)),
            ));
        };
        // the class of the first position is computed once: the search may since distinguish more positions
        let mut classes = vec![None; tokens.len()];
        self.classes_on(s, &tokens, &mut classes);
        if let Some(first) = classes.first_mut() {
            *first = Some(class);
        }
        Ok(Some(self.remember_completion(&tokens, &classes, beyond)))
    }

    /// Records a completion at each of its positions, except where a known one is as short; returns that of
    /// the first.
    fn remember_completion(
        &mut self,
        tokens: &[TokenId],
        classes: &[Option<DistanceClass>],
        beyond: Completion,
    ) -> Completion {
        let mut completion = beyond;
        for (&token, class) in tokens.iter().zip(classes).rev() {
            let left = length(&completion) + 1;
            let known =
                class.and_then(|class| self.completions.known.get(&class)).and_then(|known| known.as_ref());
            if let Some(known) = known.filter(|known| length(known) <= left) {
                completion = known.clone();
                continue;
            }
            completion = Some(Arc::new(Link { token, left, next: completion }));
            self.completions.links += 1;
            if let Some(class) = *class {
                self.completions.known.insert(class, Some(completion.clone()));
            }
        }
        completion
    }

    /// The classes of the positions before each of the tokens of a completion, as far as they are known; not
    /// of the first.
    fn classes_on(&mut self, s: StateId, tokens: &[TokenId], classes: &mut [Option<DistanceClass>]) {
        let (mut at, mut i) = (s, 0);
        while i < tokens.len() {
            let special = self.vocab.is_special(tokens[i]);
            let next = if special {
                i += 1;
                self.engine.take_special(at, tokens[i - 1])
            } else {
                let run: Vec<TokenId> =
                    tokens[i..].iter().copied().take_while(|&t| !self.vocab.is_special(t)).collect();
                let text: Vec<u8> = run.iter().flat_map(|&t| self.vocab.text_of(t)).copied().collect();
                let (mut end, mut token) = (self.vocab.text_of(run[0]).len(), i + 1);
                let vocab = &self.vocab;
                self.engine.follow(at, &text, &mut |read, class| {
                    if read == end && token < tokens.len() {
                        classes[token] = class;
                        end += vocab.text_of(tokens[token]).len();
                        token += 1;
                    }
                    true
                });
                i += run.len();
                if i == tokens.len() {
                    break;
                }
                self.engine.advance_bytes(at, &text)
            };
            let Some(next) = next else { break };
            at = next;
            if i < tokens.len() {
                classes[i] = Some(self.engine.class(at));
            }
        }
    }

    /// The prefix of a completion up to a position with a known one, and the known one: in a long document
    /// only the current lexeme is new, and what follows it need not be cut into tokens again.
    fn until_known(&mut self, s: StateId, completion: Vec<Piece>) -> (Vec<Piece>, Completion) {
        let [Piece::Bytes(text)] = &completion[..] else { return (completion, None) };
        if text.len() <= SHORT_WAY {
            return (completion, None);
        }
        let (mut found, known) = (None, &self.completions.known);
        self.engine.follow(s, text, &mut |read, class| {
            let completion =
                class.and_then(|class| known.get(&class)).and_then(|completion| completion.as_ref());
            found = completion.map(|completion| (read, completion.clone()));
            found.is_none()
        });
        if let Some((read, beyond)) = found {
            return (vec![Piece::Bytes(text[..read].to_vec())], beyond);
        }
        (completion, None)
    }

    /// Whether a bound shows that an end is within a budget after any allowed token; no token is tried.
    pub fn is_far(&mut self, s: &State, budget: u32) -> Result<bool> {
        let here = self.here(s)?;
        let most = self.engine.remaining_bound(here.0.id).filter(|&most| most < budget);
        if let Some(most) = most {
            here.0.set_farthest(most);
            s.0.set_farthest(most);
        }
        Ok(most.is_some())
    }

    /// The tokens after which an accepted end is known within `budget` tokens in all; `None`: all of the mask.
    pub fn within(&mut self, s: &State, budget: u32) -> Result<Option<Vec<u32>>> {
        if self.is_far(s, budget)? {
            return Ok(None);
        }
        let here = self.here(s)?;
        // budgets of one size (a power of two) share their results
        let within = budget.checked_next_power_of_two().unwrap_or(FAR).max(256);
        let known = s.0.cached_distance().and_then(|cached_distance| cached_distance.ends.clone());
        let known = known.filter(|(sought, _)| *sought >= within);
        let ends = match known {
            Some((_, ends)) => ends,
            None => self.ends_after(&here, within)?,
        };
        here.0.set_farthest(ends.farthest);
        s.0.set_farthest(ends.farthest);
        if budget <= ends.farthest.saturating_add(NEAR) {
            let cached_distance = s.0.cached_distance();
            let lacks = |cached_distance: &CachedDistance| {
                cached_distance.ends.as_ref().is_none_or(|(sought, _)| *sought < within)
            };
            if let Some(mut cached_distance) =
                cached_distance.filter(|cached_distance| lacks(cached_distance))
            {
                self.published += ends.bytes();
                cached_distance.ends = Some((within, ends.clone()));
            }
        }
        if budget > ends.farthest {
            return Ok(None);
        }
        let mut row = vec![0u32; self.vocab.mask_words()];
        let mut part = row.clone();
        for (_, ids) in ends.groups.iter().filter(|(completion, _)| length(completion) < budget) {
            ids.add(&mut row, &mut part);
        }
        // the known completion always fits: the distances of the others may be overestimates
        let completion = self.shortest(s, &here, budget)?.flatten();
        let eos = self.vocab.eos().iter().filter(|_| ends.accepting).map(|t| t.0);
        let first = completion.filter(|link| link.left <= budget).map(|link| link.token.0);
        for id in eos.chain(first) {
            row.allow(id);
        }
        Ok(Some(row))
    }

    /// A completion after a token; no record is made: a hundred thousand states and edges are not worth
    /// keeping.
    fn completion_after(&mut self, s: StateId, token: TokenId, within: u32) -> Result<Option<Completion>> {
        match self.follow(s, token) {
            Some(next) => self.completion(next, within),
            None => Ok(None),
        }
    }

    /// The completions after each allowed token, without those that are plainly longer than `within`: one
    /// token of each class is tried, once for a state.
    fn ends_after(&mut self, here: &State, within: u32) -> Result<Arc<CompletionEnds>> {
        let s = self.engine.uncounted(here.0.id);
        if let Some((_, known)) = self.completions.ends.iter().find(|e| e.0 == (s, within)) {
            return Ok(known.clone());
        }
        let accepting = self.engine.accepting(s);
        let room = self.completions.known.len() + MOST_ENDS;
        let after = self.engine.classes_after(s);
        let most = self.engine.terms() + MOST_TERMS;
        let mut found = TokenGroups::default();
        for successor in after {
            let known = self.completions.known.get(&successor.class).cloned();
            let completion = match known {
                Some(completion) => completion,
                // taken as too far, which is safe; the frequent tokens were tried
                None if self.completions.known.len() > room || self.engine.terms() > most => None,
                None => self.completion_after(s, successor.first, within)?,
            };
            found.add(completion, successor.tokens);
        }
        for token in self.engine.specials(s) {
            if !(accepting && self.vocab.is_eos(token)) {
                let completion = self.completion_after(s, token, within)?;
                found.add(completion, Arc::new(Mask::Sparse(Box::new([token.0]))));
            }
        }
        let (groups, farthest) = found.all(self.vocab.size());
        let ends = Arc::new(CompletionEnds { groups, accepting, farthest });
        if self.completions.ends.len() >= KEPT_ENDS {
            self.completions.ends.pop_front();
        }
        self.completions.ends.push_back(((s, within), ends.clone()));
        Ok(ends)
    }
}
