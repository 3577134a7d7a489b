//! Satisfiability of formulas over objects: which keys, with which values, make one true.
//!
//! A conjunction asks for required keys (each with a value that all shapes allow), for a violation of each
//! negated shape (some key, an old or a new one, whose value it does not allow), and for a count.  Keys that no
//! shape names fall into cells: the combinations of patterns that match them.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Witness;
use crate::lexical::{Spelling, TermId, Terms};
use crate::schema::by_key::Key;
use crate::schema::distinct::Distinct;
use crate::schema::formula::Formula;
use crate::schema::key_sets::{KeySet, KeySets};
use crate::schema::object::{Obj, ObjId, ShapeId};
use crate::schema::value::ExprId;
use crate::schema::{count_step, NameId, Schema, Simple};

/// Which keys may still be used.
pub struct Keys<'a> {
    pub used: KeySet,
    /// Rank of the declared keys, and the least rank that may follow.
    pub order: Option<(&'a rustc_hash::FxHashMap<NameId, u32>, u32)>,
    /// The key that comes next, whatever its rank.
    pub next: Option<NameId>,
}

impl Keys<'_> {
    pub fn all() -> Keys<'static> {
        Keys { used: KeySet::EMPTY, order: None, next: None }
    }

    pub fn allow(&self, sets: &KeySets, name: NameId) -> bool {
        self.next == Some(name)
            || !sets.contains(self.used, name) && self.rank(name).is_none_or(|(rank, from)| rank >= from)
    }

    fn rank(&self, name: NameId) -> Option<(u32, u32)> {
        let (ranks, from) = self.order?;
        ranks.get(&name).map(|&rank| (rank, from))
    }
}

/// The atoms of one conjunction.
#[derive(Clone, Default)]
pub(super) struct Conjunction {
    pub(super) shapes: Vec<ShapeId>,
    pub(super) violated: Vec<ShapeId>,
    required: FxHashSet<NameId>,
    pub(super) absent: FxHashSet<NameId>,
    pub(super) apart: Vec<Distinct>,
    pub(super) lo: u32,
    pub(super) hi: u32,
    atoms: FxHashSet<ObjId>,
}

impl Conjunction {
    fn add(&mut self, id: ObjId, atom: &Obj) {
        self.atoms.insert(id);
        match atom {
            Obj::Shape(s) => self.shapes.push(*s),
            Obj::NotShape(s) => self.violated.push(*s),
            Obj::Required(names) => self.required.extend(names.iter()),
            Obj::Absent(name) => {
                self.absent.insert(*name);
            }
            Obj::Count(lo, hi) => {
                self.lo = self.lo.max(*lo);
                self.hi = self.hi.min(*hi);
            }
            Obj::Distinct(apart) => self.apart.push(*apart),
            Obj::True | Obj::False | Obj::And(_) | Obj::Or(_) => {}
        }
    }
}

/// A class of keys that no shape names: which patterns match, and the language.
pub type Cell = (Vec<(TermId, bool)>, TermId);

/// Operands of a conjunction that are compared with what was chosen before it is chosen itself.
const LOOKED_AT: usize = 64;
/// Choices from which on the first operands are tried together.
const CHOICES: usize = 8;

/// Keys beyond which an object that must have them is not written out.
const MANY_KEYS: u32 = 2_000;

/// Patterns that one formula may have.
const MAX_PATTERNS: usize = 64;
/// Classes of keys that those patterns may form.
const MAX_CELLS: usize = 4096;

impl Schema {
    /// Whether the object can be completed.
    pub(crate) fn object_is_live(&mut self, o: ObjId, keys: &Keys) -> bool {
        match self.object(o) {
            Obj::True => true,
            Obj::False => false,
            _ if self.may_end(o) => true,
            _ => match self.simple_parts(o) {
                Some(simple) if simple.least == 0 => self.simple_is_live(&simple, keys),
                _ => self.solve(o, keys).is_some(),
            },
        }
    }

    /// Where keys don't depend on each other and none is counted, the required ones are all that it takes.
    fn simple_is_live(&mut self, simple: &Simple, keys: &Keys) -> bool {
        simple.required.len() <= simple.most as usize
            && simple.required.iter().all(|&name| {
                crate::work::spend(1);
                let sub = self.value_at(&simple.shapes, &Key::Name(name));
                keys.allow(&self.key_sets, name)
                    && simple.absent.binary_search(&name).is_err()
                    && self.sub_is_live(sub)
            })
    }

