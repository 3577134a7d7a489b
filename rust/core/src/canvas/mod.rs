//! A canvas: a sequence of known tokens and open positions, and what may stand in them.
//!
//! In: a [`TokenAutomaton`] and a length.  Out: [`Canvas`]: the tokens that some accepted filling has at a
//! position, and the fillings themselves: the likeliest, drawn ones, the positions' distributions
//! ([`weigh`]).
//! Meaning: a filling is accepted if its tokens lead, in order, from the start to an accepting state, or to
//! the end of the text; after a token that ends the text, only such tokens follow.
//! Data: layers of states, one before each position: those that the tokens before it can reach, and of these
//! the live ones, from which the tokens after it can lead to an end. States and their edges ([`graph`]) do
//! not depend on the position, so they are found once and shared by the forks of a canvas.
//! Invariant: exact, or [`Kind::LimitExceeded`]: work and memory are counted, and what a limit cut short is
//! done again.
//! Complexity: the edges of each state of a layer; a known position has one edge per state. A changed
//! position recomputes the layers after it up to the first unchanged one, and those before it likewise.
//! Rejected: one state for all texts of a key that no schema names (another key of its object may repeat it,
//! and the number of fillings without a repetition is a permanent); more work before the limit (stacks of
//! brackets multiply with each open position).
//! Papers: DINGO (Suresh et al. 2025) for regular languages; Viterbi 1967; Rabiner 1989.

pub mod graph;
pub mod weigh;
pub mod weights;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use graph::Graph;
pub use weigh::Filling;
pub use weights::Weights;

use crate::error::{Error, Kind, Result};
use crate::mask::TokenAutomaton;
use crate::vocab::{TokenId, TokenSet};

/// The states before a position, by their numbers in the graph, ascending.
type Layer = Arc<[u32]>;

/// A sequence whose positions are known tokens or open, under a constraint.
///
/// ```
/// use std::sync::Arc;
/// use tokenform_core::{canvas::Canvas, Grammar, Limits, TokenId, Vocabulary};
///
/// let tokens = (0..=255u8).map(|b| Box::from([b])).chain([Box::from(*b"</s>")]).collect();
/// let vocabulary = Arc::new(Vocabulary::new(tokens, vec![256], &[256])?);
/// let automaton = Grammar::choice(["no", "nil"])?.compile(vocabulary, Limits::default())?;
/// let mut canvas = Canvas::new(automaton, 4)?;
/// assert_eq!(canvas.allowed(1)?, [u32::from(b'i'), u32::from(b'o')]);
/// canvas.fill(2, Some(TokenId(256)))?;
/// assert_eq!(canvas.allowed(1)?, [u32::from(b'o')]);
/// # Ok::<(), tokenform_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Canvas {
    graph: Arc<Mutex<Graph>>,
    cells: Vec<Option<TokenId>>,
    /// The states that the positions before can reach.
    reached: Vec<Layer>,
    /// Those of them from which an end can be reached.
    live: Vec<Layer>,
    /// The first and the last position that have changed since the layers were made.
    changed: Option<(usize, usize)>,
    /// Whether the layers were made at all, and none of them was cut short since.
    made: bool,
}

impl Canvas {
    /// A canvas of open positions.
    pub fn new(automaton: Arc<TokenAutomaton>, length: usize) -> Result<Self> {
        let empty: Layer = Arc::new([]);
        let graph = Graph::new(automaton);
        let mut reached = vec![empty.clone(); length + 1];
        reached[0] = Arc::new([Graph::START]);
        Ok(Canvas {
            graph: Arc::new(Mutex::new(graph)),
            cells: vec![None; length],
            reached,
            live: vec![empty; length + 1],
            changed: Some((0, length)),
            made: false,
        })
    }

    /// The token at each position, where it is known.
    pub fn cells(&self) -> &[Option<TokenId>] {
        &self.cells
    }

