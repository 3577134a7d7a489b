//! How far the end is: the tokens of a short completion, and what a budget of tokens leaves of a mask.
//!
//! Invariant: a distance falls by at least one a token for whoever follows its way.
//! Complexity: what lies on a way is remembered by its class, so that a long text pays for what is new in it.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::builder::Builder;
use super::core::{tokens_of, Class, StateId};
use super::state::State;
use crate::automaton::structure::Piece;
use crate::error::{Error, Kind, Result};
use crate::held;
use crate::lexical::LONGEST;
use crate::vocab::TokenId;

/// Bytes up to which the whole way is cut into the fewest tokens.
const SHORT_WAY: usize = 64;

/// Distance of a state for which no end is known.
pub const FAR: u32 = u32::MAX;

/// A distance, and the first token of the way.
type Way = (u32, Option<TokenId>);

/// The distances to an end after each token that a state allows.
pub(super) struct Ends {
    after: Vec<(u32, u32)>,
    accepting: bool,
    pub farthest: u32,
}

/// Distances that one mask of a budget may add: where each token leads to an end of its own (keys that patterns
/// tell apart), the later tokens are left out of it. The same for the lexical terms that the ways need.
const MOST_ENDS: usize = 16_384;
const MOST_TERMS: usize = 10_000;

/// States whose [`Ends`] are kept.
const KEPT_ENDS: usize = 4;

/// What is known of ways.
#[derive(Default)]
pub(super) struct Ways {
    known: FxHashMap<Class, Way>,
    ends: VecDeque<((StateId, u32), Arc<Ends>)>,
}

impl Ways {
    pub fn bytes(&self) -> usize {
        held::map(&self.known) + self.ends.iter().map(|(_, ends)| held::list(&ends.after)).sum::<usize>()
    }
}

impl Builder {
    /// A number of tokens within which an accepted end can be reached, [`FAR`] when none is known, or none that does
    /// not plainly need more than `within`.
    pub fn distance(&mut self, s: &State, within: u32) -> Result<u32> {
        let here = self.here(s)?;
        let distance = self.way(here.0.id, within)?.0;
        if distance != FAR || within == FAR {
            here.0.set_distance(distance);
            s.0.set_distance(distance);
        }
        Ok(distance)
    }

    /// Bytes that so many tokens can hold, as far as a way out may have them.
    fn bytes_of(&self, tokens: u32) -> usize {
        (tokens as usize).saturating_mul(self.vocab.longest().max(4)).min(LONGEST)
    }

    /// Distance, and the first token of the way.
    fn way(&mut self, s: StateId, within: u32) -> Result<Way> {
        if self.engine.accepting(s)? {
            return Ok((0, None));
        }
        let class = self.engine.class(s)?;
        if let Some(&known) = self.ways.known.get(&class) {
            return Ok(known);
        }
        let most = self.bytes_of(within);
        let Some(way) = self.engine.way_out(s, most)? else {
            if most == LONGEST {
                self.ways.known.insert(class, (FAR, None));
            }
            return Ok((FAR, None));
        };
        let (way, beyond) = self.until_known(s, way)?;
        let Some(tokens) = tokens_of(&self.vocab, &way) else {
            let texts =
                way.iter().filter_map(|p| if let Piece::Bytes(b) = p { Some(b.as_slice()) } else { None });
            let text = texts.collect::<Vec<_>>().concat();
            return Err(Error::new(
                Kind::VocabularyError,
                format!("the vocabulary lacks bytes that {:?} needs", String::from_utf8_lossy(&text)),
            ));
        };
        if tokens.is_empty() {
            return Ok((beyond, None));
        }
        self.remember_way(s, class, &tokens, tokens.len() as u32 + beyond)?;
        Ok(*self.ways.known.entry(class).or_insert((FAR, None)))
    }

    /// The distances of the positions on a way, whose tokens are `total` with what is known beyond.
    fn remember_way(&mut self, s: StateId, class: Class, tokens: &[TokenId], total: u32) -> Result<()> {
        let known = &mut self.ways.known;
        // the class of the first position is asked once: finding the way may have told more positions apart
        let mut keep = |class: Class, i: usize| {
            let way = (total - i as u32, Some(tokens[i]));
            let known = known.entry(class).or_insert(way);
            if way.0 < known.0 {
                *known = way;
            }
        };
        keep(class, 0);
        let (mut at, mut i) = (s, 0);
        while i < tokens.len() {
            let special = self.vocab.is_special(tokens[i]);
            let next = if special {
                i += 1;
                self.engine.take_special(at, tokens[i - 1])?
            } else {
                let run: Vec<TokenId> =
                    tokens[i..].iter().copied().take_while(|&t| !self.vocab.is_special(t)).collect();
                let text: Vec<u8> = run.iter().flat_map(|&t| self.vocab.token(t)).copied().collect();
                let (mut end, mut token) = (self.vocab.token(run[0]).len(), i + 1);
                let vocab = &self.vocab;
                self.engine.follow(at, &text, &mut |read, class| {
                    if read == end && token < tokens.len() {
                        class.into_iter().for_each(|class| keep(class, token));
                        end += vocab.token(tokens[token]).len();
                        token += 1;
                    }
                    true
                })?;
                i += run.len();
                if i == tokens.len() {
                    break;
                }
                self.engine.advance_bytes(at, &text)?
            };
            let Some(next) = next else { break };
            at = next;
            if i < tokens.len() {
                let class = self.engine.class(at)?;
                keep(class, i);
            }
        }
        Ok(())
    }

