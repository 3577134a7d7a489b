//! Union, intersection and complement of terms: each is simplified as it is made.
//!
//! Invariant: every rule keeps the language; equal operands in any order give the same term id.

use super::term::{Term, TermId, Terms};

impl Terms {
    /// The complement of `x`. Complements among the operands of a union or intersection cancel by De Morgan's
    /// laws, so that the rules of `and` and `or` see what they negated.
    pub fn not(&mut self, x: TermId) -> TermId {
        let (xs, union) = match self.get(x) {
            Term::Empty => return Self::ALL,
            Term::All => return Self::EMPTY,
            Term::Not(y) => return *y,
            Term::Or(xs) => (xs, true),
            Term::And(xs) => (xs, false),
            _ => return self.intern(Term::Not(x)),
        };
        let (mut parts, mut others) = (Vec::new(), Vec::new());
        for &x in xs {
            match *self.get(x) {
                Term::Not(y) => parts.push(y),
                _ => others.push(x),
            }
        }
        if parts.is_empty() {
            return self.intern(Term::Not(x));
        }
        let rest = if union { self.or(&others) } else { self.and(&others) };
        parts.push(self.not(rest));
        if union {
            self.and(&parts)
        } else {
            self.or(&parts)
        }
    }

    pub fn or(&mut self, xs: &[TermId]) -> TermId {
        self.joined(xs, true)
    }

    pub fn and(&mut self, xs: &[TermId]) -> TermId {
        self.joined(xs, false)
    }

    fn joined(&mut self, xs: &[TermId], union: bool) -> TermId {
        let (neutral, deciding) = if union { (Self::EMPTY, Self::ALL) } else { (Self::ALL, Self::EMPTY) };
        let mut flat = Vec::with_capacity(xs.len() + 2);
        for &x in xs {
            match self.get(x) {
                Term::Or(ys) if union => flat.extend_from_slice(ys),
                Term::And(ys) if !union => flat.extend_from_slice(ys),
                _ if x == deciding => return deciding,
                _ if x == neutral => {}
                _ => flat.push(x),
            }
        }
        // the rules go over all operands a dozen times
        self.spend(2 + (flat.len() / 4 + flat.len().saturating_sub(16)) as u64);
        crate::lists::sort_unique(&mut flat);
        if flat.len() > 1 {
            if union {
                self.simplify_union(&mut flat);
            } else if let Some(whole) = self.simplify_intersection(&mut flat) {
                return whole;
            }
            crate::lists::sort_unique(&mut flat);
        }
        if !union && flat.contains(&Self::EPS) {
            let all = flat.iter().all(|&x| self.nullable(x));
            return if all { Self::EPS } else { Self::EMPTY };
        }
        let excluded = |&x: &TermId| matches!(self.get(x), Term::Not(y) if flat.binary_search(y).is_ok());
        if flat.iter().any(|x| *x == deciding || excluded(x)) {
            return deciding;
        }
        match flat[..] {
            [] => neutral,
            [one] => one,
            _ if union => self.intern(Term::Or(flat.into())),
            _ => self.intern(Term::And(flat.into())),
        }
    }

    /// Replaces operands of a union by simpler ones.
    fn simplify_union(&mut self, flat: &mut Vec<TermId>) {
        self.merge_classes(flat, true);
        self.merge_words(flat);
        self.merge_counts(flat);
        self.merge_stars(flat);
        self.resolve(flat, true);
        self.drop_covered(flat);
        if flat.contains(&Self::EPS) && flat.iter().any(|&x| x != Self::EPS && self.nullable(x)) {
            flat.retain(|&x| x != Self::EPS);
        }
    }

    /// The same for an intersection; `Some`: the whole intersection is this term.
    fn simplify_intersection(&mut self, flat: &mut Vec<TermId>) -> Option<TermId> {
        self.merge_classes(flat, false);
        self.cut_counts(flat);
        self.cut_lengths(flat);
        self.merge_excluded(flat);
        self.resolve(flat, false);
        if flat.contains(&Self::EMPTY) {
            return Some(Self::EMPTY);
        }
        self.drop_covering(flat);
        self.filter_words(flat)
    }
}