    /// The known states of the automaton, the largest layer, and the bytes in use.
    pub fn size(&self) -> (usize, usize, usize) {
        let graph = self.graph();
        let widest = self.reached.iter().map(|layer| layer.len()).max();
        (graph.states(), widest.unwrap_or(0), graph.bytes() + self.bytes())
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bytes(&self) -> usize {
        self.reached.iter().chain(&self.live).map(|layer| 32 + 4 * layer.len()).sum()
    }

    /// Makes a token known at a position (`None`: opens it); whether it can stand there, [`Canvas::feasible`] says.
    pub fn fill(&mut self, at: usize, token: Option<TokenId>) -> Result<()> {
        self.check(at)?;
        let size = self.graph().automaton().vocabulary().size();
        if let Some(token) = token.filter(|token| token.0 as usize >= size) {
            let message = format!("the vocabulary has {size} tokens, and {} is none of them", token.0);
            return Err(Error::new(Kind::OptionError, message));
        }
        if self.cells[at] != token {
            self.cells[at] = token;
            let (first, last) = self.changed.unwrap_or((at, at));
            self.changed = Some((first.min(at), last.max(at)));
        }
        Ok(())
    }

    fn check(&self, at: usize) -> Result<()> {
        match at < self.cells.len() {
            true => Ok(()),
            false => {
                let message = format!("the canvas has {} positions; there is none {at}", self.cells.len());
                Err(Error::new(Kind::OptionError, message))
            }
        }
    }

    /// Whether some filling of the open positions is accepted.
    pub fn feasible(&mut self) -> Result<bool> {
        self.settle()?;
        Ok(!self.live[0].is_empty())
    }

    /// The tokens that some accepted filling has at a position, ascending; for a known position, those that
    /// it could have.
    pub fn allowed(&mut self, at: usize) -> Result<Vec<u32>> {
        let words = self.graph().automaton().vocabulary().mask_words();
        let mut row = vec![0; words];
        self.mask(at, &mut row)?;
        Ok(row.ids())
    }

    /// The same as words of a mask.
    pub fn mask(&mut self, at: usize, row: &mut [u32]) -> Result<()> {
        self.check(at)?;
        if self.cells[at].is_some() {
            let mut open = self.clone();
            open.fill(at, None)?;
            return open.mask(at, row);
        }
        self.settle()?;
        row.fill(0);
        let mut part = vec![0; row.len()];
        let mut graph = self.graph();
        graph.begin();
        graph.mark(&self.live[at + 1]);
        let mut seen = rustc_hash::FxHashSet::default();
        for &state in self.live[at].iter() {
            let edges = graph.edges(state)?;
            for edge in edges.iter() {
                if graph.is_marked(edge.to) && seen.insert(Arc::as_ptr(&edge.tokens)) {
                    graph.spend(row.len() as u64 / 8)?;
                    edge.tokens.add(row, &mut part);
                }
            }
        }
        Ok(())
    }

    /// Recomputes the layers that the changed positions affect.
    fn settle(&mut self) -> Result<()> {
        let Some((first, last)) = self.changed else { return Ok(()) };
        let graph = self.graph.clone();
        let mut graph = graph.lock().unwrap_or_else(PoisonError::into_inner);
        graph.begin();
        let (first, made) = (if self.made { first } else { 0 }, self.made);
        // after a limit, all layers are made anew
        self.made = false;
        let end = self.forward(&mut graph, first, last, made)?;
        if end == self.cells.len() {
            self.live[end] = graph.ends(&self.reached[end])?.into();
        }
        for at in (0..end).rev() {
            let live: Layer = self.leading(&mut graph, at)?.into();
            if made && at <= first && live == self.live[at] {
                break;
            }
            self.live[at] = live;
        }
        (self.changed, self.made) = (None, true);
        Ok(())
    }

    /// Recomputes the layers `reached`, up to the first unchanged one; its index.
    fn forward(&mut self, graph: &mut Graph, first: usize, last: usize, made: bool) -> Result<usize> {
        let length = self.cells.len();
        let mut held = if made { self.bytes() } else { 0 };
        for at in first..length {
            let next: Layer = self.onward(graph, at)?.into();
            held += 8 * next.len();
            graph.hold(held)?;
            if made && at >= last && next == self.reached[at + 1] {
                return Ok(at + 1);
            }
            self.reached[at + 1] = next;
        }
        Ok(length)
    }

    /// The states after a position.
    fn onward(&self, graph: &mut Graph, at: usize) -> Result<Vec<u32>> {
        let from = &self.reached[at];
        graph.clear_marks();
        let mut out = Vec::new();
        match self.cells[at] {
            Some(token) => {
                for &state in from.iter() {
                    out.extend(graph.after(state, token)?);
                }
            }
            None => {
                for &state in from.iter() {
                    let edges = graph.edges(state)?;
                    out.extend(edges.iter().map(|edge| edge.to).filter(|&to| graph.mark_one(to)));
                }
            }
        }
        crate::lists::sort_unique(&mut out);
        Ok(out)
    }

    /// The states before a position from which the live ones after it can be reached.
    fn leading(&self, graph: &mut Graph, at: usize) -> Result<Vec<u32>> {
        let next = &self.live[at + 1];
        if next.is_empty() {
            return Ok(Vec::new());
        }
        graph.mark(next);
        let mut out = Vec::new();
        for &state in self.reached[at].iter() {
            let leads = match self.cells[at] {
                Some(token) => graph.after(state, token)?.is_some_and(|to| graph.is_marked(to)),
                None => graph.edges(state)?.iter().any(|edge| graph.is_marked(edge.to)),
            };
            if leads {
                out.push(state);
            }
        }
        Ok(out)
    }
}
