//! Branches of a formula by decisions: what a value satisfies, expression by expression.
//!
//! Multiplying out gives as many branches as there are combinations of operands; a `oneOf` of fifteen says of each of its
//! parts "and none of the others", which is thousands.  But a value decides far fewer things: which of the expressions that
//! the formula asks about it hold.  So the expressions are decided one after the other, each answer narrowing the values,
//! until none is left or the answers make the formula false; answers that no value can give are never followed.  A
//! discriminator with k values leaves k + 1 branches.  Branches exclude each other, and their rests need no product: the
//! answers are put in.
//!
//! Rejected: deciding always.  A formula without clashes has fewer and simpler branches multiplied out, since
//! nothing has to be denied there; see [`MULTIPLIED`].
//! Invariant: a value satisfies the formula where it satisfies one branch, and no value two.
//! Complexity: [`DECIDED`] branches at most, each a walk of the formula and a question of satisfiability.

use super::by_key::Key;
use super::formula::{Formula, Op};
use super::value::{ExprId, SchemaExpr, ValId};
use super::{count_step, Schema};
use crate::work;

/// Branches up to which a formula is multiplied out.
pub const MULTIPLIED: usize = 12;

/// Expressions up to which they are decided one by one.
const MOST_ASKED: usize = 256;

/// Atoms and operations from which on a formula may have more branches than are multiplied out: each atom has two at most.
const SMALLEST: u32 = 5;
/// Atoms and operations of a formula that is decided, those that it names twice counted twice.
const LARGEST: u32 = 16_384;

/// Branches that deciding may give, before merging.
const DECIDED: usize = 512;

/// What a formula says of the value that is read next.
#[derive(Clone, Copy)]
pub struct Leaf<F> {
    /// The expression that it asks about.
    pub sub: ExprId,
    /// What is left of it where the expression holds, and where it does not.
    pub when_true: F,
    pub when_false: F,
    /// The stricter of the two, where it may be taken whatever the value is.
    pub regardless: Option<F>,
}

impl<F: Formula> Leaf<F> {
    /// An atom to which the value means nothing.
    pub fn sure(rest: F) -> Self {
        Leaf { sub: ExprId::TRUE, when_true: rest, when_false: rest, regardless: None }
    }

    /// An atom that asks for this expression.
    pub fn asks(sub: ExprId, when_true: F) -> Self {
        Leaf { sub, when_true, when_false: F::FALSE, regardless: None }
    }
}

/// A formula with its atoms looked up: the expressions by number, and whether the atom denies them.
enum DecisionNode<F> {
    And(Vec<DecisionNode<F>>),
    Or(Vec<DecisionNode<F>>),
    /// What is left where the expression holds and where it does not.
    Asks(usize, F, F),
    Sure(F),
}

/// The decisions of one formula and one value.
struct Decisions<F> {
    formula: DecisionNode<F>,
    asked: Vec<ExprId>,
    answers: Vec<Option<bool>>,
    out: usize,
    /// Units of work that a walk of the formula takes.
    walk: u64,
}

/// A branch: the values, as the answers that lead there and as a formula; the rest.
type DecisionBranch<F> = (Vec<ExprId>, ValId, F);

impl<F: Formula> DecisionNode<F> {
    fn read(schema: &mut Schema, f: F, key: Option<&Key>, asked: &mut indexmap::IndexSet<ExprId>) -> Self {
        if let Some((op, list)) = f.operands(schema).map(|(op, list)| (op, list.to_vec())) {
            let list = list.into_iter().map(|part| Self::read(schema, part, key, asked)).collect();
            return match op {
                Op::And => DecisionNode::And(list),
                Op::Or => DecisionNode::Or(list),
            };
        }
        match f.leaf(schema, key) {
            Leaf { when_true, when_false, .. } if when_true == when_false => DecisionNode::Sure(when_true),
            Leaf { sub: ExprId::TRUE, when_true, .. } => DecisionNode::Sure(when_true),
            Leaf { sub: ExprId::FALSE, when_false, .. } => DecisionNode::Sure(when_false),
            Leaf { sub, when_true, when_false, .. } => match schema.arenas.subs[sub.0 as usize] {
                SchemaExpr::Not(inner) => {
                    DecisionNode::Asks(asked.insert_full(inner).0, when_false, when_true)
                }
                _ => DecisionNode::Asks(asked.insert_full(sub).0, when_true, when_false),
            },
        }
    }

