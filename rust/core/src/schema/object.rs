//! Formulas over objects, and their derivative by a key.
//!
//! The keywords of one schema that speak of its properties are one atom, a [`Shape`]: a key selects what its
//! value must satisfy.  An atom per property was rejected: 2,000 properties would be rebuilt at each key.
//! Reading a key turns a formula into branches "the value satisfies S, the rest of the object R".

use super::decide::Leaf;
use super::document::JId;
use super::value::{dedup, SubId};
use super::{ArrId, NameId, Schema};
use crate::lexical::TermId;

/// The number of a formula over objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjId(pub u32);

impl ObjId {
    pub const TRUE: ObjId = ObjId(0);
    pub const FALSE: ObjId = ObjId(1);
}

/// The number of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeId(pub u32);

/// What each key's value must satisfy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Named keys, in the order of the text.
    pub props: Box<[(NameId, SubId)]>,
    /// The same, sorted by name's number.
    pub sorted: Box<[(NameId, SubId)]>,
    pub patterns: Box<[(TermId, SubId)]>,
    /// For keys that are neither named nor match a pattern.
    pub rest: SubId,
    /// How many of the named keys, from the first on, count for the declared order.
    pub declared: u32,
    /// The schema that says so.
    pub node: JId,
}

/// A positive formula; operands of `And` and `Or` stand in the order of the schema's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Obj {
    True,
    False,
    /// Every property satisfies what the shape says of its key.
    Shape(ShapeId),
    /// Some property does not.
    NotShape(ShapeId),
    /// These keys are there; sorted.
    Required(Box<[NameId]>),
    /// This key is not there.
    Absent(NameId),
    /// The number of properties lies in `lo..=hi`.
    Count(u32, u32),
    And(Box<[ObjId]>),
    Or(Box<[ObjId]>),
}

/// What the form of a formula over objects tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    /// The object may end here.
    pub ends: bool,
    /// It may need a key that the formula does not name: one more, or one of a pattern.
    pub wants: bool,
    /// It names keys for the declared order; some disjunction does.
    pub names: bool,
    pub branches: bool,
    /// Atoms and operations, those that are named twice counted twice.
    pub size: u32,
}

/// A key: a text, or all texts of a class that the formula can't tell apart.
pub enum Key<'a> {
    Name(NameId),
    /// Which of these patterns match; named by no shape.
    Cell(&'a [(TermId, bool)]),
}

impl Schema {
    pub(crate) fn obj(&mut self, obj: Obj) -> ObjId {
        if let Obj::And(list) | Obj::Or(list) = &obj {
            crate::work::spend(8 + 2 * list.len() as u64);
        }
        let facts = self.object_facts(&obj);
        let (i, new) = self.objs.insert_full(obj);
        if new {
            self.obj_facts.push(facts);
        }
        ObjId(i as u32)
    }

    /// What the form of a formula tells, from what is known of its operands: walks of a formula would visit a part
    /// as often as it is named, which doubles with each level of a tower of `oneOf`.
    fn object_facts(&self, obj: &Obj) -> Facts {
        let of = |o: &ObjId| self.obj_facts[o.0 as usize];
        let sum = |list: &[ObjId]| list.iter().fold(1u32, |n, o| n.saturating_add(of(o).size));
        match obj {
            Obj::True | Obj::Absent(_) => Facts { ends: true, ..Facts::default() },
            Obj::Shape(s) => Facts { ends: true, names: self.shape(*s).declared > 0, ..Facts::default() },
            Obj::False | Obj::Required(_) => Facts::default(),
            Obj::NotShape(_) => Facts { wants: true, ..Facts::default() },
            Obj::Count(lo, _) => Facts { ends: *lo == 0, wants: *lo > 0, ..Facts::default() },
            Obj::And(list) => Facts {
                ends: list.iter().all(|o| of(o).ends),
                wants: list.iter().any(|o| of(o).wants),
                names: list.iter().any(|o| of(o).names),
                branches: list.iter().any(|o| of(o).branches),
                size: sum(list),
            },
            Obj::Or(list) => {
                let names = list.iter().any(|o| of(o).names);
                Facts {
                    ends: list.iter().any(|o| of(o).ends),
                    wants: list.iter().any(|o| of(o).wants),
                    names,
                    branches: names,
                    size: sum(list),
                }
            }
        }
    }