    /// An object of the properties that are still needed.
    pub(crate) fn object_witness(&mut self, o: ObjId, keys: &Keys) -> Option<Witness> {
        let ends = self.may_end(o);
        let mut chosen = if ends { Vec::new() } else { self.solve(o, keys)? };
        if let Some((ranks, _)) = keys.order {
            chosen.sort_by_key(|c| ranks.get(&c.0).copied().unwrap_or(u32::MAX));
        }
        if o.facts(self).least > MANY_KEYS {
            return None;
        }
        let members = chosen.into_iter().map(|(name, value)| (name, self.compile_or_refuse(value))).collect();
        self.object_of(members)
    }

    /// Whether an object may need a key that the formula does not name: one more, or one of a pattern.
    pub(crate) fn wants_some_key(&self, o: ObjId) -> bool {
        o.facts(self).wants_key
    }

    fn solve(&mut self, o: ObjId, keys: &Keys) -> Option<Vec<(NameId, ExprId)>> {
        let start = Conjunction { hi: u32::MAX, ..Conjunction::default() };
        self.expand(vec![o], start, keys)
    }

    /// Takes the formula apart, one choice at each `Or`: those with the fewest operands that are possible come
    /// first, and a choice that is forced is no choice (Davis, Logemann & Loveland, CACM 1962).
    fn expand(
        &mut self,
        mut parts: Vec<ObjId>,
        mut conj: Conjunction,
        keys: &Keys,
    ) -> Option<Vec<(NameId, ExprId)>> {
        count_step();
        let mut choices: Vec<Box<[ObjId]>> = Vec::new();
        loop {
            while let Some(part) = parts.pop() {
                match self.object(part) {
                    Obj::False => return None,
                    Obj::And(list) => {
                        parts.extend(list.iter().rev());
                        conj.atoms.reserve(list.len());
                    }
                    Obj::Or(list) => choices.push(list.clone()),
                    _ => conj.add(part, self.object(part)),
                }
            }
            if !choices.is_empty() && !self.plausible(&conj, keys) {
                return None;
            }
            let mut open: Vec<Box<[ObjId]>> = Vec::with_capacity(choices.len());
            let mut forced = false;
            for list in choices.drain(..) {
                let cost = |&o: &ObjId| match self.object(o) {
                    Obj::And(list) => list.len().min(LOOKED_AT),
                    _ => 1,
                };
                let cost: usize = list.iter().map(cost).sum();
                let looked = (conj.shapes.len() + conj.violated.len()) / 8;
                crate::work::spend(2 + (cost * (2 + looked)) as u64);
                if list.iter().any(|o| conj.atoms.contains(o)) {
                    continue;
                }
                let left: Vec<ObjId> = list.iter().copied().filter(|&o| !self.clashes(o, &conj)).collect();
                match left[..] {
                    [] => return None,
                    // an atom counts for the rest of this round, and the next goes the other way: a chain of
                    // dependencies is one round or two
                    [only] if !matches!(self.object(only), Obj::And(_) | Obj::Or(_)) => {
                        conj.add(only, self.object(only));
                        forced = true;
                    }
                    [only] => parts.push(only),
                    _ => open.push(left.into()),
                }
            }
            open.reverse();
            choices = open;
            if parts.is_empty() && !forced {
                break;
            }
        }
        let least = (0..choices.len()).min_by_key(|&i| choices[i].len());
        let Some(least) = least else { return self.solve_conjunction(conj, keys) };
        if let Some(found) = self.first_choices(&choices, &conj, keys) {
            return Some(found);
        }
        let first = choices.remove(least);
        for &choice in first.iter() {
            let mut rest: Vec<ObjId> = choices.iter().map(|c| self.obj(Obj::Or(c.clone()))).collect();
            rest.push(choice);
            if let Some(found) = self.expand(rest, conj.clone(), keys) {
                return Some(found);
            }
        }
        None
    }

