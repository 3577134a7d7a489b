//! The public interface of the engine: a constraint over the tokens of a vocabulary, for any number of threads.
//!
//! A state's record is read without a lock. What it lacks is made by the builder of an epoch, which one
//! thread at a time takes ([`super::epoch`]), in one of the shards ([`super::shards`]).
//! Invariant: an error or a panic belongs to the call in which it happened. All that the call was building is
//! dropped and made again on demand, so that nothing incomplete is kept.
//! Memory: an epoch ends when it holds more than `Limits.memory` (without what live texts brought along from the one
//! before).  States that a caller holds stay valid: the next epoch makes them again from their texts.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;

use super::builder::Builder;
pub use super::completion::FAR;
use super::core::Core;
use super::engine::{Engine, StateId};
use super::epoch::{BuilderSlot, Epoch, SHARDS};
use super::reclaim;
pub use super::refusal::Refusal;
use super::row::Mask;
use super::state::{Record, State};
use crate::automaton::byte_automaton::{ByteAutomaton, Left};
use crate::error::{Error, Kind, Result};
use crate::limits::Limits;
use crate::vocab::{TokenId, Vocabulary};
use crate::work;

/// Most portions in which a call reads a text again, each about a second: a longer text is not read by one
/// call.
const PORTIONS: usize = 16;

/// Most bytes that one call returns of what every continuation shares.
const LONGEST_FORCED: usize = 4096;

/// Makes the engine of a constraint that exists already.
pub type First = Box<dyn FnOnce() -> Box<dyn Engine>>;

/// Makes the constraint again, for the next epoch.
pub type Recipe = Box<dyn Fn() -> Result<Box<dyn Engine>> + Send + Sync>;

/// A structure as an engine over the tokens of a vocabulary.
pub fn engine<S: ByteAutomaton + 'static>(
    mut structure: S,
    vocab: &Arc<Vocabulary>,
    limits: &Limits,
) -> Box<dyn Engine> {
    structure.set_deepest(limits.depth);
    Box::new(Core::new(structure, vocab.clone()))
}

/// What an automaton holds, and why.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// States of the current epochs.
    pub states: usize,
    /// Bytes that the current epochs hold.
    pub bytes: usize,
    /// Those of them that texts of other epochs needed.
    pub moved: usize,
    /// Builders that threads use side by side.
    pub shards: usize,
    /// Epochs so far.
    pub epochs: u32,
    /// Those that ended at the bound on memory.
    pub full: u32,
    /// Those that ended with a call that was cut short.
    pub failed: u32,
    /// Those that ended to free memory for the process.
    pub cleared: u32,
    /// Units of work of all calls so far, but for those that were cut.
    pub work: u64,
}

/// A constraint over the tokens of a vocabulary.
///
/// Threads share it; a state is valid as long as somebody holds it.
///
/// ```
/// use std::sync::Arc;
/// use tokenform_core::{Grammar, Limits, TokenId, Vocabulary};
///
/// let tokens = (0..=255u8).map(|b| Box::from([b])).chain([Box::from(*b"</s>")]).collect();
/// let vocabulary = Arc::new(Vocabulary::new(tokens, vec![256], &[256])?);
/// let automaton = Grammar::choice(["no", "nil"])?.compile(vocabulary, Limits::default())?;
/// let after = automaton.advance(&automaton.start(), TokenId(b'n'.into()))?;
/// assert!(automaton.allows(&after, TokenId(b'o'.into()))? && !automaton.accepting(&after)?);
/// // tokens that the vocabulary does not have are refused like any other
/// assert!(!automaton.allows(&after, TokenId(9999))?);
/// assert_eq!(automaton.distance(&after, 100)?, 1);
/// # Ok::<(), tokenform_core::Error>(())
/// ```
pub struct TokenAutomaton {
    pub(super) number: u64,
    vocab: Arc<Vocabulary>,
    limits: Limits,
    recipe: Recipe,
    /// The current epoch of each shard; all but the first are opened when threads meet.
    pub(super) shards: [ArcSwapOption<Epoch>; SHARDS],
    pub(super) epochs: AtomicU32,
    pub(super) numbers: AtomicU32,
    /// Waits for builders since a thread last went to another shard.
    pub(super) lost: AtomicU32,
    /// The state after an end-of-text token.
    finished: State,
    /// When it was last used, on the clock of [`reclaim`].
    used: AtomicU64,
    full: AtomicU32,
    failed: AtomicU32,
    work: AtomicU64,
    pub(super) cleared: AtomicU32,
}

