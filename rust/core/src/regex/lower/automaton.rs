//! The general way: an explicit automaton of the pattern with all its assertions.
//!
//! A state is a boolean formula over *rests* (what is still to match: lists of nodes) and, for each
//! lookbehind X, the formula of `any X` since the start. Formulas have derivatives as in alternating automata
//! (Brzozowski & Leiss 1980): a lookahead adds its rest as a conjunct, a choice its branches as disjuncts, so
//! the states are finitely many. To decide a lookbehind, its formula is closed ([`Step::Close`]): rests of X
//! must be able to end here; what lookaheads inside of X still require of the text to come stays as a
//! formula. The automaton is the language ([`Lang::States`]). Exact, but exponential in the worst case:
//! bounded by [`MAX_STATES`], over which the pattern is refused. Rejected: this for every pattern; it would
//! write out counts and large choices.

use std::collections::HashSet;

use indexmap::IndexSet;

use super::super::charset::{part, CharSet};
use super::super::error::RegexError;
use super::super::lang::{Lang, State};
use super::super::syntax::Node;

const MAX_STATES: usize = 300;
const MAX_LETTERS: usize = 200;
const MAX_FORMULAS: usize = 60_000;
const MAX_WORK: usize = 1_000_000;

type RegexNodeId = usize;
type FormulaId = usize;
const FALSE: FormulaId = 0;
const TRUE: FormulaId = 1;

#[derive(Clone, PartialEq, Eq, Hash)]
enum Item {
    Set(CharSet),
    Sequence(Vec<RegexNodeId>),
    Choice(Vec<RegexNodeId>),
    Repeat(RegexNodeId, u32, Option<u32>),
    Ahead(RegexNodeId, bool),
    /// The bottom of a lookbehind's rests: it has matched up to here.
    Matched,
    /// The number of the lookbehind, and whether it is negative.
    Behind(usize, bool),
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Formula {
    False,
    True,
    /// The items still to match, the next one last.
    Rest(Vec<RegexNodeId>),
    And(Vec<FormulaId>),
    Or(Vec<FormulaId>),
    Not(FormulaId),
}

struct Builder {
    items: IndexSet<Item>,
    formulas: IndexSet<Formula>,
    /// For each lookbehind, the formula at the start of the string; inner ones come first.
    behinds: Vec<FormulaId>,
    column: usize,
    work: usize,
}

/// What happens at a position.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Read(u32),
    /// The string ends: formulas become TRUE or FALSE.
    End,
    /// A lookbehind is decided: its rests become TRUE or FALSE, other rests stay.
    Close,
}

/// What one derivation sees: the closed formulas of the lookbehinds, the step, and the rests being derived at
/// this position (a rest that recurs has read nothing: it adds nothing).
struct DerivationContext<'a> {
    holds: &'a [FormulaId],
    step: Step,
    open: HashSet<Vec<RegexNodeId>>,
}

/// The language of a pattern whose assertions cross (one of them at `column`).
pub(super) fn language(node: &Node, column: usize) -> Result<Lang, RegexError> {
    let mut builder = Builder {
        items: IndexSet::new(),
        formulas: IndexSet::from([Formula::False, Formula::True]),
        behinds: Vec::new(),
        column,
        work: 0,
    };
    let root = builder.item(node)?;
    let start = builder.rest(vec![root])?;
    let letters = builder.letters()?;
    Ok(Lang::States(builder.explore(start, &letters)?))
}

fn too_intricate(column: usize) -> RegexError {
    RegexError::unsupported(
        column,
        "this assertion crosses a repetition or another assertion in a way that is too intricate; simplify it",
    )
}

impl Builder {
    fn spend(&mut self) -> Result<(), RegexError> {
        self.work += 1;
        crate::work::spend(2);
        if self.work > MAX_WORK || self.formulas.len() > MAX_FORMULAS {
            return Err(too_intricate(self.column));
        }
        Ok(())
    }

    fn intern(&mut self, item: Item) -> RegexNodeId {
        self.items.insert_full(item).0
    }