    /// The object of the first operand of each choice that is an atom and may hold: where most keys need not be
    /// there, that they are not there is a solution, and no search.
    fn first_choices(
        &mut self,
        choices: &[Box<[ObjId]>],
        conj: &Conjunction,
        keys: &Keys,
    ) -> Option<Vec<(NameId, ExprId)>> {
        if choices.len() < CHOICES {
            return None;
        }
        let mut conj = conj.clone();
        for list in choices {
            if list.iter().any(|o| conj.atoms.contains(o)) {
                continue;
            }
            let may =
                |&&o: &&ObjId| !matches!(self.object(o), Obj::And(_) | Obj::Or(_)) && !self.clashes(o, &conj);
            let first = *list.iter().find(may)?;
            conj.add(first, self.object(first));
        }
        self.solve_conjunction(conj, keys)
    }

    /// Whether an operand plainly contradicts what was chosen.
    fn clashes(&self, o: ObjId, conj: &Conjunction) -> bool {
        match self.object(o) {
            Obj::False => true,
            Obj::Shape(s) => conj.violated.contains(s),
            Obj::NotShape(s) => conj.shapes.contains(s),
            Obj::Absent(name) => conj.required.contains(name),
            Obj::Required(names) => names.iter().any(|n| conj.absent.contains(n)),
            Obj::Count(lo, hi) => conj.lo.max(*lo) > conj.hi.min(*hi),
            // the search charges for its choices; what a long conjunction says beyond this is found when it is chosen
            Obj::And(list) => list.iter().take(LOOKED_AT).any(|&part| self.clashes(part, conj)),
            Obj::True | Obj::Or(_) | Obj::Distinct(_) => false,
        }
    }

    /// Whether every required key may come, with a value.
    fn plausible(&mut self, conj: &Conjunction, keys: &Keys) -> bool {
        conj.lo <= conj.hi
            && !conj.shapes.iter().any(|s| conj.violated.contains(s))
            && conj.required.iter().all(|&name| {
                keys.allow(&self.key_sets, name) && !conj.absent.contains(&name) && {
                    let sub = self.value_at(&conj.shapes, &Key::Name(name));
                    self.sub_is_live(sub)
                }
            })
    }

    pub(super) fn value_at(&mut self, shapes: &[ShapeId], key: &Key) -> ExprId {
        let subs: Vec<ExprId> = shapes.iter().map(|&s| self.shape_key(s, key)).collect();
        self.and(&subs)
    }

    fn solve_conjunction(&mut self, conj: Conjunction, keys: &Keys) -> Option<Vec<(NameId, ExprId)>> {
        let mut required: Vec<NameId> = conj.required.iter().copied().collect();
        required.sort_unstable();
        if conj.required.len() > conj.hi as usize || conj.lo > conj.hi {
            return None;
        }
        let mut chosen = Vec::with_capacity(conj.required.len());
        for &name in &required {
            crate::work::spend(1);
            if !keys.allow(&self.key_sets, name) || conj.absent.contains(&name) {
                return None;
            }
            let sub = self.value_at(&conj.shapes, &Key::Name(name));
            if !self.sub_is_live(sub) {
                return None;
            }
            chosen.push((name, sub));
        }
        self.violate(&conj, chosen, keys)
    }

    /// Adds keys until the count is reached.
    pub(super) fn fill(
        &mut self,
        conj: &Conjunction,
        mut chosen: Vec<(NameId, ExprId)>,
        keys: &Keys,
    ) -> Option<Vec<(NameId, ExprId)>> {
        if chosen.len() >= conj.lo as usize {
            return Some(chosen);
        }
        for name in self.named(conj) {
            if chosen.len() >= conj.lo as usize {
                return Some(chosen);
            }
            crate::work::spend(2 + chosen.len() as u64 / 32);
            let known = chosen.iter().any(|c| c.0 == name);
            if known || !keys.allow(&self.key_sets, name) || conj.absent.contains(&name) {
                continue;
            }
            let sub = self.value_at(&conj.shapes, &Key::Name(name));
            if self.sub_is_live(sub) {
                chosen.push((name, sub));
            }
        }
        for (cell, term) in self.cells(conj).iter().map(|c| (&c.0, c.1)) {
            let sub = self.value_at(&conj.shapes, &Key::Cell(cell));
            if !self.sub_is_live(sub) {
                continue;
            }
            if conj.lo > MANY_KEYS && self.lexicon.terms.words_up_to(term, 64).is_none() {
                return Some(chosen);
            }
            while chosen.len() < conj.lo as usize {
                count_step();
                let Some(name) = self.fresh(conj, term, &chosen, keys) else { break };
                chosen.push((name, sub));
            }
        }
        (chosen.len() >= conj.lo as usize).then_some(chosen)
    }

