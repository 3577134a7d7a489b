//! Accepted fillings by weight: the likeliest, drawn ones, and the distribution at each position.
//!
//! In: a row of logits for each position.  A filling weighs the sum of the logits of its tokens at the open positions; known
//! positions weigh nothing.
//! Law: `best` is the heaviest accepted filling, of equally heavy ones the first in the order of their tokens; `draw` has a
//! filling with the probability exp(weight) / Z, where Z is the sum over the accepted ones; `marginals` are the positions'
//! distributions under the same law.  Sums are made in float64.
//! Invariant: exact up to rounding; what is not accepted has no part in it.
//! Complexity: an edge of each live state, and a look at each token of each mask that a position has.

use std::sync::{Arc, PoisonError};

use rustc_hash::FxHashMap;

use super::graph::Graph;
use super::Canvas;
use crate::error::Result;
use crate::mask::Mask;

/// Nothing accepted has a weight.
const NONE: f64 = f64::NEG_INFINITY;

/// A row of logits for each position, over a temperature.
pub struct Weights<'a> {
    rows: &'a [f32],
    width: usize,
    temperature: f64,
}

impl<'a> Weights<'a> {
    /// `rows`: one after the other, `width` logits each; none of them is NaN or +infinity.
    pub fn new(rows: &'a [f32], width: usize, temperature: f64) -> Self {
        Weights { rows, width, temperature }
    }

    fn row(&self, at: usize) -> &[f32] {
        &self.rows[at * self.width..(at + 1) * self.width]
    }

    fn of(&self, row: &[f32], token: u32) -> f64 {
        row.get(token as usize).map_or(NONE, |&logit| f64::from(logit) / self.temperature)
    }

    /// The logarithm of the sum of a position's weights, over all tokens.
    pub fn total(&self, at: usize) -> f64 {
        let row = self.row(at);
        log_sum((0..row.len() as u32).map(|token| self.of(row, token)), self.heaviest(at))
    }

    fn heaviest(&self, at: usize) -> f64 {
        self.row(at).iter().fold(NONE, |most, &logit| most.max(f64::from(logit) / self.temperature))
    }
}

/// log(sum(exp)), where the largest is known.
fn log_sum(weights: impl Iterator<Item = f64>, most: f64) -> f64 {
    match most == NONE {
        true => NONE,
        false => most + weights.map(|w| (w - most).exp()).sum::<f64>().ln(),
    }
}

/// A filling: its tokens, and the sum of their logits.
pub struct Filling {
    /// At each position.
    pub tokens: Vec<u32>,
    /// Of the open positions.
    pub weight: f64,
}

/// How the edges of a state become its value.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Largest,
    Sum,
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
                None => {
                    let row = weights.row(at);
                    let mut first: Option<(f64, u32, u32)> = None;
                    for edge in graph.edges(state)?.iter() {
                        let Some(value) = value_of(&values, &slots, at + 1, edge.to) else { continue };
                        edge.tokens.each(|token| {
                            let total = weights.of(row, token) + value;
                            let better = first.is_none_or(|(most, least, _)| {
                                total > most || total == most && token < least
                            });
                            if better && total > NONE {
                                first = Some((total, token, edge.to));
                            }
                        });
                    }
                    let (_, token, to) = first.expect("a live state with a value goes on");
                    (token, to)
                }
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
            let mut place = Place { at, slots: self.slots(at + 1), memo: Memo::new(weights, at, By::Sum) };
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
        place: &mut Place<'_, '_>,
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
        // rounding may leave something behind the last
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
            // tokens by their mask: what all ways through them weigh but for themselves
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

    /// The places of the live states of a layer.
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

fn value_of(values: &Values, slots: &FxHashMap<u32, usize>, at: usize, state: u32) -> Option<f64> {
    slots.get(&state).map(|&slot| values.layers[at][slot])
}

fn log_add(a: f64, b: f64) -> f64 {
    let (most, least) = if a > b { (a, b) } else { (b, a) };
    match least == NONE {
        true => most,
        false => most + (least - most).exp().ln_1p(),
    }
}

/// A position at which fillings are drawn.
struct Place<'a, 'b> {
    at: usize,
    slots: FxHashMap<u32, usize>,
    memo: Memo<'a, 'b>,
}

/// What the tokens of a mask weigh at one position.
struct Memo<'a, 'b> {
    weights: &'a Weights<'b>,
    at: usize,
    by: By,
    known: FxHashMap<*const Mask, f64>,
    cost: u64,
}

impl<'a, 'b> Memo<'a, 'b> {
    fn new(weights: &'a Weights<'b>, at: usize, by: By) -> Self {
        Memo { weights, at, by, known: FxHashMap::default(), cost: 0 }
    }

    /// Steps of work since this was last asked.
    fn take_cost(&mut self) -> u64 {
        std::mem::take(&mut self.cost)
    }

    fn of(&mut self, tokens: &Arc<Mask>) -> f64 {
        memo!(self.known, Arc::as_ptr(tokens), {
            let row = self.weights.row(self.at);
            let (mut most, mut count) = (NONE, 0);
            tokens.each(|token| {
                count += 1;
                most = most.max(self.weights.of(row, token));
            });
            self.cost += 16 + count / 4;
            match self.by {
                By::Largest => most,
                By::Sum if most == NONE => NONE,
                By::Sum => {
                    let mut sum = 0.0;
                    tokens.each(|token| sum += (self.weights.of(row, token) - most).exp());
                    most + sum.ln()
                }
            }
        })
    }
}