    fn item(&mut self, node: &Node) -> Result<RegexNodeId, RegexError> {
        self.spend()?;
        let item = match node {
            Node::Set(set) => Item::Set(set.clone()),
            Node::Text(text) => Item::Sequence(
                text.chars().map(|c| self.intern(Item::Set(CharSet::single(c as u32)))).collect(),
            ),
            Node::Concat(parts) => {
                Item::Sequence(parts.iter().map(|part| self.item(part)).collect::<Result<_, _>>()?)
            }
            Node::Alt(parts) => {
                Item::Choice(parts.iter().map(|part| self.item(part)).collect::<Result<_, _>>()?)
            }
            Node::Repeat(inner, low, high) => Item::Repeat(self.item(inner)?, *low, *high),
            Node::Lazy(inner) => return self.item(inner),
            Node::Look(look) if look.behind => {
                let body = self.item(&look.body)?;
                let any = self.item(&Node::any())?;
                let matched = self.intern(Item::Matched);
                let formula = self.rest(vec![matched, body, any])?;
                let known = self.behinds.iter().position(|other| *other == formula);
                let number = known.unwrap_or_else(|| {
                    self.behinds.push(formula);
                    self.behinds.len() - 1
                });
                Item::Behind(number, look.negative)
            }
            Node::Look(look) => Item::Ahead(self.item(&look.body)?, look.negative),
        };
        Ok(self.intern(item))
    }

    fn formula(&mut self, formula: Formula) -> Result<FormulaId, RegexError> {
        self.spend()?;
        Ok(self.formulas.insert_full(formula).0)
    }

    fn is_any(&self, item: RegexNodeId) -> bool {
        matches!(self.items[item], Item::Repeat(inner, 0, None) if matches!(&self.items[inner], Item::Set(s) if s.is_full()))
    }

    fn rest(&mut self, items: Vec<RegexNodeId>) -> Result<FormulaId, RegexError> {
        if items.len() == 1 && self.is_any(items[0]) {
            return Ok(TRUE);
        }
        self.formula(Formula::Rest(items))
    }

    /// The conjunction (`and`) or disjunction, with the laws of units, absorption and excluded middle.
    fn join(&mut self, and: bool, parts: &[FormulaId]) -> Result<FormulaId, RegexError> {
        let (unit, zero) = if and { (TRUE, FALSE) } else { (FALSE, TRUE) };
        let mut flat: Vec<FormulaId> = Vec::new();
        for &part in parts {
            match &self.formulas[part] {
                Formula::And(inner) if and => flat.extend(inner),
                Formula::Or(inner) if !and => flat.extend(inner),
                _ => flat.push(part),
            }
        }
        flat.retain(|part| *part != unit);
        crate::lists::sort_unique(&mut flat);
        let mut keep = flat.clone();
        for &part in &flat {
            match &self.formulas[part] {
                Formula::Not(inner) if flat.contains(inner) => return Ok(zero),
                Formula::And(inner) | Formula::Or(inner) if inner.iter().any(|i| flat.contains(i)) => {
                    keep.retain(|kept| *kept != part);
                }
                _ => {}
            }
        }
        match keep.len() {
            _ if keep.contains(&zero) => Ok(zero),
            0 => Ok(unit),
            1 => Ok(keep[0]),
            _ => self.formula(if and { Formula::And(keep) } else { Formula::Or(keep) }),
        }
    }

    fn negation(&mut self, formula: FormulaId) -> Result<FormulaId, RegexError> {
        match self.formulas[formula] {
            Formula::False => Ok(TRUE),
            Formula::True => Ok(FALSE),
            Formula::Not(inner) => Ok(inner),
            _ => self.formula(Formula::Not(formula)),
        }
    }

    /// The formula that must hold after the step.
    fn derive(&mut self, formula: FormulaId, here: &mut DerivationContext) -> Result<FormulaId, RegexError> {
        match self.formulas[formula].clone() {
            Formula::False | Formula::True => Ok(formula),
            Formula::Rest(items) if here.step == Step::Close && self.items[items[0]] != Item::Matched => {
                Ok(formula)
            }
            Formula::Rest(items) => self.derive_rest(items, here),
            Formula::Not(inner) => {
                let inner = self.derive(inner, here)?;
                self.negation(inner)
            }
            Formula::And(parts) | Formula::Or(parts) => {
                let and = matches!(self.formulas[formula], Formula::And(_));
                let parts =
                    parts.into_iter().map(|part| self.derive(part, here)).collect::<Result<Vec<_>, _>>()?;
                self.join(and, &parts)
            }
        }
    }

    fn derive_rest(
        &mut self,
        items: Vec<RegexNodeId>,
        here: &mut DerivationContext,
    ) -> Result<FormulaId, RegexError> {
        self.spend()?;
        if here.open.len() > 2_000 {
            return Err(too_intricate(self.column));
        }
        if !here.open.insert(items.clone()) {
            return Ok(FALSE);
        }
        let result = self.derive_first(items.clone(), here);
        here.open.remove(&items);
        result
    }

