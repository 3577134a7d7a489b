//! Terminals that no lexer can read one behind the other: the first goes on with all that the second begins with, like two
//! names in a row where nothing is ignored.
//!
//! An expansion that needs such neighbours is never read to its end.  Looking ahead ([`super::lexeme_ends`]) finds that where
//! they come soon, but not where the rule needs itself before (`start: "(" start NAME NAME | "x"` goes on opening brackets),
//! so such expansions are found beforehand.  Their terminals still take part in the lexer's choices.
//! Invariant: an expansion that is found is never read to its end; one that is not found may never be either.
//! Complexity: [`SWEEPS`] passes over all symbols, each for the terminals by 64, in each of [`ROUNDS`] rounds at most; the
//! states of the few terminals in question.
//! Rejected: pairs of first and last terminals for each rule, which would find all: the square of the terminals for each
//! symbol.  Leaving the expansions out: another terminal would win their lexemes then.

use rustc_hash::FxHashMap;

use super::grammar::{Expansion, Grammar, Symbol};
use crate::lexical::Lexicon;
use crate::work;

const SWEEPS: usize = 32;
const ROUNDS: usize = 16;
/// Rules times terminals from which on nothing is looked at: 1 MB.
const MOST: usize = 4 << 20;

/// Terminals, as bits.
type Set = Box<[u64]>;

/// What rules begin and end with in their other expansions, and whether they may be empty.
struct BoundarySets<'a> {
    first: Vec<Set>,
    last: Vec<Set>,
    nullable: &'a [bool],
}

/// Of each expansion, whether it needs neighbours that can't be.
pub(super) fn unreadable(lexicon: &mut Lexicon, grammar: &Grammar) -> Box<[bool]> {
    let mut found = vec![false; grammar.expansions.len()].into_boxed_slice();
    // what is ignored may stand between any two, and members in any order are not written out
    let looks = grammar.looks_around || !grammar.following.is_empty();
    if grammar.terminals.iter().any(|t| t.ignored) || !grammar.orders.is_empty() || looks {
        return found;
    }
    let mut apart: FxHashMap<(u32, u32), bool> = FxHashMap::default();
    for _ in 0..ROUNDS {
        let Some(borders) = BoundarySets::of(grammar, &found) else { break };
        let mut may_follow = |a: u32, b: u32| {
            *apart.entry((a, b)).or_insert_with(|| {
                match (grammar.terminals[a as usize].term, grammar.terminals[b as usize].term) {
                    (Some(a), Some(b)) => lexicon.may_end_before(a, b),
                    _ => true,
                }
            })
        };
        let mut grows = false;
        for (expansion, found) in grammar.expansions.iter().zip(found.iter_mut()).filter(|e| !*e.1) {
            *found =
                expansion.symbols.windows(2).any(|pair| borders.clash(pair[0], pair[1], &mut may_follow));
            grows |= *found;
        }
        if !grows {
            break;
        }
    }
    found
}

impl<'a> BoundarySets<'a> {
    /// `None` where that takes too long.
    fn of(grammar: &'a Grammar, unreadable: &[bool]) -> Option<Self> {
        let (rules, terminals) = (grammar.names.len(), grammar.terminals.len());
        if rules.saturating_mul(terminals) > MOST {
            return None;
        }
        let none = || vec![vec![0u64; terminals.div_ceil(64)].into_boxed_slice(); rules];
        let mut this = BoundarySets { first: none(), last: none(), nullable: &grammar.nullable };
        let read = || grammar.expansions.iter().zip(unreadable).filter(|e| !*e.1).map(|e| e.0);
        for sweep in 0..SWEEPS {
            let mut grows = false;
            let mut each = |expansion: &Expansion| grows |= this.grow(expansion);
            // rules stand before what they need, or behind it
            match sweep % 2 {
                0 => read().rev().for_each(&mut each),
                _ => read().for_each(&mut each),
            }
            if !grows {
                return Some(this);
            }
        }
        None
    }

    fn grow(&mut self, expansion: &Expansion) -> bool {
        let (origin, body) = (expansion.origin as usize, &expansion.symbols);
        work::spend(body.len() as u64 * (2 + self.first[origin].len() as u64));
        let mut grows = false;
        for &symbol in body {
            grows |= add(&mut self.first, origin, symbol);
            if !self.is_nullable(symbol) {
                break;
            }
        }
        for &symbol in body.iter().rev() {
            grows |= add(&mut self.last, origin, symbol);
            if !self.is_nullable(symbol) {
                break;
            }
        }
        grows
    }

    fn is_nullable(&self, symbol: Symbol) -> bool {
        matches!(symbol, Symbol::Rule(rule) if self.nullable[rule as usize])
    }

    /// Whether no end of one symbol may stand before a beginning of the next.
    fn clash(&self, one: Symbol, next: Symbol, may_follow: &mut dyn FnMut(u32, u32) -> bool) -> bool {
        if self.is_nullable(one) || self.is_nullable(next) {
            return false;
        }
        let (ends, begins) = (self.set(one, &self.last), self.set(next, &self.first));
        !ends.iter().any(|&a| begins.iter().any(|&b| may_follow(a, b)))
    }

    fn set(&self, symbol: Symbol, sets: &[Set]) -> Vec<u32> {
        match symbol {
            Symbol::Terminal(t) => vec![t],
            Symbol::Rule(rule) => {
                let words = (0u32..).zip(sets[rule as usize].iter());
                words
                    .flat_map(|(i, &word)| {
                        (0..64).filter(move |b| word >> b & 1 == 1).map(move |b| i * 64 + b)
                    })
                    .collect()
            }
        }
    }
}

/// Adds a symbol's terminals to those of a rule.
fn add(sets: &mut [Set], origin: usize, symbol: Symbol) -> bool {
    let mut grows = false;
    let mut put = |own: &mut u64, more: u64| {
        grows |= more & !*own != 0;
        *own |= more;
    };
    match symbol {
        Symbol::Terminal(t) => put(&mut sets[origin][t as usize / 64], 1 << (t % 64)),
        Symbol::Rule(rule) if rule as usize != origin => {
            let other = sets[rule as usize].clone();
            sets[origin].iter_mut().zip(other.iter()).for_each(|(own, &more)| put(own, more));
        }
        Symbol::Rule(_) => {}
    }
    grows
}