    /// Branches that multiplying out would give, before any is dropped.
    fn product(&self) -> usize {
        match self {
            DecisionNode::And(list) => list.iter().fold(1, |n: usize, part| n.saturating_mul(part.product())),
            DecisionNode::Or(list) => list.iter().fold(0, |n: usize, part| n.saturating_add(part.product())),
            DecisionNode::Asks(_, when_true, when_false) => {
                (*when_true != F::FALSE) as usize + (*when_false != F::FALSE) as usize
            }
            DecisionNode::Sure(rest) => (*rest != F::FALSE) as usize,
        }
    }

    /// Whether the answers so far leave it possible.
    fn possible(&self, answers: &[Option<bool>]) -> bool {
        match self {
            DecisionNode::And(list) => list.iter().all(|part| part.possible(answers)),
            DecisionNode::Or(list) => list.iter().any(|part| part.possible(answers)),
            DecisionNode::Asks(i, when_true, when_false) => match answers[*i] {
                Some(true) => *when_true != F::FALSE,
                Some(false) => *when_false != F::FALSE,
                None => true,
            },
            DecisionNode::Sure(rest) => *rest != F::FALSE,
        }
    }

    /// The next expression to ask about: that of an operand of the outermost conjunctions, where there is one,
    /// since those are not free to fail.
    fn question(&self, answers: &[Option<bool>]) -> Option<usize> {
        match self {
            DecisionNode::Asks(i, ..) => answers[*i].is_none().then_some(*i),
            DecisionNode::Sure(_) => None,
            DecisionNode::And(list) => {
                let atoms = list.iter().filter(|part| matches!(part, DecisionNode::Asks(..)));
                let others = list.iter().filter(|part| !matches!(part, DecisionNode::Asks(..)));
                atoms.chain(others).find_map(|part| part.question(answers))
            }
            DecisionNode::Or(list) => {
                list.iter().filter(|part| part.possible(answers)).find_map(|part| part.question(answers))
            }
        }
    }

    /// What is left after the answers. Questions of parts that the answers made impossible were never asked.
    fn rest(&self, schema: &mut Schema, answers: &[Option<bool>]) -> F {
        match self {
            _ if !self.possible(answers) => F::FALSE,
            DecisionNode::And(list) => {
                let mut parts = Vec::with_capacity(list.len());
                for part in list {
                    match part.rest(schema, answers) {
                        rest if rest == F::FALSE => return F::FALSE,
                        rest => parts.push(rest),
                    }
                }
                schema.and(&parts)
            }
            DecisionNode::Or(list) => {
                let parts: Vec<F> = list.iter().map(|part| part.rest(schema, answers)).collect();
                schema.or(&parts)
            }
            DecisionNode::Asks(i, when_true, when_false) => {
                if answers[*i].expect("every question of a possible part was answered") {
                    *when_true
                } else {
                    *when_false
                }
            }
            DecisionNode::Sure(rest) => *rest,
        }
    }
}

impl Schema {
    /// The branches of an atom, two at most.
    pub(super) fn leaf_branches<F: Formula>(&mut self, leaf: Leaf<F>) -> Vec<(ExprId, F)> {
        let Leaf { sub, when_true, when_false, regardless } = leaf;
        let not = self.not_sub(sub);
        let mut out = match () {
            _ if when_true == when_false => vec![(ExprId::TRUE, when_true)],
            _ if regardless == Some(when_true) => vec![(not, when_false), (ExprId::TRUE, when_true)],
            _ if regardless == Some(when_false) => vec![(sub, when_true), (ExprId::TRUE, when_false)],
            _ => vec![(sub, when_true), (not, when_false)],
        };
        if out.first().is_some_and(|b| b.0 == ExprId::TRUE) {
            // nothing stricter is worth having beside it
            out.truncate(1);
        }
        out.retain(|b| b.0 != ExprId::FALSE && b.1 != F::FALSE);
        out
    }

