//! The face of the engine: states as numbers, safe to share between threads.
//!
//! Finished masks and edges are read under a shared lock that is held for the time of a lookup; building is
//! done by one thread at a time per automaton.  Masks are reference counted, so one that is evicted while a
//! reader copies it stays whole.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use super::core::{tokens_of, Class, Core, Engine, StateId};
use super::idle;
use super::row::Mask;
use super::structure::{Piece, Structure, LONGEST};
use crate::error::{Error, Kind, Result};
use crate::vocab::{TokenId, Vocabulary};

/// Offset of the first refused byte, what was expected there, and the JSON Pointer of the schema that says so.
pub type Refusal = (usize, Vec<String>, Option<String>);

/// Bytes of masks that one automaton keeps.
const MASK_BYTES: usize = 256 << 20;

/// Bytes up to which the whole way is cut into the fewest tokens.
const SHORT_WAY: usize = 64;

/// Distance of a state for which no end is known.
pub const FAR: u32 = u32::MAX;

#[derive(Default)]
struct Tables {
    masks: Vec<Option<Arc<Mask>>>,
    mask_bytes: usize,
    /// Where the sweep that evicts goes on.
    hand: usize,
}

/// A constraint over the tokens of a vocabulary.
pub struct TokenAutomaton {
    vocab: Arc<Vocabulary>,
    start: StateId,
    core: Mutex<Box<dyn Engine>>,
    tables: RwLock<Tables>,
    edges: RwLock<FxHashMap<(u32, u32), StateId>>,
    /// States that are known to exist: a lower bound, read without the core's lock.
    states: AtomicU32,
    /// How far an end is, and the first token of the way there.
    distances: Mutex<FxHashMap<Class, Way>>,
    ends: Mutex<VecDeque<((StateId, u32), Arc<Ends>)>>,
    /// How many automata there were when this one was last asked for something.
    used: AtomicU64,
}

/// A distance, and the first token of the way.
type Way = (u32, Option<TokenId>);

/// The distances to an end after each token that a state allows.
struct Ends {
    after: Vec<(u32, u32)>,
    accepting: bool,
    farthest: u32,
}

/// Distances that one mask of a budget may add: where each token leads to an end of its own (keys that patterns
/// tell apart), the later tokens are left out of it. The same for the lexical terms that the ways need.
const MOST_ENDS: usize = 16_384;
const MOST_TERMS: usize = 10_000;

/// States whose [`Ends`] are kept.
const KEPT_ENDS: usize = 4;

/// The state after an end-of-text token.
pub const FINISHED: StateId = StateId(u32::MAX - 1);

