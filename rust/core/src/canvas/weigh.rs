//! Accepted fillings by weight: the likeliest, drawn ones, and the distribution at each position.
//!
//! In: a row of logits for each position. A filling weighs the sum of the logits of its tokens at the open
//! positions; known positions weigh nothing.
//! Law: `best` is the heaviest accepted filling, of equally heavy ones the first in token order;
//! `draw` yields a filling with probability exp(weight) / Z, where Z is the sum over the accepted ones;
//! `marginals` are the positions' distributions under the same law. Sums are made in float64.
//! Invariant: exact up to rounding; only accepted fillings count.
//! Complexity: the edges of each live state, and each token of each mask of a position.

use std::sync::{Arc, PoisonError};

use rustc_hash::FxHashMap;

use super::graph::{Edge, Graph};
use super::weights::{log_add, By, Memo, Weights, NONE};
use super::Canvas;
use crate::error::Result;
use crate::mask::Mask;

/// A filling: its tokens, and the sum of their logits.
pub struct Filling {
    /// At each position.
    pub tokens: Vec<u32>,
    /// Of the open positions.
    pub weight: f64,
}

/// The values of the live states of each layer, in their order.
struct Values {
    layers: Vec<Vec<f64>>,
}

impl Canvas {
    /// The heaviest accepted filling; `None`: none is accepted, or none has a weight.
    pub fn best(&mut self, weights: &Weights<'_>) -> Result<Option<Filling>> {
        self.settle()?;
        let mut graph = self.open_graph();
        let values = self.values(&mut graph, weights, By::Largest)?;
        let Some(&heaviest) = values.layers[0].first().filter(|&&value| value != NONE) else {
            return Ok(None);
        };
        let (mut tokens, mut state) = (Vec::with_capacity(self.cells.len()), Graph::START);
        for at in 0..self.cells.len() {
            let slots = self.slots(at + 1);
            let (token, to) = match self.cells[at] {
                Some(token) => (token.0, graph.after(state, token)?.expect("a live state goes on")),
                None => first_of_heaviest(weights.row(at), weights, &graph.edges(state)?, |to| {
                    value_of(&values, &slots, at + 1, to)
                })
                .expect("a live state with a value goes on"),
            };
            tokens.push(token);
            state = to;
        }
        Ok(Some(Filling { tokens, weight: heaviest }))
    }

    /// Draws fillings, and the logarithm of Z; each takes a number in [0, 1) for every position. `None`: none is accepted,
    /// or none has a weight.
    pub fn draw(&mut self, weights: &Weights<'_>, numbers: &[f64]) -> Result<Option<(Vec<Filling>, f64)>> {
        self.settle()?;
        let mut graph = self.open_graph();
        let values = self.values(&mut graph, weights, By::Sum)?;
        let Some(&total) = values.layers[0].first().filter(|&&value| value != NONE) else { return Ok(None) };
        let length = self.cells.len();
        let count = numbers.len().checked_div(length).unwrap_or(0);
        let fresh = || (Graph::START, Filling { tokens: Vec::with_capacity(length), weight: 0.0 });
        let mut drawn: Vec<(u32, Filling)> = (0..count).map(|_| fresh()).collect();
        for at in 0..length {
            let mut place =
                DrawPosition { at, slots: self.slots(at + 1), memo: Memo::new(weights, at, By::Sum) };
            for (number, (state, filling)) in drawn.iter_mut().enumerate() {
                let number = numbers[number * length + at];
                let (token, weight, to) = self.draw_one(&mut graph, &values, &mut place, *state, number)?;
                filling.tokens.push(token);
                filling.weight += weight;
                *state = to;
            }
        }
        Ok(Some((drawn.into_iter().map(|one| one.1).collect(), total)))
    }

    /// A token, its weight, and the state after it.
    fn draw_one(
        &self,
        graph: &mut Graph,
        values: &Values,
        place: &mut DrawPosition<'_, '_>,
        state: u32,
        number: f64,
    ) -> Result<(u32, f64, u32)> {
        let at = place.at;
        if let Some(token) = self.cells[at] {
            return Ok((token.0, 0.0, graph.after(state, token)?.expect("a live state goes on")));
        }
        let edges = graph.edges(state)?;
        let mut shares = Vec::with_capacity(edges.len());
        for edge in edges.iter() {
            let value = value_of(values, &place.slots, at + 1, edge.to);
            shares.push(value.map_or(NONE, |value| value + place.memo.of(&edge.tokens)));
        }
        graph.spend(place.memo.take_cost())?;
        let most = shares.iter().copied().fold(NONE, f64::max);
        let sums: Vec<f64> = shares.iter().map(|share| (share - most).exp()).collect();
        let mut left = number * sums.iter().sum::<f64>();
        // rounding may leave a rest after the last
        let last = sums.iter().rposition(|&sum| sum > 0.0).expect("a live state with a value goes on");
        let chosen = (0..last).find(|&i| {
            let here = left < sums[i];
            left -= if here { 0.0 } else { sums[i] };
            here
        });
        let chosen = chosen.unwrap_or(last);
        let edge = &edges[chosen];
        let (weights, within) = (place.memo.weights, place.memo.of(&edge.tokens));
        let (row, mut share, mut token) = (weights.row(at), left / sums[chosen], None);
        edge.tokens.each(|id| {
            let weight = weights.of(row, id);
            if share >= 0.0 && weight > NONE {
                token = Some((id, weight));
                share -= (weight - within).exp();
            }
        });
        let (token, weight) = token.expect("an edge with a weight has a token");
        Ok((token, weight, edge.to))
    }