    /// The branches of a formula, where deciding is worth it and gives few enough.
    pub(super) fn decide<F: Formula>(&mut self, f: F, key: Option<&Key>) -> Option<Vec<(ExprId, F)>> {
        if !(SMALLEST..=LARGEST).contains(&f.facts(self).size) {
            return None;
        }
        let mut asked = indexmap::IndexSet::new();
        let formula = DecisionNode::read(self, f, key, &mut asked);
        let product = formula.product();
        // a plain disjunction has a branch for each question: there is nothing to win
        if product <= MULTIPLIED || asked.len() > MOST_ASKED || asked.len() * 2 > product {
            return None;
        }
        let answers = vec![None; asked.len()];
        let walk = 2 + f.facts(self).size as u64 / 4;
        let mut decisions = Decisions { formula, asked: asked.into_iter().collect(), answers, out: 0, walk };
        let list = decisions.branches(self, ValId::TRUE, &mut Vec::new())?;
        let mut by_rest: indexmap::IndexMap<F, Vec<(ExprId, ValId)>> = Default::default();
        for (answers, value, rest) in list {
            let sub = self.and(&answers);
            self.compiled.of.entry(sub).or_insert(value);
            by_rest.entry(rest).or_default().push((sub, value));
        }
        Some(by_rest.into_iter().map(|(rest, ways)| (self.join(&ways), rest)).collect())
    }

    /// The values of several branches, as one expression with its formula.
    fn join(&mut self, ways: &[(ExprId, ValId)]) -> ExprId {
        let subs: Vec<ExprId> = ways.iter().map(|w| w.0).collect();
        let sub = self.or(&subs);
        if !self.compiled.of.contains_key(&sub) {
            let value = ways.iter().fold(ValId::FALSE, |v, w| self.or_values(v, w.1));
            self.compiled.of.insert(sub, value);
        }
        sub
    }
}

impl<F: Formula> Decisions<F> {
    /// `None` where there are too many, or the time is up.
    fn branches(
        &mut self,
        schema: &mut Schema,
        value: ValId,
        path: &mut Vec<ExprId>,
    ) -> Option<Vec<DecisionBranch<F>>> {
        work::spend(self.walk);
        count_step();
        if !self.formula.possible(&self.answers) {
            return Some(Vec::new());
        }
        let Some(i) = self.formula.question(&self.answers) else {
            self.out += 1;
            let rest = self.formula.rest(schema, &self.answers);
            let branch = (rest != F::FALSE).then(|| (path.clone(), value, rest));
            return (self.out <= DECIDED).then(|| branch.into_iter().collect());
        };
        let sub = self.asked[i];
        let asked = schema.compile_or_refuse(sub);
        if schema.plainly_apart(value, asked) || self.is_excluded(schema, asked) {
            // "no", which narrows nothing
            self.answers[i] = Some(false);
            let found = self.branches(schema, value, path);
            self.answers[i] = None;
            return found;
        }
        let not = schema.not_sub(sub);
        let mut found = Vec::new();
        for (answer, part) in [(true, sub), (false, not)] {
            self.answers[i] = Some(answer);
            if self.formula.possible(&self.answers) {
                let part = schema.compile_or_refuse(part);
                let narrowed = schema.and_values(value, part);
                if schema.is_live(narrowed) {
                    path.push(if answer { sub } else { schema.not_sub(sub) });
                    found.push(self.branches(schema, narrowed, path));
                    path.pop();
                } else {
                    found.push(Some(Vec::new()));
                }
            } else {
                found.push(Some(Vec::new()));
            }
        }
        self.answers[i] = None;
        let mut no = found.pop()??;
        let mut yes = found.pop()??;
        if let ([a], [b]) = (&yes[..], &no[..]) {
            // the answer makes no difference
            if a.2 == b.2 && a.0.len() == path.len() + 1 && b.0.len() == path.len() + 1 {
                return Some(vec![(path.clone(), value, a.2)]);
            }
        }
        yes.append(&mut no);
        Some(yes)
    }

    /// Whether some expression that holds excludes this one by itself: a pair is asked about once, where each of the
    /// conjunctions that contain it would be a search of its own.  Inside another question a "no" may rest on what that
    /// question assumes, and would let values through here.
    fn is_excluded(&self, schema: &mut Schema, asked: ValId) -> bool {
        if schema.is_asking() {
            return false;
        }
        let holding = self.asked.iter().zip(&self.answers).filter(|(_, &answer)| answer == Some(true));
        holding.into_iter().any(|(&sub, _)| {
            let value = schema.compile_or_refuse(sub);
            let both = schema.and_values(value, asked);
            !schema.is_live(both)
        })
    }
}
