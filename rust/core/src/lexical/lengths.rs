//! Bounds on the lengths of a term's words, known from its form when it is made.
//!
//! A conjunction with "at least `lo` and at most `hi` code points" loses what its other operands imply: a
//! date-time of at least one character is a date-time, so that its states recur and share their masks.

use super::term::{Term, TermId, Terms, INF};

/// No word is shorter than `least` or longer than `most`, in code points. Two bytes each, for there is one with
/// every term: greater lengths are told no nearer than "65,535 or more", `most` as if it were unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    least: u16,
    most: u16,
}

impl Span {
    fn new(least: u32, most: u32) -> Self {
        let cut = |n: u32| n.min(u16::MAX as u32) as u16;
        Span { least: cut(least), most: cut(most) }
    }

    fn get(self) -> (u32, u32) {
        (self.least as u32, if self.most == u16::MAX { INF } else { self.most as u32 })
    }
}

impl Terms {
    /// In O(operands): what the operands' own bounds tell.
    pub(super) fn span_of(&self, term: &Term, nullable: bool) -> Span {
        let of = |t: &TermId| self.facts[t.0 as usize].span.get();
        let (least, most) = match term {
            Term::Empty => (INF, 0),
            Term::Eps => (0, 0),
            Term::Class(_) => (1, 1),
            Term::Concat(x, y) => {
                let (x, y) = (of(x), of(y));
                (x.0.saturating_add(y.0), x.1.saturating_add(y.1))
            }
            Term::Or(xs) | Term::Tuple(xs) => {
                xs.iter().map(of).fold((INF, 0), |a, b| (a.0.min(b.0), a.1.max(b.1)))
            }
            Term::And(xs) => xs.iter().map(of).fold((0, INF), |a, b| (a.0.max(b.0), a.1.min(b.1))),
            Term::Repeat(x, lo, hi) => {
                let x = of(x);
                (x.0.saturating_mul(*lo), x.1.saturating_mul(*hi))
            }
            Term::All | Term::Words(_) | Term::Not(_) | Term::Num(..) | Term::Spans(..) => {
                (!nullable as u32, INF)
            }
        };
        Span::new(least, most)
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
                let span = self.facts[x.0 as usize].span.get();
                (least, most) = (least.max(span.0), most.min(span.1));
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
