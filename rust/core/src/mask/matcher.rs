//! One text as it grows: what a serving engine keeps for a request.
//!
//! Invariant: a matcher that took tokens and rolled them back equals one that never took them; a call that
//! fails leaves it as it was. What [`Matcher::fill_mask`] allows is accepted, and with `max_tokens` an end
//! within them is always in reach.
//! Complexity: a known token costs two atomic loads, a rollback the length that is dropped, a fork a copy of
//! the text's tokens and states.
//! Memory: a state and a number per token; states are shared with every other text that reached them.
//!
//! ```
//! use std::sync::Arc;
//! use tokenform_core::vocab::{TokenId, Vocabulary};
//! use tokenform_core::{Grammar, Limits, Matcher};
//!
//! let tokens = (0..=255u8).map(|b| Box::from([b])).chain([Box::from(*b"</s>")]).collect();
//! let vocabulary = Arc::new(Vocabulary::new(tokens, vec![256], &[256])?);
//! let automaton = Grammar::regex("ab|ac")?.compile(vocabulary, Limits::default())?;
//!
//! let mut matcher = Matcher::new(automaton, None)?;
//! let draft = [b'a', b'b', b'c'].map(|b| TokenId(b.into()));
//! assert_eq!(matcher.validate_tokens(&draft)?, 2);
//! matcher.accept_tokens(&draft[..2])?;
//! assert!(matcher.is_accepting()? && !matcher.is_terminated());
//! matcher.rollback(1)?;
//! assert_eq!(matcher.allowed_tokens()?, [b'b', b'c'].map(u32::from));
//! # Ok::<(), tokenform_core::Error>(())
//! ```

use std::sync::Arc;

use super::automaton::{TokenAutomaton, FAR};
use super::batch::{self, Answer, Asked, Row};
use super::state::State;
use crate::error::{Error, Kind, Result};
use crate::vocab::{TokenId, TokenSet};

/// A text over the tokens of an automaton: it takes tokens, takes them back, and fills masks.
#[derive(Clone)]
pub struct Matcher {
    automaton: Arc<TokenAutomaton>,
    start: State,
    /// The tokens taken.
    tokens: Vec<TokenId>,
    /// The state after each of them.
    states: Vec<State>,
    max_tokens: Option<u32>,
}

impl Matcher {
    /// A matcher before its first token; with `max_tokens` every text ends within so many tokens, without the
    /// one that ends it.
    ///
    /// # Errors
    /// [`Kind::BudgetTooSmall`]: no text of the automaton is known to end within `max_tokens`.
    pub fn new(automaton: Arc<TokenAutomaton>, max_tokens: Option<u32>) -> Result<Self> {
        let start = automaton.start();
        let this = Matcher { automaton, start, tokens: Vec::new(), states: Vec::new(), max_tokens };
        if let Some(most) = max_tokens {
            if !this.automaton.fits(&this.start, most)? {
                return Err(this.too_small(most));
            }
        }
        Ok(this)
    }

    /// The error of a budget that is too small, with the least number that is known without the budget's
    /// limit.
    fn too_small(&self, most: u32) -> Error {
        let least = match self.automaton.distance(&self.start, FAR) {
            Ok(least) => Some(least).filter(|&least| least != FAR),
            Err(error) if error.kind == Kind::Interrupted => return error,
            // none was found within the work of a call
            Err(_) => None,
        };
        let known = match least {
            Some(least) => format!("the shortest known needs {least}"),
            None => format!("any that is known needs more than {most}"),
        };
        let message = format!("no text ends within max_tokens={most} tokens: {known}");
        Error { least, ..Error::new(Kind::BudgetTooSmall, message) }
    }

    /// The automaton that it is a text of.
    pub fn automaton(&self) -> &Arc<TokenAutomaton> {
        &self.automaton
    }

    /// The state after the tokens taken.
    pub fn state(&self) -> &State {
        self.states.last().unwrap_or(&self.start)
    }