impl TokenAutomaton {
    pub fn new<S: Structure + 'static>(structure: S, vocab: Arc<Vocabulary>) -> Result<Self> {
        let mut core: Box<dyn Engine> = Box::new(Core::new(structure, vocab.clone()));
        let start = core.start()?;
        let this = TokenAutomaton {
            vocab,
            start,
            core: Mutex::new(core),
            tables: RwLock::default(),
            edges: RwLock::default(),
            states: AtomicU32::new(0),
            distances: Mutex::default(),
            ends: Mutex::default(),
            used: AtomicU64::new(idle::made()),
        };
        if !this.vocab.spells_every_byte() {
            // raises where no accepted text can be spelled with these tokens
            this.distance(start, FAR)?;
        }
        Ok(this)
    }

    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocab
    }

    pub fn start(&self) -> StateId {
        self.start
    }

    fn note_use(&self) {
        let now = idle::made();
        if self.used.load(Ordering::Relaxed) != now {
            self.used.store(now, Ordering::Relaxed);
        }
    }

    pub(super) fn last_used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Lets go of what can be computed again; numbers keep their meaning.  False where it is being built.
    pub(super) fn rest(&self) -> bool {
        let Some(mut core) = self.core.try_lock() else { return false };
        core.rest();
        *self.tables.write() = Tables::default();
        *self.edges.write() = FxHashMap::default();
        self.ends.lock().clear();
        true
    }

    /// The state that a number names, where that is known without waiting.
    pub fn known_state(&self, number: u32) -> Option<StateId> {
        let known = number < self.states.load(Ordering::Acquire) || number == FINISHED.0;
        known.then_some(StateId(number))
    }

    /// The state that a number names.
    pub fn state(&self, number: u32) -> Result<StateId> {
        if self.known_state(number).is_some() || (number as usize) < self.core.lock().state_count() {
            Ok(StateId(number))
        } else {
            Err(Error::new(
                Kind::InvalidState,
                format!("{number} is not a state of this automaton; states come from start and advance"),
            ))
        }
    }

    /// The mask of a state, if it is there already: a lookup that waits for no builder.
    pub fn finished_mask(&self, s: StateId) -> Option<Arc<Mask>> {
        self.note_use();
        self.tables.read().masks.get(s.0 as usize)?.clone()
    }

    /// The state after a token, if the edge is there already: a lookup that waits for no builder.
    pub fn finished_edge(&self, s: StateId, token: TokenId) -> Option<StateId> {
        self.note_use();
        self.edges.read().get(&(s.0, token.0)).copied()
    }

    /// The mask of a state.
    pub fn mask(&self, s: StateId) -> Result<Arc<Mask>> {
        if let Some(mask) = self.finished_mask(s) {
            return Ok(mask);
        }
        if s == FINISHED {
            return Ok(Arc::new(Mask::Sparse(Box::new([]))));
        }
        let mut core = self.core.lock();
        if let Some(mask) = self.finished_mask(s) {
            return Ok(mask);
        }
        let mask = core.mask(s)?;
        let states = core.state_count();
        drop(core);
        self.keep(s, mask.clone(), states);
        Ok(mask)
    }

    fn keep(&self, s: StateId, mask: Arc<Mask>, states: usize) {
        let mut tables = self.tables.write();
        if tables.masks.len() < states {
            tables.masks.resize(states, None);
        }
        tables.mask_bytes += mask.bytes();
        tables.masks[s.0 as usize] = Some(mask);
        let mut steps = 0;
        while tables.mask_bytes > MASK_BYTES && steps < states {
            let hand = tables.hand % states;
            tables.hand = hand + 1;
            steps += 1;
            if hand != s.0 as usize {
                if let Some(old) = tables.masks[hand].take() {
                    tables.mask_bytes -= old.bytes();
                }
            }
        }
    }

    /// Whether a token is allowed, without the whole mask.
    pub fn allows(&self, s: StateId, token: TokenId) -> Result<bool> {
        if token.0 as usize >= self.vocab.size() || s == FINISHED {
            return Ok(false);
        }
        if let Some(Some(mask)) = self.tables.read().masks.get(s.0 as usize) {
            return Ok(mask.has(token.0));
        }
        Ok(self.step(s, token)?.is_some())
    }

    /// The state after a token.
    pub fn advance(&self, s: StateId, token: TokenId) -> Result<StateId> {
        if let Some(to) = self.finished_edge(s, token) {
            return Ok(to);
        }
        match self.step(s, token)? {
            Some(to) => Ok(to),
            None => Err(self.rejection(s, token)),
        }
    }

    fn step(&self, s: StateId, token: TokenId) -> Result<Option<StateId>> {
        if token.0 as usize >= self.vocab.size() || s == FINISHED {
            return Ok(None);
        }
        if self.vocab.is_eos(token) && self.accepting(s)? {
            return Ok(Some(FINISHED));
        }
        let next = self.follow(s, token)?;
        if let Some(to) = next {
            self.states.fetch_max(to.0 + 1, Ordering::AcqRel);
            self.edges.write().insert((s.0, token.0), to);
        }
        Ok(next)
    }

    /// The state after a token of the text, a special one included.
    fn follow(&self, s: StateId, token: TokenId) -> Result<Option<StateId>> {
        if self.vocab.is_special(token) {
            return self.core.lock().take_special(s, token);
        }
        match self.vocab.token(token) {
            [] => Ok(None),
            bytes => self.core.lock().advance_bytes(s, bytes),
        }
    }

    /// The state after a special token that is part of the text.
    pub fn step_special(&self, s: StateId, token: TokenId) -> Result<Option<StateId>> {
        if s == FINISHED {
            return Ok(None);
        }
        self.core.lock().take_special(s, token)
    }

    fn rejection(&self, s: StateId, token: TokenId) -> Error {
        if s == FINISHED {
            return Error::new(Kind::TokenRejected, "the text has ended: no token may follow");
        }
        let shown = match self.vocab.tokens().get(token.0 as usize) {
            Some(bytes) => format!("token {} ({:?})", token.0, String::from_utf8_lossy(bytes)),
            None => format!("token {}, which the vocabulary does not have,", token.0),
        };
        let (expected, pointer) = self.core.lock().describe(s);
        let mut error = Error::new(
            Kind::TokenRejected,
            format!("{shown} is not allowed here; expected {}", expected.join(" or ")),
        );
        error.pointer = pointer;
        error
    }

    /// Whether the text may end here.
    pub fn accepting(&self, s: StateId) -> Result<bool> {
        if s == FINISHED {
            return Ok(true);
        }
        self.core.lock().accepting(s)
    }

    /// A number of tokens within which an accepted end can be reached, [`FAR`] when none is known.
    ///
    /// The tokens of a short completion, fewest pieces first; what lies on its way is remembered, so that the
    /// number falls by at least one a token for whoever follows it. No end is sought that plainly needs more than
    /// `within` tokens: a decoder that has so many left asks no more than that.
    pub fn distance(&self, s: StateId, within: u32) -> Result<u32> {
        Ok(self.way_out(s, within)?.0)
    }

    /// Bytes that so many tokens can hold, as far as a way out may have them.
    fn bytes_of(&self, tokens: u32) -> usize {
        let long = self.vocab.long().iter().map(|&token| self.vocab.token(token).len()).max().unwrap_or(0);
        (tokens as usize).saturating_mul(self.vocab.longest().max(long).max(4)).min(LONGEST)
    }

    /// Distance, and the first token of the way.
    fn way_out(&self, s: StateId, within: u32) -> Result<Way> {
        if s == FINISHED || self.accepting(s)? {
            return Ok((0, None));
        }
        let mut core = self.core.lock();
        let class = core.class(s);
        if let Some(&known) = self.distances.lock().get(&class) {
            return Ok(known);
        }
        let most = self.bytes_of(within);
        let Some(way) = core.way_out(s, most)? else {
            if most == LONGEST {
                self.distances.lock().insert(class, (FAR, None));
            }
            return Ok((FAR, None));
        };
        let (way, beyond) = self.until_known(&mut core, s, way)?;
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
        let total = tokens.len() as u32 + beyond;
        self.remember_way(&mut core, s, class, &tokens, total)?;
        Ok(*self.distances.lock().entry(class).or_insert((FAR, None)))
    }

    /// The distances of the positions on a way, whose tokens are `total` with what is known beyond.
    fn remember_way(
        &self,
        core: &mut Box<dyn Engine>,
        s: StateId,
        class: Class,
        tokens: &[TokenId],
        total: u32,
    ) -> Result<()> {
        let mut at = s;
        let mut known = self.distances.lock();
        // the class of the first position is asked once: finding the way may have told more positions apart
        let mut keep = |class: Class, i: usize| {
            let way = (total - i as u32, Some(tokens[i]));
            let known = known.entry(class).or_insert(way);
            if way.0 < known.0 {
                *known = way;
            }
        };
        keep(class, 0);
        let mut i = 0;
        while i < tokens.len() {
            let special = self.vocab.is_special(tokens[i]);
            let run = tokens[i..].iter().take_while(|&&t| self.vocab.is_special(t) == special).count();
            let next = if special {
                i += 1;
                core.take_special(at, tokens[i - 1])?
            } else {
                let run = &tokens[i..i + run];
                let text: Vec<u8> = run.iter().flat_map(|&t| self.vocab.token(t)).copied().collect();
                let mut end = self.vocab.token(run[0]).len();
                let mut token = i + 1;
                core.follow(at, &text, &mut |read, class| {
                    if read == end && token < tokens.len() {
                        class.into_iter().for_each(|class| keep(class, token));
                        end += self.vocab.token(tokens[token]).len();
                        token += 1;
                    }
                    true
                })?;
                i += run.len();
                if i == tokens.len() {
                    break;
                }
                core.advance_bytes(at, &text)?
            };
            let Some(next) = next else { break };
            at = next;
            if i < tokens.len() {
                let class = core.class(at);
                keep(class, i);
            }
        }
        Ok(())
    }

    /// The beginning of a way that leads to a position whose distance is known already, and that distance: in a
    /// long document only the lexeme at hand is new, and what follows it need not be cut into tokens again.
    fn until_known(
        &self,
        core: &mut Box<dyn Engine>,
        s: StateId,
        way: Vec<Piece>,
    ) -> Result<(Vec<Piece>, u32)> {
        let [Piece::Bytes(text)] = &way[..] else { return Ok((way, 0)) };
        if text.len() <= SHORT_WAY {
            return Ok((way, 0));
        }
        let mut found = None;
        core.follow(s, text, &mut |read, class| {
            let known = class.and_then(|class| self.distances.lock().get(&class).copied());
            found = known.filter(|&(left, _)| left != FAR).map(|(left, _)| (read, left));
            found.is_none()
        })?;
        if let Some((read, left)) = found {
            return Ok((vec![Piece::Bytes(text[..read].to_vec())], left));
        }
        Ok((way, 0))
    }

    /// The tokens after which an accepted end is known within `budget` tokens in all.
    ///
    /// Each allowed token is tried, once for a state: the distances after it are kept for the states asked last,
    /// so a budget that is far away costs a look.
    pub fn mask_within(&self, s: StateId, budget: u32) -> Result<Vec<u32>> {
        let mut row = vec![0u32; self.vocab.mask_words()];
        if s == FINISHED {
            return Ok(row);
        }
        // budgets of one size share their answers
        let ends = self.ends_after(s, budget.checked_next_power_of_two().unwrap_or(FAR).max(256))?;
        if budget > ends.farthest {
            self.mask(s)?.write(&mut row);
            return Ok(row);
        }
        let near = ends.after.iter().filter(|&&(_, left)| left < budget).map(|&(id, _)| id);
        let eos = self.vocab.eos().iter().filter(|_| ends.accepting).map(|t| t.0);
        // the known way out always fits: the rest of the mask may be estimated from farther away
        let way = match self.way_out(s, budget)? {
            (left, Some(first)) if left <= budget => Some(first.0),
            _ => None,
        };
        for id in near.chain(eos).chain(way) {
            row[id as usize >> 5] |= 1 << (id & 31);
        }
        Ok(row)
    }

    /// How far the end is after each allowed token; [`FAR`] where that is plainly more than `within`.
    fn ends_after(&self, s: StateId, within: u32) -> Result<Arc<Ends>> {
        if let Some((_, known)) = self.ends.lock().iter().find(|e| e.0 == (s, within)) {
            return Ok(known.clone());
        }
        let mut ends = Ends { after: Vec::new(), accepting: self.accepting(s)?, farthest: 0 };
        let room = self.distances.lock().len() + MOST_ENDS;
        let (after, most) = {
            let mut core = self.core.lock();
            (core.classes_after(s)?, core.terms() + MOST_TERMS)
        };
        for id in self.mask(s)?.ids(self.vocab.mask_words()) {
            let token = TokenId(id);
            if ends.accepting && self.vocab.is_eos(token) {
                continue;
            }
            let known = match after.binary_search_by_key(&token, |c| c.0) {
                Ok(at) => self.distances.lock().get(&after[at].1).map(|way| way.0),
                Err(_) => None,
            };
            // not by `step`, and only for a new class: a hundred thousand states and edges are not worth keeping
            let left = match known {
                Some(left) => left,
                // too far, which is safe; tokens come in ascending order, so the frequent ones were tried
                None if self.distances.lock().len() > room || self.core.lock().terms() > most => FAR,
                None => match self.follow(s, token)? {
                    Some(next) => self.distance(next, within)?,
                    None => FAR,
                },
            };
            ends.farthest = ends.farthest.max(left);
            ends.after.push((id, left));
        }
        let ends = Arc::new(ends);
        let mut kept = self.ends.lock();
        if kept.len() >= KEPT_ENDS {
            kept.pop_front();
        }
        kept.push_back(((s, within), ends.clone()));
        Ok(ends)
    }

    /// The bytes that every accepted continuation shares.
    pub fn forced_bytes(&self, s: StateId) -> Vec<u8> {
        if s == FINISHED {
            return Vec::new();
        }
        self.core.lock().forced(s, 4096)
    }

    /// The state after bytes that need not be whole tokens.
    pub fn step_bytes(&self, s: StateId, bytes: &[u8]) -> Result<Option<StateId>> {
        if s == FINISHED {
            return Ok(bytes.is_empty().then_some(s));
        }
        self.core.lock().advance_bytes(s, bytes)
    }

    /// Offset of the first byte that is refused, what was expected there, and where the schema says so;
    /// `None` when the text is accepted. At the end of the text the offset is its length.
    pub fn check(&self, text: &[u8]) -> Result<Option<Refusal>> {
        let mut core = self.core.lock();
        let (read, s) = core.walk(self.start, text)?;
        if read == text.len() && core.accepting(s)? {
            return Ok(None);
        }
        let (expected, pointer) = core.describe(s);
        Ok(Some((read, expected, pointer)))
    }

    /// What may come next, in words, and where that is said.
    pub fn describe(&self, s: StateId) -> (Vec<String>, Option<String>) {
        if s == FINISHED {
            return (vec!["nothing: the text has ended".into()], None);
        }
        self.core.lock().describe(s)
    }

    pub fn state_count(&self) -> usize {
        self.core.lock().state_count()
    }

    /// The mask by the slow way, for tests.
    pub fn oracle(&self, s: StateId) -> Result<Vec<u32>> {
        super::oracle::mask(self, s)
    }

    pub fn stand_text(&self, s: StateId) -> String {
        if s == FINISHED {
            return "finished".into();
        }
        self.core.lock().stand_text(s)
    }
}
