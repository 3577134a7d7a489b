//! Which simple language a state's mask can be told from by its differences.
//!
//! "Any string but these keys", "at most 20 characters", "a match somewhere inside" allow nearly the tokens of
//! "any string"; a pattern with a bound on its length nearly those of the pattern; see
//! [`crate::mask::lexmask::LexMask::differ`].

use rustc_hash::FxHashSet;

use super::term::{Term, TermId, Terms, INF};

/// States of a pattern that are looked at to see how far it may be from an end.
const STATES: usize = 64;

/// What a state is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    pub term: TermId,
    /// Code points after which every state of the base can have ended.
    pub reach: u32,
}

impl Terms {
    /// A simpler language that holds every word of the term.
    pub fn base(&mut self, t: TermId) -> Option<Base> {
        match self.get(t).clone() {
            Term::Repeat(c, lo, hi) if hi > 1 && (lo, hi) != (0, INF) => {
                matches!(self.get(c), Term::Class(_)).then(|| Base { term: self.star(c), reach: 0 })
            }
            Term::And(xs) => {
                let any = self.any();
                let rest: Vec<TermId> = xs.iter().copied().filter(|&x| !self.is_bound(x, any)).collect();
                if rest.len() == xs.len() {
                    return None;
                }
                let term = self.and(&rest);
                let reach = self.reach(term)?;
                Some(Base { term, reach })
            }
            _ if t != Self::ALL && self.total(t) => Some(Base { term: Self::ALL, reach: 0 }),
            _ => None,
        }
    }

    /// A bound on length, or a finite set taken away: what a base leaves out.
    fn is_bound(&self, x: TermId, any: TermId) -> bool {
        match self.get(x) {
            Term::Repeat(c, _, _) => *c == any,
            Term::Not(y) => matches!(self.get(*y), Term::Words(_) | Term::Eps),
            _ => false,
        }
    }

    /// The greatest distance to an end among the states of a term; `None` where they are many.
    fn reach(&mut self, t: TermId) -> Option<u32> {
        let mut seen = FxHashSet::from_iter([t]);
        let mut stack = vec![t];
        let mut most = 0;
        while let Some(t) = stack.pop() {
            most = most.max(self.least_length(t)?);
            for run in self.delta(t).iter() {
                if run.to != Self::EMPTY && seen.insert(run.to) {
                    stack.push(run.to);
                }
            }
            if seen.len() > STATES {
                return None;
            }
        }
        Some(most)
    }

    /// Whether every text can still become a word.
    pub fn total(&self, t: TermId) -> bool {
        match self.get(t) {
            Term::All => true,
            Term::Concat(x, y) => *x == Self::ALL && !self.is_boolean(*y),
            Term::Or(xs) => xs.iter().any(|&x| self.total(x)),
            Term::Not(x) => matches!(self.get(*x), Term::Words(_) | Term::Eps),
            Term::Repeat(c, _, INF) => self.is_any(*c),
            _ => false,
        }
    }

    fn is_any(&self, c: TermId) -> bool {
        matches!(self.get(c), Term::Class(s) if self.set(*s) == [(0, 0xD7FF), (0xE000, super::term::MAX_CP)])
    }

    /// Whether the term accepts exactly the words that the base does, up to `height` code points.
    pub fn fills(&self, t: TermId, base: TermId, height: u32) -> bool {
        t == base
            || match (self.get(t), self.get(base)) {
                (Term::Repeat(c, 0, hi), Term::Repeat(d, 0, INF)) => c == d && *hi >= height,
                (Term::Repeat(c, 0, hi), Term::All) => *hi >= height && self.is_any(*c),
                _ => false,
            }
    }

    /// Whether the term stays alive under every text of `height` code points under which the base does.
    pub fn keeps_alive(&self, t: TermId, base: Base, height: u32) -> bool {
        match (self.get(t), base.term) {
            (Term::Repeat(c, _, hi), Self::ALL) => *hi >= height && self.is_any(*c),
            (Term::Repeat(c, _, hi), b) => {
                *hi >= height && matches!(self.get(b), Term::Repeat(d, 0, INF) if c == d)
            }
            (Term::Not(_), _) => false,
            (Term::And(xs), b) => {
                let rest = |x: &TermId| {
                    matches!(self.get(*x), Term::Repeat(c, 0, hi)
                    if *hi >= height.saturating_add(base.reach) && self.is_any(*c))
                };
                let mut others = xs.iter().filter(|x| !rest(x));
                match (others.next(), others.next(), self.get(b)) {
                    (Some(only), None, _) => *only == b,
                    (Some(first), Some(second), Term::And(ys)) => {
                        ys.contains(first) && ys.contains(second) && others.all(|x| ys.contains(x))
                    }
                    _ => false,
                }
            }
            (_, Self::ALL) => self.total(t),
            _ => false,
        }
    }
}