    pub(crate) fn obj_facts(&self, o: ObjId) -> Facts {
        self.obj_facts[o.0 as usize]
    }

    pub(crate) fn object(&self, id: ObjId) -> &Obj {
        &self.objs[id.0 as usize]
    }

    pub(crate) fn shape(&self, id: ShapeId) -> &Shape {
        &self.shapes[id.0 as usize]
    }

    pub(crate) fn shape_atom(
        &mut self,
        props: Vec<(NameId, SubId)>,
        patterns: Vec<(TermId, SubId)>,
        rest: SubId,
        declared: Option<usize>,
        node: JId,
    ) -> ObjId {
        let declared = declared.unwrap_or(0) as u32;
        let trivial = rest == SubId::TRUE
            && props.iter().all(|p| p.1 == SubId::TRUE)
            && patterns.iter().all(|p| p.1 == SubId::TRUE);
        if trivial && declared == 0 {
            return ObjId::TRUE;
        }
        let mut sorted = props.clone();
        sorted.sort();
        let shape = Shape {
            props: props.into(),
            sorted: sorted.into(),
            patterns: patterns.into(),
            rest,
            declared,
            node,
        };
        let id = ShapeId(self.shapes.insert_full(shape).0 as u32);
        self.obj(Obj::Shape(id))
    }

    pub(crate) fn required(&mut self, mut names: Vec<NameId>) -> ObjId {
        names.sort();
        names.dedup();
        if names.is_empty() {
            return ObjId::TRUE;
        }
        self.obj(Obj::Required(names.into()))
    }

    pub(crate) fn count(&mut self, lo: u32, hi: u32) -> ObjId {
        match (lo, hi) {
            (0, u32::MAX) => ObjId::TRUE,
            _ if lo > hi => ObjId::FALSE,
            _ => self.obj(Obj::Count(lo, hi)),
        }
    }

    pub(crate) fn and_objects(&mut self, list: &[ObjId]) -> ObjId {
        let mut flat: Vec<ObjId> = Vec::new();
        for &o in list {
            match self.object(o) {
                Obj::True => {}
                Obj::False => return ObjId::FALSE,
                Obj::And(inner) => flat.extend(inner.iter()),
                _ => flat.push(o),
            }
        }
        dedup(&mut flat);
        if flat.len() > 1 {
            if let Some(clash) = self.merge_conjuncts(&mut flat) {
                return clash;
            }
        }
        match flat.len() {
            0 => ObjId::TRUE,
            1 => flat[0],
            _ => self.obj(Obj::And(flat.into())),
        }
    }

    /// One `Required`, one `Count`; `False` where a key is required and absent.
    fn merge_conjuncts(&mut self, flat: &mut Vec<ObjId>) -> Option<ObjId> {
        let mut required: Vec<NameId> = Vec::new();
        let mut absent: Vec<NameId> = Vec::new();
        let (mut lo, mut hi, mut counts, mut requireds) = (0, u32::MAX, 0, 0);
        for &o in flat.iter() {
            match self.object(o) {
                Obj::Required(names) => {
                    required.extend(names.iter());
                    requireds += 1;
                }
                Obj::Absent(name) => absent.push(*name),
                Obj::Count(a, b) => {
                    lo = lo.max(*a);
                    hi = hi.min(*b);
                    counts += 1;
                }
                _ => {}
            }
        }
        crate::work::spend((absent.len() * required.len() / 8) as u64);
        if absent.iter().any(|n| required.contains(n)) || lo > hi {
            return Some(ObjId::FALSE);
        }
        if requireds > 1 || counts > 1 {
            flat.retain(|&o| match self.objs[o.0 as usize] {
                Obj::Required(_) => requireds < 2,
                Obj::Count(..) => counts < 2,
                _ => true,
            });
            if requireds > 1 {
                let merged = self.required(required);
                flat.push(merged);
            }
            if counts > 1 {
                let merged = self.count(lo, hi);
                flat.push(merged);
            }
        }
        None
    }

    pub(crate) fn or_objects(&mut self, list: &[ObjId]) -> ObjId {
        let mut flat: Vec<ObjId> = Vec::new();
        for &o in list {
            match self.object(o) {
                Obj::False => {}
                Obj::True => return ObjId::TRUE,
                Obj::Or(inner) => flat.extend(inner.iter()),
                _ => flat.push(o),
            }
        }
        dedup(&mut flat);
        if (2..=256).contains(&flat.len()) {
            self.absorb(&mut flat);
        }
        match flat.len() {
            0 => ObjId::FALSE,
            1 => flat[0],
            _ => self.obj(Obj::Or(flat.into())),
        }
    }

