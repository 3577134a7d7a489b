//! The weights of tokens at a position: logits over a temperature, and the sum or the largest of a mask.
//!
//! Invariant: float64; what has no weight is -infinity, and stays so.
//! Complexity: one step for each token of each mask, once per position.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::mask::Mask;

/// Nothing accepted has a weight.
pub(super) const NONE: f64 = f64::NEG_INFINITY;

/// A row of logits for each position, over a temperature.
pub struct Weights<'a> {
    rows: &'a [f32],
    pub(super) width: usize,
    temperature: f64,
}

impl<'a> Weights<'a> {
    /// `rows`: one after the other, `width` logits each; none of them is NaN or +infinity.
    pub fn new(rows: &'a [f32], width: usize, temperature: f64) -> Self {
        Weights { rows, width, temperature }
    }

    pub(super) fn row(&self, at: usize) -> &[f32] {
        &self.rows[at * self.width..(at + 1) * self.width]
    }

    pub(super) fn of(&self, row: &[f32], token: u32) -> f64 {
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

/// log(sum(exp)), for a known largest weight.
fn log_sum(weights: impl Iterator<Item = f64>, most: f64) -> f64 {
    match most == NONE {
        true => NONE,
        false => most + weights.map(|w| (w - most).exp()).sum::<f64>().ln(),
    }
}

/// How the edges of a state become its value.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum By {
    Largest,
    Sum,
}

pub(super) fn log_add(a: f64, b: f64) -> f64 {
    let (most, least) = if a > b { (a, b) } else { (b, a) };
    match least == NONE {
        true => most,
        false => most + (least - most).exp().ln_1p(),
    }
}

/// What the tokens of a mask weigh at one position.
pub(super) struct Memo<'a, 'b> {
    pub(super) weights: &'a Weights<'b>,
    at: usize,
    by: By,
    known: FxHashMap<*const Mask, f64>,
    cost: u64,
}

impl<'a, 'b> Memo<'a, 'b> {
    pub(super) fn new(weights: &'a Weights<'b>, at: usize, by: By) -> Self {
        Memo { weights, at, by, known: FxHashMap::default(), cost: 0 }
    }

    /// Steps of work since the last call.
    pub(super) fn take_cost(&mut self) -> u64 {
        std::mem::take(&mut self.cost)
    }

    pub(super) fn of(&mut self, tokens: &Arc<Mask>) -> f64 {
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
