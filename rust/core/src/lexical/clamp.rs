//! Counters that no token can use up are taken as endless (counter abstraction).
//!
//! `([a-z]+-){3,80}` and the 63 characters of a host name's label go through a state for each count.  Each would have a mask
//! of its own, though tokens of a few characters can't tell them apart.  So a term is compared with the one whose far
//! counters are endless: below a known length both allow the same texts, alive and complete alike.  The mask is that of
//! the endless term; only the few longer tokens are tried.
//!
//! Invariant: the endless term holds every word of the term; texts of at most `upto` code points are words of
//! both or of neither, and begin words of both or of neither.  The last needs care under `And`, where a beginning may have
//! no end that suits all parts: there the distance from every state of the endless term to an
//! end is taken off the length (a word that ends in time is a word of both).  Under `Not` nothing is changed.

use super::term::{Term, TermId, Terms, INF};

/// Code points of a repeat's greatest number of copies from which on it counts as endless.
const FAR: u32 = 24;
/// Lower bounds beyond this are cut to it.
const LEAST: u32 = 32;
/// Lengths up to which the two must agree for the comparison to pay: few tokens are longer.
const WORTH: u32 = 16;

impl Terms {
    /// The endless term and the length up to which it allows the same texts; `None` where the term has no such
    /// counters.
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
                // most terms have no far counter: they aren't built once more
                if (head, tail) == (x, y) {
                    return (t, u32::MAX);
                }
                (self.concat(head, tail), m.min(n))
            }
            Term::Repeat(x, lo, hi) => {
                // code points that a copy takes at least: an empty one is as good as none; no search for it
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

    /// A term that is cut to words of a length: the term itself, endless, as long as what is begun can be ended before the
    /// cut. How far that is the form tells; the counters inside matter no more than they would without the cut.
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
