//! An upper bound on what a value that was begun still needs, after any one token.
//!
//! Purpose: a budget that is far from every end need not try what each token leads to.
//! Invariant: from every position inside a value to which one token leads, the end that the machine finds
//! ([`super::witness`]) has no more bytes, but for whitespace. Where keys or items depend on each other there is no bound: a
//! key that is read may then ask for others.
//! Complexity: the values that one token can reach into, once each.

use rustc_hash::FxHashMap;

use super::array::PlainArray;
use super::Keys;
use crate::heap_size;
use crate::lexical::{Spelling, TermId, Terms};
use crate::lists::dedup;
use crate::schema::by_key::Key;
use crate::schema::object::{Obj, ShapeId};
use crate::schema::value::{ExprId, ValId};
use crate::schema::{ArrId, NameId, ObjId, Schema, Simple};
use crate::vocab::Openings;

/// Objects that a formula may be the union of, and items of which the rest of an array is counted one by one.
const UNIONS: usize = 16;
const ITEMS: u32 = 4096;
/// Bytes of the punctuation around a key or an item, and of what ends an escape that was begun.
const MARKS: usize = 8;
const BEGUN: usize = 12;
/// Bytes of a code point in a string at most.
const WIDEST: usize = 6;

/// Bytes that an open object or array needs at least, and those that what one token begins in it needs beside them.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenBound {
    pub rest: usize,
    pub begun: usize,
}

impl OpenBound {
    /// Whichever of the two it is.
    pub fn or(self, other: OpenBound) -> OpenBound {
        OpenBound { rest: self.rest.max(other.rest), begun: self.begun.max(other.begun) }
    }
}

/// What is known of values, objects and arrays; `None`: nothing is promised.
#[derive(Default)]
pub struct RemainingBounds {
    values: FxHashMap<(ValId, Openings), Option<usize>>,
    objects: FxHashMap<(ObjId, Openings), Option<OpenBound>>,
    arrays: FxHashMap<(ArrId, Openings), Option<OpenBound>>,
}

heap_size::tables!(RemainingBounds: values, objects, arrays);

impl Schema {
    /// Bytes that end a value after whatever one token reads of it, by the objects and arrays that the token may open
    /// inside each other.
    pub fn value_remains(&mut self, v: ValId, opens: Openings) -> Option<usize> {
        memo!(
            self.answers.remaining_bound.values,
            (v, opens),
            stacker::maybe_grow(256 << 10, 4 << 20, || self.find_value_remains(v, opens))
        )
    }

    fn find_value_remains(&mut self, v: ValId, opens: Openings) -> Option<usize> {
        let mut most = self.witness(v)?.length;
        let value = self.value(v).clone();
        most = most.max("false".len());
        if value.num {
            let set = self.numbers(&value);
            let term = self.lexicon.terms.numbers_in(set, self.options.numbers);
            most = most.max(self.lexeme_remains(Spelling::Raw, term)?);
        }
        if value.str != Terms::EMPTY {
            let spelling = self.string_spelling();
            most = most.max(self.lexeme_remains(spelling, value.str)?.saturating_add(1));
        }
        if let (Some(opens), true) = (opens.object(), value.obj != ObjId::FALSE) {
            let open = self.object_remains(value.obj, opens)?;
            most = most.max(open.rest.saturating_add(open.begun));
        }
        if let (Some(opens), true) = (opens.array(), value.arr != ArrId::FALSE) {
            let open = self.array_remains(value.arr, opens)?;
            most = most.max(open.rest.saturating_add(open.begun));
        }
        Some(most)
    }

    fn lexeme_remains(&mut self, spelling: Spelling, term: TermId) -> Option<usize> {
        let lex = self.lexicon.at(spelling, term);
        match self.lexicon.term(lex) {
            Some(_) => self.lexicon.remaining_bound(lex),
            None => Some(0),
        }
    }

    /// The same for an object of which the formula is left.
    pub fn object_remains(&mut self, o: ObjId, opens: Openings) -> Option<OpenBound> {
        memo!(self.answers.remaining_bound.objects, (o, opens), self.find_object_remains(o, opens))
    }

    fn find_object_remains(&mut self, o: ObjId, opens: Openings) -> Option<OpenBound> {
        let mut most = OpenBound::default();
        for part in self.conjunctions(o)? {
            if self.object_is_live(part, &Keys::all()) {
                let (simple, violated) = self.simple_and_violated(part)?;
                most = most.or(self.simple_remains(&simple, violated, opens)?);
            }
        }
        Some(most)
    }

    /// The atoms of a conjunction, and the shape that it must not have, where that is one.
    fn simple_and_violated(&mut self, part: ObjId) -> Option<(Simple, Option<ShapeId>)> {
        let Obj::And(list) = self.object(part).clone() else {
            return match *self.object(part) {
                Obj::NotShape(shape) => Some((self.simple_parts(ObjId::TRUE)?, Some(shape))),
                _ => Some((self.simple_parts(part)?, None)),
            };
        };
        let (mut violated, mut others) = (None, Vec::with_capacity(list.len()));
        for &atom in list.iter() {
            match *self.object(atom) {
                Obj::NotShape(_) if violated.is_some() => return None,
                Obj::NotShape(shape) => violated = Some(shape),
                _ => others.push(atom),
            }
        }
        let others = self.and(&others);
        Some((self.simple_parts(others)?, violated))
    }