    /// The beginning of a way that leads to a position whose distance is known already, and that distance: in a
    /// long document only the lexeme at hand is new, and what follows it need not be cut into tokens again.
    fn until_known(&mut self, s: StateId, way: Vec<Piece>) -> Result<(Vec<Piece>, u32)> {
        let [Piece::Bytes(text)] = &way[..] else { return Ok((way, 0)) };
        if text.len() <= SHORT_WAY {
            return Ok((way, 0));
        }
        let (mut found, known) = (None, &self.ways.known);
        self.engine.follow(s, text, &mut |read, class| {
            let way = class.and_then(|class| known.get(&class));
            found = way.filter(|way| way.0 != FAR).map(|way| (read, way.0));
            found.is_none()
        })?;
        if let Some((read, left)) = found {
            return Ok((vec![Piece::Bytes(text[..read].to_vec())], left));
        }
        Ok((way, 0))
    }

    /// The tokens after which an accepted end is known within `budget` tokens in all; `None`: all of the mask.
    pub fn within(&mut self, s: &State, budget: u32) -> Result<Option<Vec<u32>>> {
        let here = self.here(s)?;
        // budgets of one size share their answers
        let within = budget.checked_next_power_of_two().unwrap_or(FAR).max(256);
        let ends = self.ends_after(&here, within)?;
        here.0.set_farthest(ends.farthest);
        s.0.set_farthest(ends.farthest);
        if budget > ends.farthest {
            return Ok(None);
        }
        let mut row = vec![0u32; self.vocab.mask_words()];
        let near = ends.after.iter().filter(|&&(_, left)| left < budget).map(|&(id, _)| id);
        let eos = self.vocab.eos().iter().filter(|_| ends.accepting).map(|t| t.0);
        let mut ids: Vec<u32> = near.chain(eos).collect();
        // the known way out always fits: the rest of the mask may be estimated from farther away
        if let (left, Some(first)) = self.way(here.0.id, budget)? {
            ids.extend((left <= budget).then_some(first.0));
        }
        for id in ids {
            row[id as usize >> 5] |= 1 << (id & 31);
        }
        Ok(Some(row))
    }

    /// How far the end is after each allowed token, [`FAR`] where that is plainly more than `within`: each is tried,
    /// once for a state.
    fn ends_after(&mut self, here: &State, within: u32) -> Result<Arc<Ends>> {
        let s = here.0.id;
        if let Some((_, known)) = self.ways.ends.iter().find(|e| e.0 == (s, within)) {
            return Ok(known.clone());
        }
        let mut ends = Ends { after: Vec::new(), accepting: self.engine.accepting(s)?, farthest: 0 };
        let room = self.ways.known.len() + MOST_ENDS;
        let after = self.engine.classes_after(s)?;
        let most = self.engine.terms() + MOST_TERMS;
        for id in self.mask(here)?.ids(self.vocab.mask_words()) {
            let token = TokenId(id);
            if ends.accepting && self.vocab.is_eos(token) {
                continue;
            }
            let known = match after.binary_search_by_key(&token, |c| c.0) {
                Ok(at) => self.ways.known.get(&after[at].1).map(|way| way.0),
                Err(_) => None,
            };
            // no record is made: a hundred thousand states and edges are not worth keeping
            let left = match known {
                Some(left) => left,
                // too far, which is safe; tokens come in ascending order, so the frequent ones were tried
                None if self.ways.known.len() > room || self.engine.terms() > most => FAR,
                None => match self.follow(s, token)? {
                    Some(next) => self.way(next, within)?.0,
                    None => FAR,
                },
            };
            ends.farthest = ends.farthest.max(left);
            ends.after.push((id, left));
        }
        let ends = Arc::new(ends);
        if self.ways.ends.len() >= KEPT_ENDS {
            self.ways.ends.pop_front();
        }
        self.ways.ends.push_back(((s, within), ends.clone()));
        Ok(ends)
    }
}