impl reclaim::Holder for TokenAutomaton {
    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn last_used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn let_go(&self) {
        self.let_go();
    }
}

impl TokenAutomaton {
    /// The automaton of a constraint that `recipe` makes, each time the same; `first`: one that exists
    /// already.
    pub fn new(
        first: Option<First>,
        recipe: Recipe,
        vocab: Arc<Vocabulary>,
        limits: Limits,
    ) -> Result<Arc<Self>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let this = Arc::new(TokenAutomaton {
            number,
            limits,
            recipe,
            shards: Default::default(),
            epochs: AtomicU32::new(0),
            numbers: AtomicU32::new(0),
            lost: AtomicU32::new(0),
            finished: Self::finished_state(number),
            used: AtomicU64::new(reclaim::now()),
            full: AtomicU32::new(0),
            failed: AtomicU32::new(0),
            work: AtomicU64::new(0),
            cleared: AtomicU32::new(0),
            vocab,
        });
        let epoch = this.shard(0);
        let taken = epoch.take(0);
        debug_assert!(matches!(taken, BuilderSlot::None));
        let builder = this.build(&epoch, first)?;
        let spelled = this.vocab.spells_every_byte();
        this.call(&epoch, builder, |builder| match spelled {
            true => Ok(()),
            // raises where no accepted text can be spelled with these tokens
            false => builder.distance(&epoch.start, FAR).map(|_| ()),
        })?;
        let holder: Weak<Self> = Arc::downgrade(&this);
        reclaim::enroll(holder);
        Ok(this)
    }

    /// The automaton of a structure that can be made again.
    pub fn of<S: ByteAutomaton + 'static>(
        make: impl Fn() -> Result<S> + Send + Sync + 'static,
        vocab: Arc<Vocabulary>,
    ) -> Result<Arc<Self>> {
        let own = vocab.clone();
        let limits = Limits::default();
        let recipe = Box::new(move || Ok(engine(make()?, &own, &limits)));
        Self::new(None, recipe, vocab, limits)
    }

    fn finished_state(number: u64) -> State {
        let finished = Record::fresh(number, 0, StateId(u32::MAX), None, false);
        finished.0.set_mask(&Arc::new(Mask::Sparse(Box::new([]))));
        finished.0.set_accepting(true);
        finished.0.set_distance(0);
        finished.0.set_farthest(0);
        finished.0.set_forced(&[]);
        finished
    }

    /// The vocabulary that its tokens are of.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocab
    }

    /// The limits of its calls.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The state before the first token.
    pub fn start(&self) -> State {
        self.shard(0).start.clone()
    }

    /// The state after an end-of-text token.
    pub(super) fn finished(&self) -> State {
        self.finished.clone()
    }

    /// Whether an end-of-text token was taken.
    pub fn is_finished(&self, s: &State) -> bool {
        *s == self.finished
    }

    /// Raises where the state is another automaton's.
    pub fn check_state(&self, s: &State) -> Result<()> {
        if s.0.owner == self.number {
            return Ok(());
        }
        Err(Error::new(
            Kind::InvalidState,
            "the state is not of this automaton; states come from its own start and advance",
        ))
    }

    fn note_use(&self) {
        let now = reclaim::now();
        if self.used.load(Ordering::Relaxed) != now {
            self.used.store(now, Ordering::Relaxed);
        }
    }

    /// Runs a call on a builder; `s`: the state that it asks about.
    ///
    /// Where the text before the state is long to read again, that is done in portions, between which others may have
    /// the builder.
    pub(super) fn with<T>(
        &self,
        s: Option<&State>,
        call: impl FnOnce(&mut Builder) -> Result<T>,
    ) -> Result<T> {
        self.note_use();
        let mut call = Some(call);
        for portion in 1.. {
            let (epoch, builder) = self.take(s)?;
            let answer = self.call(&epoch, builder, |builder| {
                if let (Some(s), true) = (s, portion < PORTIONS) {
                    if !builder.read_on(s)? {
                        return Ok(None);
                    }
                }
                let call = call.take().expect("a call is made once");
                call(builder).map(Some)
            })?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
        unreachable!("the last portion is the call's own")
    }

    /// Makes the builder of an epoch, which this thread has taken.
    pub(super) fn build(&self, epoch: &Arc<Epoch>, first: Option<First>) -> Result<Box<Builder>> {
        let made = work::run(self.limits.work, || {
            let engine = match first {
                Some(first) => first(),
                None => (self.recipe)()?,
            };
            Builder::new(engine, self.vocab.clone(), &epoch.start)
        });
        made.map_err(Error::from).and_then(|made| made).map(Box::new).inspect_err(|_| self.fail(epoch))
    }

    fn fail(&self, epoch: &Arc<Epoch>) {
        epoch.close();
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.renew(epoch);
    }

    /// Runs a call on a builder that this thread has taken, and puts it back where it may be used again.
    fn call<T>(
        &self,
        epoch: &Arc<Epoch>,
        mut builder: Box<Builder>,
        call: impl FnOnce(&mut Builder) -> Result<T>,
    ) -> Result<T> {
        let mut spent = 0;
        let answer = work::run(self.limits.work, || {
            let answer = call(&mut builder);
            spent = work::spent();
            answer
        });
        self.work.fetch_add(spent, Ordering::Relaxed);
        let cut = answer.is_err();
        let answer = answer.unwrap_or_else(|cut| Err(cut.into()));
        let spoilt = |error: &Error| cut || error.spoils() && !builder.ended_early(error);
        if answer.as_ref().is_err_and(spoilt) {
            // a call that exceeds a limit may hold as much as any call may
            let limited = answer.as_ref().is_err_and(|error| error.kind == Kind::LimitExceeded);
            let bytes = if limited { usize::MAX } else { epoch.bytes() };
            self.fail(epoch);
            reclaim::later(builder, bytes);
            return answer;
        }
        let Some(bytes) = builder.count(spent) else {
            epoch.put(builder, None);
            return answer;
        };
        let shards = self.open_shards().count().max(1);
        if bytes > builder.allowance(self.limits.memory / shards) {
            epoch.close();
            self.full.fetch_add(1, Ordering::Relaxed);
            self.renew(epoch);
            reclaim::later(builder, bytes);
        } else {
            let grown = bytes > epoch.bytes();
            epoch.put(builder, Some(bytes));
            if grown {
                reclaim::keep_within_bound();
            }
        }
        answer
    }

    /// The mask of a state.
    pub fn mask(&self, s: &State) -> Result<Arc<Mask>> {
        self.check_state(s)?;
        match s.0.mask() {
            Some(mask) => Ok(mask.clone()),
            None => self.with(Some(s), |builder| builder.mask(s)),
        }
    }

    /// Makes masks ahead that the first texts are likely to need: of up to `most` states, within about `work`
    /// units; how many were made.
    pub fn prepare(&self, most: usize, work: u64) -> Result<usize> {
        let start = self.start();
        self.with(Some(&start), |builder| builder.prepare(&start, most, work))
    }

    /// Whether a token is allowed, without the whole mask.
    pub fn allows(&self, s: &State, token: TokenId) -> Result<bool> {
        self.check_state(s)?;
        if token.0 as usize >= self.vocab.size() {
            return Ok(false);
        }
        if let Some(mask) = s.0.mask() {
            return Ok(mask.has(token.0));
        }
        if self.vocab.is_eos(token) && self.accepting(s)? {
            return Ok(true);
        }
        self.with(Some(s), |builder| {
            let here = builder.here(s)?;
            Ok(builder.follow(here.0.id, token).is_some())
        })
    }

    /// The state after a token.
    pub fn advance(&self, s: &State, token: TokenId) -> Result<State> {
        self.follow(s, token)?.ok_or_else(|| self.rejection(s, token))
    }

    /// The state after a token; `None`: it is not allowed.
    pub fn follow(&self, s: &State, token: TokenId) -> Result<Option<State>> {
        self.check_state(s)?;
        if let Some(to) = s.known_next(&self.vocab, token) {
            return Ok(Some(to));
        }
        if token.0 as usize >= self.vocab.size() || self.is_finished(s) {
            return Ok(None);
        }
        if self.vocab.is_eos(token) && self.accepting(s)? {
            return Ok(Some(self.finished.clone()));
        }
        let next = self.with(Some(s), |builder| builder.step(s, token))?;
        Ok(next.inspect(|next| s.keep_cached(token, next)))
    }

    /// Whether the text may end here.
    pub fn accepting(&self, s: &State) -> Result<bool> {
        self.check_state(s)?;
        match s.0.accepting() {
            Some(known) => Ok(known),
            None => self.with(Some(s), |builder| builder.accepting(s)),
        }
    }

    /// A number of tokens within which an accepting state can be reached, [`FAR`] when none is known.
    ///
    /// It counts a short completion in the fewest tokens; the states along it record it, so that the number
    /// falls by at least one per token along the completion. No end is sought that plainly needs more than
    /// `within` tokens: a decoder with so many left needs no more than that.
    pub fn distance(&self, s: &State, within: u32) -> Result<u32> {
        self.check_state(s)?;
        match s.0.distance() {
            Some(known) => Ok(known),
            None => self.with(Some(s), |builder| builder.distance(s, within)),
        }
    }

    /// Whether a bound shows that the budget is enough after any allowed token; without a search.
    pub(super) fn is_far(&self, s: &State, budget: u32) -> Result<bool> {
        match s.0.farthest() {
            Some(farthest) => Ok(budget > farthest),
            None => self.with(Some(s), |builder| builder.is_far(s, budget)),
        }
    }

    /// The tokens after which an end is known within `budget` tokens in all.
    ///
    /// A budget that is plainly enough costs a bound for the position; nearer to the end each allowed token
    /// is tried, once for a state: the distances after it are kept for the last states.
    pub fn mask_within(&self, s: &State, budget: u32) -> Result<Vec<u32>> {
        self.check_state(s)?;
        if s.0.farthest().is_none_or(|farthest| budget <= farthest) && !self.is_finished(s) {
            if let Some(row) = self.with(Some(s), |builder| builder.within(s, budget))? {
                return Ok(row);
            }
        }
        let mut row = vec![0u32; self.vocab.mask_words()];
        self.mask(s)?.write(&mut row);
        Ok(row)
    }

    /// Whether some text is known to end within the budget: the known completion, or one after a token of the
    /// budget's mask.
    pub fn fits(&self, s: &State, budget: u32) -> Result<bool> {
        let distance = self.distance(s, budget)?;
        Ok(distance != FAR && distance <= budget
            || self.mask_within(s, budget)?.iter().any(|&word| word != 0))
    }

    /// The bytes that every accepted continuation shares.
    pub fn forced_bytes(&self, s: &State) -> Result<Vec<u8>> {
        self.check_state(s)?;
        match s.0.forced() {
            Some(known) => Ok(known.to_vec()),
            None => self.with(Some(s), |builder| builder.forced(s, LONGEST_FORCED)),
        }
    }

    /// The state after bytes that need not be whole tokens.
    pub fn step_bytes(&self, s: &State, bytes: &[u8]) -> Result<Option<State>> {
        self.check_state(s)?;
        if bytes.is_empty() || self.is_finished(s) {
            return Ok(bytes.is_empty().then(|| s.clone()));
        }
        self.with(Some(s), |builder| builder.step_bytes(s, bytes))
    }

    /// All possible rests of the value that is read or begins here ([`Left`]), without whitespace before it,
    /// if there are at most `most`; `None`: there are more, or they are unknown.
    pub fn left(&self, s: &State, most: usize) -> Result<Option<Vec<Left>>> {
        self.check_state(s)?;
        if self.is_finished(s) {
            return Ok(None);
        }
        self.with(Some(s), |builder| {
            let here = builder.here(s)?;
            Ok(builder.engine.left(here.0.id, most))
        })
    }

    /// Most code points that may be left of the JSON string that is read here; `None`: no string is read, or
    /// it is unknown.
    pub fn longest_left(&self, s: &State) -> Result<Option<u32>> {
        self.check_state(s)?;
        if self.is_finished(s) {
            return Ok(None);
        }
        self.with(Some(s), |builder| {
            let here = builder.here(s)?;
            Ok(builder.engine.longest_left(here.0.id))
        })
    }

    /// The mask by the slow way, for tests.
    pub fn oracle(&self, s: &State) -> Result<Vec<u32>> {
        self.check_state(s)?;
        if self.is_finished(s) {
            return Ok(Vec::new());
        }
        self.with(Some(s), |builder| super::oracle::mask(builder, s))
    }

    /// What the automaton holds, and why earlier epochs ended.
    pub fn stats(&self) -> Stats {
        let counts = || self.open_shards().map(|epoch| epoch.counts());
        Stats {
            states: counts().map(|c| c.0).sum(),
            bytes: self.bytes(),
            moved: counts().map(|c| c.1).sum(),
            shards: self.open_shards().count(),
            epochs: self.epochs.load(Ordering::Relaxed),
            full: self.full.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            work: self.work.load(Ordering::Relaxed),
            cleared: self.cleared.load(Ordering::Relaxed),
        }
    }
}