    /// The conjunctions that a formula is the union of.
    fn conjunctions(&mut self, o: ObjId) -> Option<Vec<ObjId>> {
        let mut out = vec![ObjId::TRUE];
        let parts = self.conjuncts(o);
        for part in parts {
            let ways: Vec<ObjId> = match self.object(part).clone() {
                Obj::Or(list) => {
                    let mut ways = Vec::new();
                    for &way in list.iter() {
                        ways.extend(self.conjunctions(way)?);
                    }
                    ways
                }
                _ => vec![part],
            };
            if out.len() * ways.len() > UNIONS {
                return None;
            }
            out = out
                .iter()
                .flat_map(|&left| ways.iter().map(move |&way| (left, way)))
                .map(|(left, way)| self.and(&[left, way]))
                .collect();
        }
        Some(out)
    }

    /// Keys that do not depend on each other: whatever was read, those that are required are needed at most.
    fn simple_remains(
        &mut self,
        simple: &Simple,
        violated: Option<ShapeId>,
        opens: Openings,
    ) -> Option<OpenBound> {
        let mut open = OpenBound { rest: 2, begun: 0 };
        for &name in &simple.required {
            let value = self.value_at(&simple.shapes, &Key::Name(name));
            let value = self.compile_or_refuse(value);
            let length = self.witness(value)?.length.saturating_add(self.key_length(name));
            open.rest = open.rest.saturating_add(length).saturating_add(MARKS);
        }
        let mut names: Vec<NameId> = simple.required.clone();
        let mut patterns: Vec<TermId> = Vec::new();
        for &shape in simple.shapes.iter().chain(&violated) {
            names.extend(self.shape(shape).props.iter().map(|p| p.0));
            patterns.extend(self.shape(shape).patterns.iter().map(|p| p.0));
        }
        dedup(&mut names);
        crate::lists::sort_unique(&mut patterns);
        // the costliest member that may be chosen where there must be more, and that may violate a shape
        let mut member = (0, 0);
        for &name in &names {
            let key = self.key_length(name);
            self.any_member(simple, violated, (&Key::Name(name), key), opens, &mut open, &mut member)?;
        }
        for (cell, term) in self.cells_of(&patterns).iter() {
            let own = self.value_at(&simple.shapes, &Key::Cell(cell));
            if !self.sub_is_live(own) {
                continue;
            }
            // keys that are named or were used are no longer in the language
            let key = WIDEST.saturating_mul(self.lexicon.terms.remains_side_by_side(*term)? as usize);
            self.any_member(simple, violated, (&Key::Cell(cell), key), opens, &mut open, &mut member)?;
        }
        let more = (simple.least as usize).saturating_sub(simple.required.len());
        open.rest = open.rest.saturating_add(member.0.saturating_mul(more)).saturating_add(member.1);
        Some(open)
    }

    /// A member that may come, with the bytes of its key: by itself, and where the object must differ from a shape.
    fn any_member(
        &mut self,
        simple: &Simple,
        violated: Option<ShapeId>,
        (key, bytes): (&Key, usize),
        opens: Openings,
        open: &mut OpenBound,
        member: &mut (usize, usize),
    ) -> Option<()> {
        let own = self.value_at(&simple.shapes, key);
        let mut ways = vec![(own, false)];
        if let Some(shape) = violated {
            let sub = self.shape_key(shape, key);
            let not = self.not_sub(sub);
            ways.extend([(self.and(&[own, not]), true), (self.and(&[own, sub]), false)]);
        }
        for (sub, violates) in ways {
            if self.sub_is_live(sub) {
                let (whole, begun) = self.member_remains(bytes, sub, opens)?;
                open.begun = open.begun.max(begun);
                let most = if violates { &mut member.1 } else { &mut member.0 };
                *most = (*most).max(whole);
            }
        }
        Some(())
    }

    fn key_length(&self, name: NameId) -> usize {
        serde_json::to_string(self.name_text(name)).expect("a string").len()
    }

    /// A member whose key has so many bytes: from its beginning, and after what one token reads of it.
    fn member_remains(&mut self, key: usize, sub: ExprId, opens: Openings) -> Option<(usize, usize)> {
        let value = self.compile_or_refuse(sub);
        let around = key.saturating_add(MARKS + BEGUN);
        let (whole, begun) = (self.witness(value)?.length, self.value_remains(value, opens)?);
        Some((whole.saturating_add(around), begun.saturating_add(around)))
    }

    /// The same for an array of which the formula is left.
    pub fn array_remains(&mut self, a: ArrId, opens: Openings) -> Option<OpenBound> {
        memo!(self.answers.remaining_bound.arrays, (a, opens), self.find_array_remains(a, opens))
    }

    fn find_array_remains(&mut self, a: ArrId, opens: Openings) -> Option<OpenBound> {
        let PlainArray { lo: least, hi: most, layouts, unique } = self.plain_parts(a)?;
        if least > ITEMS || unique.is_some() {
            return None;
        }
        let mut open = OpenBound { rest: 2, begun: 0 };
        let longest =
            layouts.iter().map(|l| self.arenas.lists[l.0 .0 as usize].len()).max().unwrap_or(0) as u32;
        let mut last: Option<(ExprId, usize, usize)> = None;
        for i in 0..least.max(longest.saturating_add(1).min(most)) {
            let sub = self.layout_item(&layouts, i);
            if last.is_none_or(|(known, ..)| known != sub) {
                if !self.sub_is_live(sub) {
                    break;
                }
                let value = self.compile_or_refuse(sub);
                let (length, begun) = (self.witness(value)?.length, self.value_remains(value, opens)?);
                last = Some((sub, length, begun));
            }
            let (_, length, begun) = last?;
            if i < least {
                open.rest = open.rest.saturating_add(length).saturating_add(1);
            }
            open.begun = open.begun.max(begun.saturating_add(MARKS));
        }
        Some(open)
    }
}