    /// The keys that the shapes name.
    pub(super) fn named(&self, conj: &Conjunction) -> Vec<NameId> {
        let shapes = conj.shapes.iter().chain(&conj.violated);
        let mut names: Vec<NameId> = shapes.flat_map(|&s| self.shape(s).props.iter().map(|p| p.0)).collect();
        crate::lists::dedup(&mut names);
        names
    }

    pub(super) fn cells(&mut self, conj: &Conjunction) -> Arc<[Cell]> {
        let shapes = conj.shapes.iter().chain(&conj.violated);
        let mut patterns: Vec<TermId> =
            shapes.flat_map(|&s| self.shape(s).patterns.iter().map(|p| p.0)).collect();
        crate::lists::sort_unique(&mut patterns);
        self.cells_of(&patterns)
    }

    /// Every combination of patterns that some key matches.
    pub(crate) fn cells_of(&mut self, patterns: &[TermId]) -> Arc<[Cell]> {
        memo!(self.patterns.cells, patterns, patterns.into(), { self.find_cells(patterns).into() })
    }

    fn find_cells(&mut self, patterns: &[TermId]) -> Vec<Cell> {
        if patterns.len() > MAX_PATTERNS {
            too_many_cells();
        }
        // without patterns the cell is never used up
        let any = if patterns.is_empty() { Terms::ALL } else { self.unmarked() };
        let mut cells: Vec<Cell> = vec![(Vec::new(), any)];
        for &pattern in patterns {
            let terms = &mut self.lexicon.terms;
            let not = terms.not(pattern);
            let mut next = Vec::with_capacity(cells.len() * 2);
            for (cell, term) in cells {
                for (choice, matches) in [(pattern, true), (not, false)] {
                    let both = terms.and(&[term, choice]);
                    let both = terms.prune(both);
                    if both != Terms::EMPTY {
                        let mut longer = cell.clone();
                        longer.push((pattern, matches));
                        next.push((longer, both));
                    }
                }
            }
            cells = next;
            if cells.len() > MAX_CELLS {
                too_many_cells();
            }
        }
        cells
    }

    /// A key of a cell that is neither named nor used.
    pub(super) fn fresh(
        &mut self,
        conj: &Conjunction,
        term: TermId,
        chosen: &[(NameId, ExprId)],
        keys: &Keys,
    ) -> Option<NameId> {
        let mut known = self.named(conj);
        known.extend(chosen.iter().map(|c| c.0));
        known.extend(&conj.absent);
        if let Some((ranks, _)) = keys.order {
            known.extend(ranks.keys());
        }
        // most often it is the first that comes to mind
        let first = self.shortest_key(term)?;
        if !known.contains(&first) && !self.key_sets.contains(keys.used, first) {
            return Some(first);
        }
        let words = known.iter().map(|&n| self.name_text(n).into()).collect();
        let used = self.used_term(keys.used);
        let terms = &mut self.lexicon.terms;
        let words = terms.words(words);
        let (not, unused) = (terms.not(words), terms.not(used));
        let left = terms.and(&[term, not, unused]);
        let text = self.shortest(Spelling::Raw, left)?;
        Some(self.name(&text))
    }

    fn shortest_key(&mut self, term: TermId) -> Option<NameId> {
        memo!(self.patterns.shortest, term, self.shortest(Spelling::Raw, term).map(|text| self.name(&text)))
    }
}

fn too_many_cells() -> ! {
    crate::work::refuse(crate::Error::limit(format!(
        "more than {MAX_PATTERNS} key patterns, or {MAX_CELLS} ways in which they overlap, meet in one object"
    )))
}

impl Schema {
    /// The first key of a short way to the end of an object, as JSON.
    pub(crate) fn first_key(&mut self, o: ObjId, keys: &Keys) -> Option<String> {
        if self.may_end(o) {
            return None;
        }
        let mut chosen = self.solve(o, keys)?;
        if let Some((ranks, _)) = keys.order {
            chosen.sort_by_key(|c| ranks.get(&c.0).copied().unwrap_or(u32::MAX));
        }
        let name = chosen.first()?.0;
        Some(serde_json::to_string(self.name_text(name)).expect("a string"))
    }
}
