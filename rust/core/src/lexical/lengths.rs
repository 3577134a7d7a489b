//! Bounds on the lengths of a term's words, known from its form when it is made.
//!
//! A conjunction with "at least `lo` and at most `hi` code points" loses what its other operands imply: a
//! date-time of at least one character is a date-time, so that its states recur and share their masks.

use super::term::{Term, TermId, Terms, INF};

/// No word is shorter than `least` or longer than `most`, in code points; `most` may be [`INF`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub least: u32,
    pub most: u32,
}

impl Terms {
    /// In O(operands): what the operands' own bounds tell.
    pub(super) fn span_of(&self, term: &Term, nullable: bool) -> Span {
        let span = |least, most| Span { least, most };
        let of = |t: &TermId| self.facts[t.0 as usize].span;
        match term {
            Term::Empty => span(INF, 0),
            Term::Eps => span(0, 0),
            Term::Class(_) => span(1, 1),
            Term::Concat(x, y) => {
                let (x, y) = (of(x), of(y));
                span(x.least.saturating_add(y.least), x.most.saturating_add(y.most))
            }
            Term::Or(xs) | Term::Tuple(xs) => {
                let all = xs.iter().map(of);
                all.fold(span(INF, 0), |a, b| span(a.least.min(b.least), a.most.max(b.most)))
            }
            Term::And(xs) => {
                let all = xs.iter().map(of);
                all.fold(span(0, INF), |a, b| span(a.least.max(b.least), a.most.min(b.most)))
            }
            Term::Repeat(x, lo, hi) => {
                let x = of(x);
                span(x.least.saturating_mul(*lo), x.most.saturating_mul(*hi))
            }
            Term::All | Term::Words(_) | Term::Not(_) | Term::Num(..) | Term::Spans(..) => {
                span(!nullable as u32, INF)
            }
        }
    }

    /// Takes from a conjunction the bounds on length that the other operands imply; leaves `EMPTY` alone where
    /// they contradict each other.
    pub(super) fn cut_lengths(&mut self, flat: &mut Vec<TermId>) {
        let any = self.any();
        let bounds = |this: &Self, x: TermId| match *this.get(x) {
            Term::Repeat(c, lo, hi) if c == any => Some((lo, hi)),
            _ => None,
        };
        let Some(at) = flat.iter().position(|&x| bounds(self, x).is_some()) else { return };
        let (lo, hi) = bounds(self, flat[at]).expect("found by it");
        let (mut least, mut most) = (0, INF);
        for (i, x) in flat.iter().enumerate() {
            if i != at {
                let span = self.facts[x.0 as usize].span;
                (least, most) = (least.max(span.least), most.min(span.most));
            }
        }
        if least > hi || most < lo {
            return *flat = vec![Self::EMPTY];
        }
        let kept = (if least >= lo { 0 } else { lo }, if most <= hi { INF } else { hi });
        if kept == (0, INF) {
            flat.swap_remove(at);
        } else if kept != (lo, hi) {
            flat[at] = self.repeat(any, kept.0, kept.1);
        }
    }
}