    /// The logarithm of Z, and the distribution at each of the positions; `None`: none is accepted, or none has a weight.
    pub fn marginals(
        &mut self,
        weights: &Weights<'_>,
        positions: &[usize],
        out: &mut [f64],
    ) -> Result<Option<f64>> {
        self.settle()?;
        let mut graph = self.open_graph();
        let values = self.values(&mut graph, weights, By::Sum)?;
        let Some(&total) = values.layers[0].first().filter(|&&value| value != NONE) else { return Ok(None) };
        let mut before = vec![0.0];
        for at in 0..self.cells.len() {
            let mut memo = Memo::new(weights, at, By::Sum);
            let slots = self.slots(at + 1);
            let mut after = vec![NONE; self.live[at + 1].len()];
            let place = positions.iter().position(|&position| position == at);
            // by mask: the weight of all paths through its tokens, without that of the tokens
            let mut ways: FxHashMap<*const Mask, (Arc<Mask>, f64)> = FxHashMap::default();
            for (&state, &own) in self.live[at].iter().zip(&before) {
                if let Some(token) = self.cells[at] {
                    let to = graph.after(state, token)?.expect("a live state goes on");
                    if let Some(slot) = slots.get(&to) {
                        after[*slot] = log_add(after[*slot], own);
                    }
                    continue;
                }
                for edge in graph.edges(state)?.iter() {
                    let Some(&slot) = slots.get(&edge.to) else { continue };
                    after[slot] = log_add(after[slot], own + memo.of(&edge.tokens));
                    if place.is_some() {
                        let way = own + values.layers[at + 1][slot] - total;
                        let known =
                            ways.entry(Arc::as_ptr(&edge.tokens)).or_insert((edge.tokens.clone(), NONE));
                        known.1 = log_add(known.1, way);
                    }
                }
                graph.spend(memo.take_cost())?;
            }
            if let Some(place) = place {
                let own = &mut out[place * weights.width..(place + 1) * weights.width];
                own.fill(0.0);
                if let Some(token) = self.cells[at] {
                    own[token.0 as usize] = 1.0;
                }
                let row = weights.row(at);
                for (mask, way) in ways.into_values().filter(|way| way.1 > NONE) {
                    mask.each(|token| {
                        if let Some(share) = own.get_mut(token as usize) {
                            *share += (way + weights.of(row, token)).exp();
                        }
                    });
                }
            }
            before = after;
        }
        Ok(Some(total))
    }

    /// The sum over the open positions of the logarithms of all their weights.
    pub fn total(&self, weights: &Weights<'_>) -> f64 {
        let open = self.cells.iter().enumerate().filter(|(_, cell)| cell.is_none());
        open.map(|(at, _)| weights.total(at)).sum()
    }

    fn open_graph(&self) -> std::sync::MutexGuard<'_, Graph> {
        let mut graph = self.graph.lock().unwrap_or_else(PoisonError::into_inner);
        graph.begin();
        graph
    }

    /// The indices of the live states in a layer.
    fn slots(&self, at: usize) -> FxHashMap<u32, usize> {
        self.live[at].iter().enumerate().map(|(slot, &state)| (state, slot)).collect()
    }

    fn values(&self, graph: &mut Graph, weights: &Weights<'_>, by: By) -> Result<Values> {
        let length = self.cells.len();
        let mut layers = vec![Vec::new(); length + 1];
        layers[length] = vec![0.0; self.live[length].len()];
        for at in (0..length).rev() {
            let (slots, mut memo) = (self.slots(at + 1), Memo::new(weights, at, by));
            let mut own = Vec::with_capacity(self.live[at].len());
            for &state in self.live[at].iter() {
                let mut value = NONE;
                if let Some(token) = self.cells[at] {
                    let to = graph.after(state, token)?.expect("a live state goes on");
                    value = slots.get(&to).map_or(NONE, |&slot| layers[at + 1][slot]);
                } else {
                    for edge in graph.edges(state)?.iter() {
                        let Some(&slot) = slots.get(&edge.to) else { continue };
                        let way = memo.of(&edge.tokens) + layers[at + 1][slot];
                        value = if by == By::Sum { log_add(value, way) } else { value.max(way) };
                    }
                    graph.spend(memo.take_cost())?;
                }
                own.push(value);
            }
            layers[at] = own;
        }
        Ok(Values { layers })
    }
}

/// The first of the tokens that weigh most together with what follows, and the state after it.
fn first_of_heaviest(
    row: &[f32],
    weights: &Weights<'_>,
    edges: &[Edge],
    value: impl Fn(u32) -> Option<f64>,
) -> Option<(u32, u32)> {
    let mut first: Option<(f64, u32, u32)> = None;
    for edge in edges {
        let Some(value) = value(edge.to) else { continue };
        edge.tokens.each(|token| {
            let total = weights.of(row, token) + value;
            let better = first.is_none_or(|(most, least, _)| total > most || total == most && token < least);
            if better && total > NONE {
                first = Some((total, token, edge.to));
            }
        });
    }
    first.map(|(_, token, to)| (token, to))
}

fn value_of(values: &Values, slots: &FxHashMap<u32, usize>, at: usize, state: u32) -> Option<f64> {
    slots.get(&state).map(|&slot| values.layers[at][slot])
}

/// A position at which fillings are drawn.
struct DrawPosition<'a, 'b> {
    at: usize,
    slots: FxHashMap<u32, usize>,
    memo: Memo<'a, 'b>,
}