    /// `X | (X & Y)` is `X`.
    fn absorb(&self, flat: &mut Vec<ObjId>) {
        let parts = |o: ObjId| -> Vec<ObjId> {
            let mut parts = match self.object(o) {
                Obj::And(inner) => inner.to_vec(),
                _ => vec![o],
            };
            parts.sort_unstable();
            parts
        };
        let all: Vec<Vec<ObjId>> = flat.iter().map(|&o| parts(o)).collect();
        let mut looked = 0;
        let mut weaker = |i: usize, j: usize| {
            let mut held = |p: &ObjId| {
                looked += 1;
                all[i].binary_search(p).is_ok()
            };
            // j asks for no more than i does
            all[j].len() <= all[i].len()
                && all[j].iter().all(&mut held)
                && (all[j].len() < all[i].len() || j < i)
        };
        let keep: Vec<bool> =
            (0..all.len()).map(|i| !(0..all.len()).any(|j| j != i && weaker(i, j))).collect();
        crate::work::spend((all.len() * all.len() / 8) as u64 + looked);
        let mut at = 0;
        flat.retain(|_| {
            at += 1;
            keep[at - 1]
        });
    }

    /// What the formula denies. A part that a formula holds twice is denied once.
    pub(crate) fn not_object(&mut self, o: ObjId) -> ObjId {
        if let Some(&known) = self.not_objs.get(&o) {
            return known;
        }
        let not = stacker::maybe_grow(64 << 10, 1 << 20, || self.find_not_object(o));
        self.not_objs.insert(o, not);
        if not != ObjId::TRUE && not != ObjId::FALSE {
            self.not_objs.entry(not).or_insert(o);
        }
        not
    }

    fn find_not_object(&mut self, o: ObjId) -> ObjId {
        match self.object(o).clone() {
            Obj::True => ObjId::FALSE,
            Obj::False => ObjId::TRUE,
            Obj::Shape(s) => self.obj(Obj::NotShape(s)),
            Obj::NotShape(s) => self.obj(Obj::Shape(s)),
            Obj::Required(names) => {
                let absent: Vec<ObjId> = names.iter().map(|&n| self.obj(Obj::Absent(n))).collect();
                self.or_objects(&absent)
            }
            Obj::Absent(n) => self.required(vec![n]),
            Obj::Count(lo, hi) => {
                let below = if lo > 0 { self.count(0, lo - 1) } else { ObjId::FALSE };
                let above = if hi < u32::MAX { self.count(hi + 1, u32::MAX) } else { ObjId::FALSE };
                self.or_objects(&[below, above])
            }
            Obj::And(list) => {
                let list: Vec<ObjId> = list.iter().map(|&x| self.not_object(x)).collect();
                self.or_objects(&list)
            }
            Obj::Or(list) => {
                let list: Vec<ObjId> = list.iter().map(|&x| self.not_object(x)).collect();
                self.and_objects(&list)
            }
        }
    }

    /// What the shape asks of the value of a key.
    pub(crate) fn shape_key(&mut self, s: ShapeId, key: &Key) -> SubId {
        let shape = &self.shapes[s.0 as usize];
        let named = match key {
            Key::Name(name) => {
                shape.sorted.binary_search_by_key(name, |p| p.0).ok().map(|i| shape.sorted[i].1)
            }
            Key::Cell(_) => None,
        };
        if shape.patterns.is_empty() {
            return named.unwrap_or(shape.rest);
        }
        let (patterns, rest) = (shape.patterns.clone(), shape.rest);
        let mut parts: Vec<SubId> = named.into_iter().collect();
        let mut declared = named.is_some();
        for (pattern, sub) in patterns.iter() {
            let matches = match key {
                Key::Name(name) => self.key_matches(*pattern, *name),
                Key::Cell(cell) => cell.iter().any(|c| c.0 == *pattern && c.1),
            };
            if matches {
                declared = true;
                parts.push(*sub);
            }
        }
        if !declared {
            return rest;
        }
        self.and_subs(&parts)
    }

