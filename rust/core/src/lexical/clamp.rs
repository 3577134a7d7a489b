//! Counter abstraction: a counter that no token can exhaust is treated as endless, without an upper bound.
//!
//! `([a-z]+-){3,80}` and a host name's label of up to 63 characters have a state, and would have a mask, for
//! each count, though tokens of a few characters cannot tell them apart. So a term is compared with its
//! endless term, whose large counters are endless: up to a known length both have the same words and
//! prefixes. The mask is that of the endless term; only the few longer tokens are tried.
//!
//! Invariant: the endless term accepts every word of the term; a text of at most `upto` code points is a word
//! of both or of neither, and a prefix of words of both or of neither. Under `And` the second part needs
//! care: a prefix for each operand may have no common completion. There a bound on the distance from any
//! state of the endless term to an accepting one is subtracted (a word within `upto` is a word of both).
//! `Not` stays as it is.

use super::term::{Term, TermId, Terms, INF};

/// A repeat is made endless if its greatest number of copies takes at least so many code points.
const FAR: u32 = 24;
/// Greater lower bounds are reduced to this.
const LEAST: u32 = 32;
/// The comparison pays only if both agree up to this length: few tokens are longer.
const WORTH: u32 = 16;

impl Terms {
    /// The endless term and the length up to which both agree; `None` if they are the same term, or the
    /// length is below `WORTH`.
    pub(super) fn endless(&mut self, t: TermId) -> Option<(TermId, u32)> {
        let (endless, upto) = self.clamp(t);
        (endless != t && upto >= WORTH).then_some((endless, upto))
    }

    fn clamp(&mut self, t: TermId) -> (TermId, u32) {
        memo!(self.known.clamped, t, stacker::maybe_grow(64 << 10, 1 << 20, || self.find_clamp(t)))
    }

    fn find_clamp(&mut self, t: TermId) -> (TermId, u32) {
        match self.get(t).clone() {
            Term::Concat(x, y) => {
                let ((head, m), (tail, n)) = (self.clamp(x), self.clamp(y));
                // most terms have no large counter: they need no second construction
                if (head, tail) == (x, y) {
                    return (t, u32::MAX);
                }
                (self.concat(head, tail), m.min(n))
            }
            Term::Repeat(x, lo, hi) => {
                // the fewest code points of a copy, without a search; an empty copy is as good as none
                let each =
                    if self.is_boolean(x) { self.at_least(x) } else { self.least_length(x).unwrap_or(1) };
                let each = each.max(1);
                let (x, mut upto) = self.clamp(x);
                let mut bounds = (lo, hi);
                if lo > LEAST {
                    bounds.0 = LEAST;
                    upto = upto.min(LEAST.saturating_mul(each) - 1);
                }
                if hi != INF && hi.saturating_mul(each) >= FAR {
                    bounds.1 = INF;
                    upto = upto.min(hi.saturating_mul(each));
                }
                (self.repeat(x, bounds.0, bounds.1), upto)
            }
            Term::Or(xs) | Term::Tuple(xs) => match self.clamp_all(&xs) {
                (parts, _) if parts[..] == xs[..] => (t, u32::MAX),
                (parts, upto) if matches!(self.get(t), Term::Or(_)) => (self.or(&parts), upto),
                (parts, upto) => (self.tuple(&parts), upto),
            },
            Term::And(xs) => {
                if let Some(answer) = self.clamp_cut(t) {
                    return answer;
                }
                let (xs, upto) = self.clamp_all(&xs);
                if upto == u32::MAX {
                    return (t, upto);
                }
                let both = self.and(&xs);
                match self.remaining_bound(both).filter(|&reach| upto >= reach.saturating_add(WORTH)) {
                    Some(reach) => (both, upto - reach),
                    None => (t, u32::MAX),
                }
            }
            _ => (t, u32::MAX),
        }
    }

    /// `t` is `rest & .{0,most}`: its endless term is that of `rest`, for lengths after which every prefix
    /// can still be completed within `most` (by `remaining_bound`). Counters inside `rest` matter no more
    /// than they would without the limit.
    fn clamp_cut(&mut self, t: TermId) -> Option<(TermId, u32)> {
        let (rest, most) = self.length_limit(t)?;
        let near =
            most.checked_sub(self.remaining_bound(rest)?).filter(|&near| near >= WORTH && most >= FAR)?;
        let (endless, upto) = self.clamp(rest);
        Some((endless, upto.min(near)))
    }

    fn clamp_all(&mut self, xs: &[TermId]) -> (Vec<TermId>, u32) {
        let all: Vec<(TermId, u32)> = xs.iter().map(|&x| self.clamp(x)).collect();
        let upto = all.iter().map(|c| c.1).min().unwrap_or(u32::MAX);
        (all.into_iter().map(|c| c.0).collect(), upto)
    }
}
