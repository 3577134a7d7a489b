//! Union, intersection and complement of terms: each is simplified as it is made.
//!
//! Invariant: every rule keeps the language, and gives equal operands in any order the same number.

use super::term::{Term, TermId, Terms};

impl Terms {
    /// What is not in `x`. Complements among the operands of a union or intersection come out by De Morgan's
    /// laws: what was said by two negations is then seen by the rules for `and`, `or`.
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
        let mut flat = Vec::with_capacity(xs.len() + 2);
        for &x in xs {
            match self.get(x) {
                Term::Or(ys) => flat.extend_from_slice(ys),
                Term::Empty => {}
                Term::All => return Self::ALL,
                _ => flat.push(x),
            }
        }
        // the rules for a union go over all operands a dozen times
        self.spend(2 + (flat.len() / 4 + flat.len().saturating_sub(16)) as u64);
        crate::lists::sort_unique(&mut flat);
        if flat.len() > 1 {
            self.merge_classes(&mut flat, true);
            self.merge_words(&mut flat);
            self.merge_counts(&mut flat);
            self.merge_stars(&mut flat);
            self.resolve(&mut flat, true);
            self.drop_covered(&mut flat);
            if flat.contains(&Self::EPS) && flat.iter().any(|&x| x != Self::EPS && self.nullable(x)) {
                flat.retain(|&x| x != Self::EPS);
            }
            crate::lists::sort_unique(&mut flat);
        }
        for &x in &flat {
            if x == Self::ALL {
                return Self::ALL;
            }
            if let Term::Not(y) = self.get(x) {
                if flat.binary_search(y).is_ok() {
                    return Self::ALL;
                }
            }
        }
        match flat.len() {
            0 => Self::EMPTY,
            1 => flat[0],
            _ => self.intern(Term::Or(flat.into())),
        }
    }

    pub fn and(&mut self, xs: &[TermId]) -> TermId {
        let mut flat = Vec::with_capacity(xs.len() + 2);
        for &x in xs {
            match self.get(x) {
                Term::And(ys) => flat.extend_from_slice(ys),
                Term::All => {}
                Term::Empty => return Self::EMPTY,
                _ => flat.push(x),
            }
        }
        // more rules than for a union look at all operands
        self.spend(2 + (flat.len() / 4 + flat.len().saturating_sub(16)) as u64);
        crate::lists::sort_unique(&mut flat);
        if flat.len() > 1 {
            self.merge_classes(&mut flat, false);
            self.cut_counts(&mut flat);
            self.cut_lengths(&mut flat);
            self.merge_excluded(&mut flat);
            self.resolve(&mut flat, false);
            if flat.contains(&Self::EMPTY) {
                return Self::EMPTY;
            }
            self.drop_covering(&mut flat);
            if let Some(words) = self.filter_words(&flat) {
                return words;
            }
            crate::lists::sort_unique(&mut flat);
        }
        if flat.contains(&Self::EPS) {
            let all = flat.iter().all(|&x| self.nullable(x));
            return if all { Self::EPS } else { Self::EMPTY };
        }
        for &x in &flat {
            if let Term::Not(y) = self.get(x) {
                if flat.binary_search(y).is_ok() {
                    return Self::EMPTY;
                }
            }
        }
        match flat.len() {
            0 => Self::ALL,
            1 => flat[0],
            _ => self.intern(Term::And(flat.into())),
        }
    }
}