    /// Branches (value, rest) of a formula when a property with this key is read.
    pub(crate) fn read_key(&mut self, o: ObjId, key: &Key) -> Vec<(SubId, ObjId)> {
        self.decide(o, Some(key)).unwrap_or_else(|| self.multiply(o, key, &mut Known::default()))
    }

    /// What an atom says of the value of this key.
    pub(super) fn object_leaf(&mut self, o: ObjId, key: &Key) -> Leaf<ObjId> {
        crate::work::spend(10);
        match self.object(o).clone() {
            Obj::Shape(s) => Leaf::asks(self.shape_key(s, key), o),
            Obj::NotShape(s) => {
                let sub = self.shape_key(s, key);
                let held = match key {
                    Key::Name(name) => self.violated_later(s, *name),
                    Key::Cell(_) => o,
                };
                Leaf { sub, held, failed: ObjId::TRUE, always: Some(held) }
            }
            Obj::Required(names) => match key {
                Key::Name(name) if names.binary_search(name).is_ok() => {
                    Leaf::sure(self.required(names.iter().copied().filter(|n| n != name).collect()))
                }
                _ => Leaf::sure(o),
            },
            Obj::Absent(name) => match key {
                Key::Name(n) if *n == name => Leaf::sure(ObjId::FALSE),
                _ => Leaf::sure(o),
            },
            Obj::Count(_, 0) => Leaf::sure(ObjId::FALSE),
            Obj::Count(lo, hi) => {
                let hi = if hi == u32::MAX { hi } else { hi - 1 };
                Leaf::sure(self.count(lo.saturating_sub(1), hi))
            }
            Obj::True | Obj::False | Obj::And(_) | Obj::Or(_) => Leaf::sure(o),
        }
    }

    /// The branches, with disjunctions multiplied out.
    fn multiply(&mut self, o: ObjId, key: &Key, known: &mut Known) -> Vec<(SubId, ObjId)> {
        if let Some(found) = known.get(&o) {
            return found.clone();
        }
        match self.object(o).clone() {
            Obj::And(list) => self.multiply_conjunction(&list, key, known),
            Obj::Or(list) => {
                let mut out = Vec::new();
                for &part in list.iter() {
                    out.extend(self.multiply_part(part, key, known));
                }
                self.merge_branches(out)
            }
            _ => {
                let mut leaf = self.object_leaf(o, key);
                // branches that exclude each other where that is cheap to say: a discriminator then leaves one
                // branch for each of its values instead of one for each set of them
                if leaf.always.is_some() && self.is_flat(leaf.sub) {
                    leaf.always = None;
                }
                self.leaf_branches(leaf)
            }
        }
    }

    /// The branches of a part, which the formula may hold more than once.
    fn multiply_part(&mut self, o: ObjId, key: &Key, known: &mut Known) -> Vec<(SubId, ObjId)> {
        let found = stacker::maybe_grow(64 << 10, 1 << 20, || self.multiply(o, key, known));
        if matches!(self.object(o), Obj::And(_) | Obj::Or(_)) {
            known.insert(o, found.clone());
        }
        found
    }

    /// Whether an expression says nothing of what is inside arrays and objects.
    fn is_flat(&mut self, sub: SubId) -> bool {
        let v = self.compile_or_none(sub);
        let value = self.value(v);
        let (arr, obj) = (value.arr, value.obj);
        (arr == ArrId::TRUE || arr == ArrId::FALSE) && (obj == ObjId::TRUE || obj == ObjId::FALSE)
    }

    /// "Some property does not" once a named key was read: it can't come again, so it violates nothing more.
    fn violated_later(&mut self, s: ShapeId, name: NameId) -> ObjId {
        let shape = self.shape(s);
        let found = shape.sorted.binary_search_by_key(&name, |p| p.0).is_ok();
        if !found || shape.props.len() > FEW_PROPS {
            return self.obj(Obj::NotShape(s));
        }
        let shape = shape.clone();
        let left = |list: &[(NameId, SubId)]| -> Vec<(NameId, SubId)> {
            list.iter().map(|&(n, sub)| (n, if n == name { SubId::TRUE } else { sub })).collect()
        };
        let props = left(&shape.props);
        // the key stays named, so that it does not fall to `rest`
        let rest = self.shape_atom(props, shape.patterns.to_vec(), shape.rest, None, shape.node);
        self.not_object(rest)
    }

