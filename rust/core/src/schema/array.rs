//! Formulas over arrays, and their derivative by an item: where `uniqueItems` is decided.
//!
//! Purpose: `items`, `contains`, the number of items and `uniqueItems` as atoms: of [`Arr::Unique`] an item that is
//! read to its end becomes one that later ones must differ from ([`Schema::remember`]); objects among them are
//! [`super::distinct`]'s, and whether enough different items are left is [`super::live`]'s to say.
//! Invariant: equal formulas have equal numbers; operands are sorted by theirs.
//! Complexity: an item costs the atoms.  Memory: each formula once (`arenas`).

use super::by_key::Key;
use super::decide::Leaf;
use super::document::JsonNodeId;
use super::formula::{expression, Formula, FormulaFacts, Formulas, Op};
use super::key_sets::KeySet;
use super::value::ExprId;
use super::Schema;

expression!(
    /// The number of a formula over arrays.
    ArrId, Arr in arrs.forms by arr, merged
);

fn merged(schema: &mut Schema, op: Op, list: &mut Vec<ArrId>) -> Option<ArrId> {
    match op {
        Op::And => schema.merge_lengths(list),
        Op::Or => {
            list.sort_unstable();
            schema.absorb(list);
            None
        }
    }
}

/// The number of an interned list of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemSchemasId(pub u32);

/// A positive formula about the items that are still to come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Arr {
    True,
    False,
    /// The next items satisfy the list from `from` on, later ones `rest`.
    Items {
        list: ItemSchemasId,
        from: u32,
        rest: ExprId,
    },
    /// Some item does not.
    NotItems {
        list: ItemSchemasId,
        from: u32,
        rest: ExprId,
    },
    /// The number of items lies in `lo..=hi`.
    Length(u32, u32),
    /// The number of items that satisfy `sub` lies in `lo..=hi`.
    Contains {
        sub: ExprId,
        lo: u32,
        hi: u32,
    },
    /// The items differ from each other and from those seen.
    Unique(KeySet),
    /// Two items are equal, or one equals one that was seen.
    NotUnique(KeySet),
    And(Box<[ArrId]>),
    Or(Box<[ArrId]>),
}

impl Formula for ArrId {
    type Form = Arr;

    fn formulas(schema: &mut Schema) -> &mut Formulas<Arr, Self> {
        &mut schema.arenas.arrs
    }

    fn facts(self, schema: &Schema) -> FormulaFacts {
        schema.arenas.arrs.facts[self.0 as usize]
    }

    fn facts_of_atom(self, schema: &Schema) -> FormulaFacts {
        let facts = |ends| FormulaFacts { ends, size: 1, ..FormulaFacts::default() };
        match *schema.array(self) {
            Arr::True | Arr::Items { .. } => facts(true),
            Arr::False | Arr::NotItems { .. } => facts(false),
            Arr::Length(lo, _) => FormulaFacts { least: lo, ..facts(lo == 0) },
            Arr::Contains { lo, .. } => facts(lo == 0),
            Arr::Unique(_) => FormulaFacts { remembers: true, ..facts(true) },
            Arr::NotUnique(_) => FormulaFacts { remembers: true, wants_duplicates: true, ..facts(false) },
            Arr::And(_) | Arr::Or(_) => unreachable!("an atom"),
        }
    }

    fn leaf(self, schema: &mut Schema, _: Option<&Key>) -> Leaf<Self> {
        schema.array_leaf(self)
    }

    fn not_atom(self, schema: &mut Schema) -> Self {
        match *schema.array(self) {
            Arr::True => ArrId::FALSE,
            Arr::False => ArrId::TRUE,
            Arr::Items { list, from, rest } => schema.not_items(list, from, rest),
            Arr::NotItems { list, from, rest } => schema.items(list, from, rest),
            Arr::Length(lo, hi) => schema.outside((lo, hi), Schema::length),
            Arr::Contains { sub, lo, hi } => {
                schema.outside((lo, hi), |schema, lo, hi| schema.contains(sub, lo, hi))
            }
            Arr::Unique(seen) => schema.arr(Arr::NotUnique(seen)),
            Arr::NotUnique(seen) => schema.arr(Arr::Unique(seen)),
            Arr::And(_) | Arr::Or(_) => unreachable!("an atom"),
        }
    }

    /// The search that would tell is worth more than the branches.
    fn may_be_live(self, _: &mut Schema) -> bool {
        true
    }
}

impl Schema {
    pub(crate) fn arr(&mut self, arr: Arr) -> ArrId {
        self.formula(arr)
    }

    pub(crate) fn array(&self, id: ArrId) -> &Arr {
        &self.arenas.arrs.forms[id.0 as usize]
    }

    pub(crate) fn list(&mut self, list: Vec<ExprId>) -> ItemSchemasId {
        ItemSchemasId(self.arenas.lists.intern(list.into()))
    }

    pub(crate) fn items(&mut self, list: ItemSchemasId, from: u32, rest: ExprId) -> ArrId {
        let done = from as usize >= self.arenas.lists[list.0 as usize].len();
        match (done, rest) {
            (true, ExprId::TRUE) => ArrId::TRUE,
            (true, _) => self.arr(Arr::Items { list: ItemSchemasId(0), from: 0, rest }),
            _ => self.arr(Arr::Items { list, from, rest }),
        }
    }