    /// The tokens taken, the one that ended the text included.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Tokens within which every text ends; `None`: without a limit.
    pub fn max_tokens(&self) -> Option<u32> {
        self.max_tokens
    }

    /// Tokens that the text may still have, without the one that ends it; `None`: without a limit.
    pub fn budget(&self) -> Option<u32> {
        self.budget_after(self.tokens.len())
    }

    fn budget_after(&self, taken: usize) -> Option<u32> {
        Some(self.max_tokens?.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX)))
    }

    /// The tokens that end a text, sorted.
    pub fn stop_token_ids(&self) -> &[TokenId] {
        self.automaton.vocabulary().eos()
    }

    /// Whether a token that ends the text was taken.
    pub fn is_terminated(&self) -> bool {
        self.automaton.is_finished(self.state())
    }

    /// Whether the text may end here: whether the masks allow the tokens that end it.
    pub fn is_accepting(&self) -> Result<bool> {
        self.automaton.accepting(self.state())
    }

    /// The state after a token as far as that is known, and `Some(None)` for one that is known to be refused;
    /// without a builder.
    fn known_follow(&self, s: &State, token: TokenId, budget: Option<u32>) -> Option<Option<State>> {
        let Some(next) = s.known_next(self.automaton.vocabulary(), token) else {
            let known = (token.0 as usize) < self.automaton.vocabulary().size();
            // a refused token has no edge: the mask says so for each that a draft may name
            return (known && !s.known_mask()?.has(token.0)).then_some(None);
        };
        match budget {
            Some(0) => None,
            Some(budget) if s.is_known_far(budget) => Some(Some(next)),
            Some(budget) => (next.known_distance()? < budget).then_some(Some(next)),
            None => Some(Some(next)),
        }
    }

    /// The state after a token; `None`: it is not allowed, or no end would be within the budget.
    fn follow(&self, s: &State, token: TokenId, budget: Option<u32>) -> Result<Option<State>> {
        if let Some(known) = self.known_follow(s, token, budget) {
            return Ok(known);
        }
        let Some(next) = self.automaton.follow(s, token)? else { return Ok(None) };
        let Some(budget) = budget else { return Ok(Some(next)) };
        if self.automaton.is_finished(&next) {
            return Ok(Some(next));
        }
        if budget == 0 {
            return Ok(None);
        }
        // an end after any token, an end after this one, or else what a mask of this budget says
        let fits =
            self.automaton.is_far(s, budget)? || self.automaton.distance(&next, budget - 1)? < budget || {
                let row = self.automaton.mask_within(s, budget)?;
                row.allows(token.0)
            };
        Ok(fits.then_some(next))
    }

    /// The states after as many of the tokens as are allowed one after the other.
    fn walk<E>(
        &self,
        tokens: &[TokenId],
        follow: impl Fn(&State, TokenId, Option<u32>) -> std::result::Result<Option<State>, E>,
    ) -> std::result::Result<Vec<State>, E> {
        let mut states: Vec<State> = Vec::with_capacity(tokens.len());
        for &token in tokens {
            let from = states.last().unwrap_or(self.state());
            match follow(from, token, self.budget_after(self.tokens.len() + states.len()))? {
                Some(next) => states.push(next),
                None => break,
            }
        }
        Ok(states)
    }

    fn walk_known(&self, tokens: &[TokenId]) -> Option<Vec<State>> {
        self.walk(tokens, |s, token, budget| self.known_follow(s, token, budget).ok_or(())).ok()
    }

    /// How many of the tokens may follow one after the other; the matcher does not change.
    pub fn validate_tokens(&self, tokens: &[TokenId]) -> Result<usize> {
        Ok(self.walk(tokens, |s, token, budget| self.follow(s, token, budget))?.len())
    }

    /// Takes the tokens, all of them or none.
    ///
    /// # Errors
    /// [`Kind::TokenRejected`]: one of them is not allowed where it stands.
    pub fn accept_tokens(&mut self, tokens: &[TokenId]) -> Result<()> {
        let states = self.walk(tokens, |s, token, budget| self.follow(s, token, budget))?;
        if states.len() < tokens.len() {
            return Err(self.rejection(states.last().unwrap_or(self.state()), tokens, states.len()));
        }
        self.take(tokens, states);
        Ok(())
    }

    /// [`Matcher::validate_tokens`] where that takes no builder; else `None`.
    pub fn validate_known(&self, tokens: &[TokenId]) -> Option<usize> {
        Some(self.walk_known(tokens)?.len())
    }

    /// [`Matcher::accept_tokens`] where that takes no builder; else `false`, and nothing was taken.
    pub fn accept_known(&mut self, tokens: &[TokenId]) -> bool {
        let known = self.walk_known(tokens).filter(|states| states.len() == tokens.len());
        let taken = known.map(|states| self.take(tokens, states));
        taken.is_some()
    }

    fn take(&mut self, tokens: &[TokenId], states: Vec<State>) {
        self.tokens.extend_from_slice(tokens);
        self.states.extend(states);
    }

    fn rejection(&self, at: &State, tokens: &[TokenId], place: usize) -> Error {
        let token = tokens[place];
        let mut error = match self.automaton.follow(at, token) {
            Err(error) => return error,
            Ok(None) => self.automaton.rejection(at, token),
            Ok(Some(_)) => {
                let most = self.max_tokens.unwrap_or(u32::MAX);
                let message =
                    format!("token {}: the text could not end within max_tokens={most} after it", token.0);
                Error::new(Kind::TokenRejected, message)
            }
        };
        if tokens.len() > 1 && error.kind == Kind::TokenRejected {
            error.message = format!("{} (token {place} of {}; none was taken)", error.message, tokens.len());
        }
        error
    }

    /// Takes back the last `count` tokens.
    ///
    /// # Errors
    /// [`Kind::InvalidState`]: fewer were taken.
    pub fn rollback(&mut self, count: usize) -> Result<()> {
        let Some(left) = self.tokens.len().checked_sub(count) else {
            let taken = self.tokens.len();
            let message = format!("{count} tokens can't be rolled back: only {taken} were accepted");
            return Err(Error::new(Kind::InvalidState, message));
        };
        self.tokens.truncate(left);
        self.states.truncate(left);
        Ok(())
    }

    /// Takes back every token.
    pub fn reset(&mut self) {
        self.tokens.clear();
        self.states.clear();
    }

    /// An independent matcher at the same place.
    pub fn fork(&self) -> Self {
        self.clone()
    }

    /// Writes the mask: bit `t % 32` of word `t / 32` says whether token `t` may come next.
    ///
    /// # Errors
    /// [`Kind::OptionError`]: `out` has not just the words of a mask, [`crate::vocab::Vocabulary::mask_words`].
    pub fn fill_mask(&self, out: &mut [u32]) -> Result<()> {
        let mut row = self.row(out);
        row.fill(Asked::default());
        row.answer.map(|_| ())
    }

    /// The row of a batch: see [`batch::fill`].
    pub fn row<'a>(&'a self, out: &'a mut [u32]) -> Row<'a> {
        let (automaton, state) = (&*self.automaton, self.state());
        Row { automaton, state, budget: self.budget(), out, answer: Ok(Answer::default()) }
    }

    /// Masks for a draft: the first row is what may come next, row `i + 1` what may come after token `i` of the draft.
    ///
    /// `parents`: the token that each follows, by its place in the draft, `None` for the text so far, every
    /// one before those that follow it; without it the draft is a chain. Returns which of the tokens are
    /// allowed where they stand; rows after the others, and after the end of the text, are zeros.
    ///
    /// # Errors
    /// [`Kind::OptionError`]: `out` has not one row more than there are tokens, or a parent stands behind its child.
    pub fn fill_draft_masks(
        &self,
        tokens: &[TokenId],
        parents: Option<&[Option<usize>]>,
        out: &mut [u32],
        threads: usize,
    ) -> Result<Vec<bool>> {
        let width = self.automaton.vocabulary().mask_words();
        self.automaton.vocabulary().check_words(out.len(), tokens.len() + 1)?;
        let parent = |i: usize| parents.map_or(i.checked_sub(1), |p| p[i]);
        let fits = parents.is_none_or(|p| p.len() == tokens.len());
        if !fits || (0..tokens.len()).any(|i| parent(i).is_some_and(|p| p >= i)) {
            let message = "parents must name for each token of the draft one that stands before it, or none";
            return Err(Error::new(Kind::OptionError, message));
        }
        let mut nodes: Vec<Option<(State, usize)>> = Vec::with_capacity(tokens.len());
        let here = (self.state().clone(), self.tokens.len());
        for (i, &token) in tokens.iter().enumerate() {
            let before = parent(i).map_or(Some(&here), |p| nodes[p].as_ref());
            let node = match before {
                Some((s, taken)) => {
                    self.follow(s, token, self.budget_after(*taken))?.map(|next| (next, taken + 1))
                }
                None => None,
            };
            nodes.push(node);
        }
        let allowed = nodes.iter().map(Option::is_some).collect();
        out.fill(0);
        let places = std::iter::once(Some(&here)).chain(nodes.iter().map(Option::as_ref));
        let mut rows: Vec<Row<'_>> = out
            .chunks_mut(width.max(1))
            .zip(places)
            .filter_map(|(out, place)| {
                let (state, taken) = place?;
                let budget = self.budget_after(*taken);
                Some(Row { automaton: &self.automaton, state, budget, out, answer: Ok(Answer::default()) })
            })
            .collect();
        batch::fill(&mut rows, Asked::default(), threads);
        rows.into_iter().try_for_each(|row| row.answer.map(|_| ()))?;
        Ok(allowed)
    }

    /// [`Matcher::fill_draft_masks`] of a chain where that takes no builder: how many of the tokens may follow one after
    /// the other. `None`: something has to be built, and `out` is to be filled anew.
    pub fn fill_known_draft_masks(&self, tokens: &[TokenId], out: &mut [u32]) -> Option<usize> {
        let states = self.walk_known(tokens)?;
        let mut rows = out.chunks_exact_mut(self.automaton.vocabulary().mask_words().max(1));
        for (place, state) in std::iter::once(self.state()).chain(&states).enumerate() {
            let budget = self.budget_after(self.tokens.len() + place);
            state.known_mask_within(budget)?.write(rows.next()?);
        }
        rows.for_each(|row| row.fill(0));
        Some(states.len())
    }

    /// Ids of the tokens that may come next, ascending.
    pub fn allowed_tokens(&self) -> Result<Vec<u32>> {
        let words = self.automaton.vocabulary().mask_words();
        match self.budget() {
            None => Ok(self.automaton.mask(self.state())?.ids(words)),
            Some(_) => {
                let mut row = vec![0; words];
                self.fill_mask(&mut row)?;
                Ok(row.ids())
            }
        }
    }

    /// The bytes that every accepted continuation begins with.
    pub fn forced_bytes(&self) -> Result<Vec<u8>> {
        self.automaton.forced_bytes(self.state())
    }

    /// The whole characters of [`Matcher::forced_bytes`].
    pub fn forced_text(&self) -> Result<String> {
        let mut bytes = self.forced_bytes()?;
        if let Err(cut) = std::str::from_utf8(&bytes) {
            bytes.truncate(cut.valid_up_to());
        }
        Ok(String::from_utf8(bytes).unwrap_or_default())
    }

    /// Tokens that spell [`Matcher::forced_text`], the longest first, as far as the budget allows them.
    ///
    /// A model's own tokenizer may cut that text otherwise: encode it yourself where that matters.
    pub fn forced_tokens(&self) -> Result<Vec<TokenId>> {
        let text = self.forced_text()?;
        let mut tokens = self.automaton.vocabulary().greedy_tokens(text.as_bytes()).unwrap_or_default();
        tokens.truncate(self.validate_tokens(&tokens)?);
        Ok(tokens)
    }
}