    fn multiply_conjunction(&mut self, list: &[ObjId], key: &Key, known: &mut Known) -> Vec<(SubId, ObjId)> {
        if self.late() {
            return Vec::new();
        }
        // parts with one branch are joined first; only the others multiply
        let mut subs = Vec::new();
        let mut rests = Vec::new();
        let mut several: Vec<Vec<(SubId, ObjId)>> = Vec::new();
        for &part in list {
            let branches = self.multiply_part(part, key, known);
            match branches.len() {
                0 => return Vec::new(),
                1 => {
                    subs.push(branches[0].0);
                    rests.push(branches[0].1);
                }
                _ => several.push(branches),
            }
        }
        let mut out = vec![(self.and_subs(&subs), self.and_objects(&rests))];
        for branches in several {
            if out.len() * branches.len() > MAX_BRANCHES {
                self.too_many_branches();
                return Vec::new();
            }
            let mut next = Vec::with_capacity(out.len() * branches.len());
            for &(s, r) in &out {
                for &(t, q) in &branches {
                    if self.late() {
                        return Vec::new();
                    }
                    let both = (self.and_subs(&[s, t]), self.and_objects(&[r, q]));
                    if both.0 != SubId::FALSE && both.1 != ObjId::FALSE {
                        next.push(both);
                    }
                }
            }
            out = self.merge_branches(next);
            if out.len() > PRUNE_FROM {
                out = self.condense(out);
            }
        }
        out
    }

    /// Branches whose values or rests nothing can be are dropped, and those with equal values joined: "is a, and
    /// not b" equals "is a" once it is looked into, so discriminated branches collapse before they multiply.
    fn condense(&mut self, list: Vec<(SubId, ObjId)>) -> Vec<(SubId, ObjId)> {
        let mut by_value: indexmap::IndexMap<super::ValId, (SubId, Vec<ObjId>)> = Default::default();
        for (sub, rest) in list {
            let v = self.compile_or_none(sub);
            if self.is_live(v) && self.rest_is_live(rest) {
                by_value.entry(v).or_insert((sub, Vec::new())).1.push(rest);
            }
        }
        by_value.into_values().map(|(sub, rests)| (sub, self.or_objects(&rests))).collect()
    }

    /// Whether an object of its own could satisfy the formula; memoised.
    fn rest_is_live(&mut self, o: ObjId) -> bool {
        if let Some(&known) = self.rests.get(&o) {
            return known;
        }
        let answer = self.object_is_live(o, &super::live::Keys::all());
        // a "no" inside another question may rest on what that question assumes
        if self.error.is_none() && (answer || self.asking.is_empty()) {
            self.rests.insert(o, answer);
        }
        answer
    }

    pub(crate) fn too_many_branches(&mut self) {
        self.error.get_or_insert_with(|| {
            crate::Error::limit(format!(
                "one property or item has more than {MAX_BRANCHES} ways to satisfy the schema; simplify its anyOf/oneOf"
            ))
        });
    }

    /// Branches with the same rest are one; so are those with the same value.
    fn merge_branches(&mut self, list: Vec<(SubId, ObjId)>) -> Vec<(SubId, ObjId)> {
        if list.len() < 2 {
            return list;
        }
        let mut by_rest: indexmap::IndexMap<ObjId, Vec<SubId>> = Default::default();
        for (s, r) in list {
            by_rest.entry(r).or_default().push(s);
        }
        let mut by_sub: indexmap::IndexMap<SubId, Vec<ObjId>> = Default::default();
        for (r, subs) in by_rest {
            let s = self.or_subs(&subs);
            by_sub.entry(s).or_default().push(r);
        }
        by_sub.into_iter().map(|(s, rests)| (s, self.or_objects(&rests))).collect()
    }

    /// Whether the object may end here.
    pub(crate) fn may_end_object(&self, o: ObjId) -> bool {
        self.obj_facts(o).ends
    }
}

/// The branches of parts of one formula.
type Known = rustc_hash::FxHashMap<ObjId, Vec<(SubId, ObjId)>>;

/// Branches from which on those that no value can take are sought before more are multiplied in.
pub const PRUNE_FROM: usize = 24;

/// Named keys up to which a violated shape is written anew when one of them was read.
const FEW_PROPS: usize = 32;

/// Ways that one value may combine with the rest of its object or array.
pub const MAX_BRANCHES: usize = 4096;