    fn not_items(&mut self, list: ItemSchemasId, from: u32, rest: ExprId) -> ArrId {
        match self.items(list, from, rest) {
            ArrId::TRUE => ArrId::FALSE,
            id => match *self.array(id) {
                Arr::Items { list, from, rest } => self.arr(Arr::NotItems { list, from, rest }),
                _ => unreachable!("items() gives Items"),
            },
        }
    }

    pub(crate) fn length(&mut self, lo: u32, hi: u32) -> ArrId {
        match (lo, hi) {
            (0, u32::MAX) => ArrId::TRUE,
            _ if lo > hi => ArrId::FALSE,
            _ => self.arr(Arr::Length(lo, hi)),
        }
    }

    pub(crate) fn contains(&mut self, sub: ExprId, lo: u32, hi: u32) -> ArrId {
        match (lo, hi, sub) {
            (0, u32::MAX, _) => ArrId::TRUE,
            _ if lo > hi => ArrId::FALSE,
            (_, _, ExprId::TRUE) => self.length(lo, hi),
            (0, _, ExprId::FALSE) => ArrId::TRUE,
            (_, _, ExprId::FALSE) => ArrId::FALSE,
            _ => self.arr(Arr::Contains { sub, lo, hi }),
        }
    }

    /// One `Length`; the order of operands means nothing for arrays: sorted, so that equal formulas meet.
    fn merge_lengths(&mut self, flat: &mut Vec<ArrId>) -> Option<ArrId> {
        let lengths: Vec<(u32, u32)> = flat
            .iter()
            .filter_map(|&a| match self.array(a) {
                Arr::Length(lo, hi) => Some((*lo, *hi)),
                _ => None,
            })
            .collect();
        if lengths.len() > 1 {
            let lo = lengths.iter().map(|l| l.0).max().unwrap_or(0);
            let hi = lengths.iter().map(|l| l.1).min().unwrap_or(u32::MAX);
            flat.retain(|&a| !matches!(self.array(a), Arr::Length(..)));
            match self.length(lo, hi) {
                ArrId::FALSE => return Some(ArrId::FALSE),
                merged => flat.push(merged),
            }
        }
        flat.sort_unstable();
        None
    }

    /// Whether finished items must be remembered.
    pub(crate) fn remembers(&self, a: ArrId) -> bool {
        a.facts(self).remembers
    }

    /// Whether an item may have to be equal to an earlier one.
    pub(crate) fn wants_duplicates(&self, a: ArrId) -> bool {
        a.facts(self).wants_duplicates
    }

    /// The formula after an item with this value was read and found good.
    pub(crate) fn remember(&mut self, a: ArrId, value: JsonNodeId) -> ArrId {
        self.replaced(a, Self::remembers, &mut |this, atom| match *this.array(atom) {
            Arr::Unique(seen) => {
                let seen = this.with_seen(seen, value);
                this.arr(Arr::Unique(seen))
            }
            Arr::NotUnique(seen) => {
                let seen = this.with_seen(seen, value);
                this.arr(Arr::NotUnique(seen))
            }
            _ => atom,
        })
    }

    /// Branches (item, rest) when an item is read.
    pub(crate) fn read_item(&mut self, a: ArrId) -> Vec<(ExprId, ArrId)> {
        self.branches(a, None)
    }

    /// What an atom says of the next item.
    pub(super) fn array_leaf(&mut self, a: ArrId) -> Leaf<ArrId> {
        match self.array(a).clone() {
            Arr::Items { list, from, rest } => {
                Leaf::asks(self.item_at(list, from, rest), self.items(list, from + 1, rest))
            }
            Arr::NotItems { list, from, rest } => {
                let sub = self.item_at(list, from, rest);
                let when_true = self.not_items(list, from + 1, rest);
                Leaf { sub, when_true, when_false: ArrId::TRUE, regardless: Some(when_true) }
            }
            Arr::Length(_, 0) => Leaf::sure(ArrId::FALSE),
            Arr::Length(lo, hi) => {
                let hi = if hi == u32::MAX { hi } else { hi - 1 };
                Leaf::sure(self.length(lo.saturating_sub(1), hi))
            }
            Arr::Contains { sub, hi: 0, .. } => {
                Leaf { sub, when_true: ArrId::FALSE, when_false: a, regardless: None }
            }
            Arr::Contains { sub, lo, hi } => {
                let fewer = if hi == u32::MAX { hi } else { hi - 1 };
                let when_true = self.contains(sub, lo.saturating_sub(1), fewer);
                // counting one too few never helps, so "not" need not be shown
                Leaf { sub, when_true, when_false: a, regardless: (hi == u32::MAX).then_some(a) }
            }
            Arr::Unique(seen) => {
                let sub = self.one_of(seen);
                Leaf { sub, when_true: ArrId::FALSE, when_false: a, regardless: None }
            }
            Arr::NotUnique(seen) => {
                let sub = self.one_of(seen);
                Leaf { sub, when_true: ArrId::TRUE, when_false: a, regardless: Some(a) }
            }
            Arr::True | Arr::False | Arr::And(_) | Arr::Or(_) => Leaf::sure(a),
        }
    }

    fn item_at(&self, list: ItemSchemasId, from: u32, rest: ExprId) -> ExprId {
        self.arenas.lists[list.0 as usize].get(from as usize).copied().unwrap_or(rest)
    }
}
