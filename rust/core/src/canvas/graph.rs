//! The states that canvases of one automaton have reached, by number, and the edges between them.
//!
//! Invariant: a number means one state as long as the graph lives; edges are found once.
//! Complexity: a hash per state; edges cost what [`TokenAutomaton::followers`] says.
//! Memory: the masks of edges, shared where the automaton shares them; [`Graph::bytes`] counts it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, Result};
use crate::mask::{Mask, State, TokenAutomaton};
use crate::vocab::TokenId;

/// Most edges of one state: with more, every text has a state of its own, and a canvas does not suit.
const MOST_EDGES: usize = 4096;
/// A canvas may do the work of so many calls of the automaton: it queries as much as many of them.
const CALLS: u64 = 2;
/// The work of a new state: some 40 microseconds, so that a limit takes effect within some two seconds.
const NEW: u64 = 1_500;
/// Most memory of a canvas with its graph, in bytes.
const MEMORY: usize = 224 << 20;
/// Bytes that a state takes in the automaton, at least.
const STATE: usize = 400;

/// Tokens, and the number of the state that they lead to.
pub struct Edge {
    /// The state.
    pub to: u32,
    /// The tokens.
    pub tokens: Arc<Mask>,
}

/// The states and edges found so far.
pub struct Graph {
    automaton: Arc<TokenAutomaton>,
    states: Vec<State>,
    /// By the states' addresses, which are unique as long as `states` keeps them alive.
    numbers: FxHashMap<usize, u32>,
    edges: Vec<Option<Arc<[Edge]>>>,
    single: FxHashMap<(u32, u32), Option<u32>>,
    /// The states whose mark is `mark` are in the current set.
    marks: Vec<u32>,
    mark: u32,
    masks: FxHashSet<usize>,
    /// States with too many edges.
    crowded: FxHashSet<u32>,
    bytes: usize,
    spent: u64,
}

impl Graph {
    /// The number of the state before the first token.
    pub const START: u32 = 0;

    pub(super) fn new(automaton: Arc<TokenAutomaton>) -> Self {
        let start = automaton.start();
        let mut graph = Graph {
            automaton,
            states: Vec::new(),
            numbers: FxHashMap::default(),
            edges: Vec::new(),
            single: FxHashMap::default(),
            marks: Vec::new(),
            mark: 0,
            masks: FxHashSet::default(),
            crowded: FxHashSet::default(),
            bytes: 0,
            spent: 0,
        };
        graph.number(start);
        graph
    }

    pub(super) fn automaton(&self) -> &Arc<TokenAutomaton> {
        &self.automaton
    }

    pub(super) fn states(&self) -> usize {
        self.states.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes + 24 * self.single.len()
    }

    /// Begins a call: its work is counted from here.
    pub(super) fn begin(&mut self) {
        self.spent = 0;
    }

    /// Counts work of the current call.
    pub(super) fn spend(&mut self, units: u64) -> Result<()> {
        self.spent += units;
        let most = self.automaton.limits().work.saturating_mul(CALLS);
        match self.spent > most {
            false => Ok(()),
            true => Err(Error::limit(format!(
                "the canvas needs more than {most} steps of work ({CALLS} times Limits.work): too many states can stand before its open \
                 positions; fill more of them, take a constraint with fewer texts, or raise the limit"
            ))),
        }
    }

    /// Fails if the graph with so many bytes beside it exceeds the memory of a canvas.
    pub(super) fn hold(&self, beside: usize) -> Result<()> {
        match self.bytes() + beside > MEMORY {
            false => Ok(()),
            true => Err(Error::limit(format!(
                "the canvas needs more than {} MiB: too many states can stand before its open positions; fill more of \
                 them, or take a constraint with fewer texts",
                MEMORY >> 20,
            ))),
        }
    }

    fn number(&mut self, state: State) -> u32 {
        let next = self.states.len() as u32;
        let number = *self.numbers.entry(state.address()).or_insert(next);
        if number == next {
            self.states.push(state);
            self.edges.push(None);
            self.marks.push(0);
            self.bytes += STATE;
        }
        number
    }

    /// The edges of a state.
    pub(super) fn edges(&mut self, state: u32) -> Result<Arc<[Edge]>> {
        if let Some(known) = &self.edges[state as usize] {
            let known = known.clone();
            self.spend(1 + known.len() as u64)?;
            return Ok(known);
        }
        let own = self.states[state as usize].clone();
        if self.crowded.contains(&state) {
            return Err(crowded());
        }
        let (found, spent) = self.automaton.followers(&own, MOST_EDGES)?;
        let Some(found) = found else {
            self.crowded.insert(state);
            return Err(crowded());
        };
        let (mut edges, before) = (Vec::with_capacity(found.len()), self.states.len());
        for follower in found {
            if self.masks.insert(Arc::as_ptr(&follower.tokens) as usize) {
                self.bytes += follower.tokens.bytes() + 64;
            }
            edges.push(Edge { to: self.number(follower.to), tokens: follower.tokens });
        }
        self.bytes += 16 * edges.len();
        let edges: Arc<[Edge]> = edges.into();
        self.edges[state as usize] = Some(edges.clone());
        let new = (self.states.len() - before) as u64;
        self.hold(0)?;
        self.spend(100 + spent + edges.len() as u64 + NEW * new)?;
        Ok(edges)
    }

    /// The state after a token.
    pub(super) fn after(&mut self, state: u32, token: TokenId) -> Result<Option<u32>> {
        self.spend(2)?;
        Ok(memo!(self.single, (state, token.0), {
            let own = self.states[state as usize].clone();
            let next = match self.automaton.is_finished(&own) {
                true => self.automaton.vocabulary().is_eos(token).then_some(own),
                false => self.automaton.follow(&own, token)?,
            };
            next.map(|next| self.number(next))
        }))
    }

    /// The accepting ones of the states.
    pub(super) fn ends(&mut self, states: &[u32]) -> Result<Vec<u32>> {
        let mut out = Vec::new();
        for &state in states {
            if self.automaton.accepting(&self.states[state as usize])? {
                out.push(state);
            }
        }
        Ok(out)
    }

    pub(super) fn clear_marks(&mut self) {
        self.mark = self.mark.wrapping_add(1);
        if self.mark == 0 {
            self.marks.fill(0);
            self.mark = 1;
        }
    }

    /// Marks these states and no others.
    pub(super) fn mark(&mut self, states: &[u32]) {
        self.clear_marks();
        for &state in states {
            self.marks[state as usize] = self.mark;
        }
    }

    /// Marks one more; whether it was unmarked.
    pub(super) fn mark_one(&mut self, state: u32) -> bool {
        let mark = &mut self.marks[state as usize];
        let new = *mark != self.mark;
        *mark = self.mark;
        new
    }

    pub(super) fn is_marked(&self, state: u32) -> bool {
        self.marks[state as usize] == self.mark
    }
}

fn crowded() -> Error {
    Error::limit(format!(
        "more than {MOST_EDGES} states follow one state of the constraint: the text of an open key, of an item that may not \
         come twice, or of a part with a budget of tokens is told apart token by token; fill the positions of such texts, \
         forbid undeclared keys, or bound characters"
    ))
}
