//! Unit resolution among operands: `a & (!a | b)` is `a & b`, `a & (a | b)` is `a`; the dual rules hold for
//! unions.
//!
//! Purpose: the complement of `a & !b` is `!a | b`, so a language meets its own complement in parts. Without
//! these rules, only a search through all their states would show that no word is in both.
//! Invariant: every rule keeps the language.
//! Complexity: operands times the members of operands of the dual kind, both at most [`PAIRED`].
//! Rejected: resolution of pairs (it does not end soon).

use super::term::{Term, TermId, Terms};
use crate::work;

/// Operands, and members of one operand, that are compared with each other.
const PAIRED: usize = 16;

impl Terms {
    /// Simplifies each operand of a union (or intersection) by the others.
    pub(super) fn resolve(&mut self, flat: &mut Vec<TermId>, union: bool) {
        let (mut at, mut rounds) = (0, PAIRED);
        while at < flat.len() && flat.len() <= PAIRED && rounds > 0 {
            let operand = flat[at];
            let (inner, denied) = match *self.get(operand) {
                Term::Not(inner) => (inner, true),
                _ => (operand, false),
            };
            let Some(members) = self.members(inner, union == denied).filter(|xs| xs.len() <= PAIRED) else {
                at += 1;
                continue;
            };
            work::spend(1 + (flat.len() * members.len()) as u64 / 16);
            if members.iter().any(|&x| self.stands(x, denied, flat)) {
                flat.remove(at);
                continue;
            }
            let kept: Vec<TermId> =
                members.iter().copied().filter(|&x| !self.stands(x, !denied, flat)).collect();
            if kept.len() == members.len() {
                at += 1;
                continue;
            }
            flat.remove(at);
            let rest = if union == denied { self.or(&kept) } else { self.and(&kept) };
            let rest = if denied { self.not(rest) } else { rest };
            match self.members(rest, union) {
                Some(members) => flat.extend_from_slice(members),
                None => flat.push(rest),
            }
            // the rest may simplify operands before it
            (at, rounds) = (0, rounds - 1);
        }
        let neutral = if union { Self::EMPTY } else { Self::ALL };
        flat.retain(|&x| x != neutral);
    }

    /// The operands of a union, or of an intersection.
    fn members(&self, t: TermId, union: bool) -> Option<&[TermId]> {
        match self.get(t) {
            Term::Or(xs) if union => Some(xs),
            Term::And(xs) if !union => Some(xs),
            _ => None,
        }
    }

    /// Whether the term (`denied`: its complement) is one of the operands.
    fn stands(&self, x: TermId, denied: bool, flat: &[TermId]) -> bool {
        let denies = |x: TermId, y: TermId| matches!(*self.get(x), Term::Not(z) if z == y);
        flat.iter().any(|&y| if denied { denies(x, y) || denies(y, x) } else { x == y })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regex::{parse, Dialect};

    #[test]
    fn what_an_operand_decides_is_dropped() {
        let mut terms = Terms::default();
        let [a, b, c] = ["a+(bc)*", "(ab|c)*", "x?b*c"]
            .map(|p| terms.lower(&parse(p, Dialect::Python).expect("a pattern")));
        let (not_a, not_b, not_c) = (terms.not(a), terms.not(b), terms.not(c));
        let either = terms.or(&[not_a, b]);
        let both = terms.and(&[not_a, b]);
        let (meets, joins) = (terms.and(&[a, b]), terms.or(&[a, b]));
        assert_eq!(terms.and(&[a, either]), meets);
        assert_eq!(terms.or(&[a, both]), joins);
        assert_eq!((terms.and(&[a, joins]), terms.or(&[a, meets])), (a, a));
        // a language of three parts, and its complement
        let parts = [a, not_b, not_c];
        let (whole, members) = (terms.and(&parts), [not_a, b, c]);
        assert_eq!(terms.not(whole), terms.or(&members));
        let denied = terms.not(whole);
        assert_eq!(terms.and(&[whole, denied]), Terms::EMPTY);
        assert_eq!(terms.or(&[whole, denied]), Terms::ALL);
        // if no part is a complement, the whole's complement stays a `Not`
        for whole in [terms.and(&[a, b, c]), terms.or(&[a, b, c])] {
            let denied = terms.not(whole);
            assert_eq!(terms.and(&[whole, denied]), Terms::EMPTY);
            assert_eq!(terms.or(&[whole, denied]), Terms::ALL);
        }
    }

    #[test]
    fn what_is_left_decides_again() {
        let mut terms = Terms::default();
        let [a, b, c] = ["a+(bc)*", "(ab|c)*", "x?b*c"]
            .map(|p| terms.lower(&parse(p, Dialect::Python).expect("a pattern")));
        let (not_a, not_b) = (terms.not(a), terms.not(b));
        let (first, second) = (terms.or(&[not_a, b]), terms.or(&[not_b, c]));
        let all = terms.and(&[a, b, c]);
        assert_eq!(terms.and(&[second, first, a]), all);
    }
}