    fn derive_first(
        &mut self,
        mut items: Vec<RegexNodeId>,
        here: &mut DerivationContext,
    ) -> Result<FormulaId, RegexError> {
        let Some(first) = items.pop() else {
            return Ok(if here.step == Step::End { TRUE } else { FALSE });
        };
        match self.items[first].clone() {
            Item::Set(set) => match here.step {
                Step::Read(letter) if set.contains(letter) => self.rest(items),
                _ => Ok(FALSE),
            },
            Item::Matched => Ok(if here.step == Step::Close { TRUE } else { FALSE }),
            Item::Sequence(parts) => {
                items.extend(parts.into_iter().rev());
                self.derive_rest(items, here)
            }
            Item::Choice(parts) => {
                let mut branches = Vec::with_capacity(parts.len());
                for part in parts {
                    let branch = [&items[..], &[part]].concat();
                    branches.push(self.derive_rest(branch, here)?);
                }
                self.join(false, &branches)
            }
            Item::Repeat(inner, low, high) => {
                let skip = if low == 0 { self.derive_rest(items.clone(), here)? } else { FALSE };
                if high == Some(0) {
                    return Ok(skip);
                }
                let fewer = Item::Repeat(inner, low.saturating_sub(1), high.map(|high| high - 1));
                items.push(self.intern(fewer));
                items.push(inner);
                let take = self.derive_rest(items, here)?;
                self.join(false, &[skip, take])
            }
            Item::Ahead(body, negative) => {
                let any = self.item(&Node::any())?;
                let seen = self.rest(vec![any, body])?;
                let seen = self.derive(seen, here)?;
                let seen = if negative { self.negation(seen)? } else { seen };
                let after = self.derive_rest(items, here)?;
                self.join(true, &[seen, after])
            }
            Item::Behind(number, negative) => {
                // Already closed: a second close leaves it as it is.
                let seen = self.derive(here.holds[number], here)?;
                let seen = if negative { self.negation(seen)? } else { seen };
                let after = self.derive_rest(items, here)?;
                self.join(true, &[seen, after])
            }
        }
    }

    /// The classes of characters that no set of the pattern distinguishes, each with one of its members.
    fn letters(&self) -> Result<Vec<(CharSet, u32)>, RegexError> {
        let mut letters = vec![CharSet::full()];
        for item in &self.items {
            if let Item::Set(set) = item {
                letters = part(&letters, set);
                if letters.len() > MAX_LETTERS {
                    return Err(too_intricate(self.column));
                }
            }
        }
        Ok(letters.into_iter().map(|set| (set.clone(), set.0[0].0)).collect())
    }

    fn explore(&mut self, start: FormulaId, letters: &[(CharSet, u32)]) -> Result<Vec<State>, RegexError> {
        type Position = (FormulaId, Vec<FormulaId>);
        let mut positions: IndexSet<Position> = IndexSet::from([(start, self.behinds.clone())]);
        let mut states: Vec<State> = Vec::new();
        while states.len() < positions.len() {
            let (formula, behinds) = positions[states.len()].clone();
            let mut holds: Vec<FormulaId> = Vec::with_capacity(behinds.len());
            for &behind in &behinds {
                // Inner lookbehinds have smaller numbers, so those inside this one are known.
                let mut here = DerivationContext { holds: &holds, step: Step::Close, open: HashSet::new() };
                let closed = self.derive(behind, &mut here)?;
                holds.push(closed);
            }
            let mut here = DerivationContext { holds: &holds, step: Step::End, open: HashSet::new() };
            let ends = self.derive(formula, &mut here)? == TRUE;
            let mut arrows = Vec::with_capacity(letters.len());
            for (set, letter) in letters {
                here.step = Step::Read(*letter);
                let next_formula = self.derive(formula, &mut here)?;
                if next_formula == FALSE {
                    continue;
                }
                let next: Position = if next_formula == TRUE {
                    (next_formula, Vec::new())
                } else {
                    let next =
                        behinds.iter().map(|&b| self.derive(b, &mut here)).collect::<Result<_, _>>()?;
                    (next_formula, next)
                };
                let number = positions.insert_full(next).0 as u32;
                arrows.extend(set.0.iter().map(|&range| (range, number)));
            }
            states.push(State::new(ends, arrows));
            if positions.len() > MAX_STATES {
                return Err(too_intricate(self.column));
            }
        }
        Ok(states)
    }
}
