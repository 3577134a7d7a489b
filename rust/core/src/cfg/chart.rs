//! Item sets of an Earley parser, interned: a set is a number, and its stack is the sets that it returns to.
//!
//! An item says where its completion is waited for by *returns* (rule, set) instead of by a position in a text, so
//! a set means the same wherever it is met again, and left recursion meets it after every element.  A rule that is
//! predicted only by items which end with it hands on their returns instead of its own set (what a compiler does
//! with a tail call; Leo 1991 does it when completing): right recursion then meets the same set again too, keeps
//! no stack and completes in one step.
//! Rules that may be empty are skipped over when predicting (Aycock and Horspool 2002); empty rules are never
//! completed.
//!
//! Complexity: a new set costs its items; a known one a lookup.  No recursion on the machine's stack.
//! Rejected: positions as origins (no two sets are ever equal); LR tables (not every grammar has them).

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::grammar::{Grammar, Symbol};
use super::lr0::{DottedItems, Lr0Core, RuleGroup, Source};
use crate::error::Error;
use crate::heap_size::{self, Interner};
use crate::work;

/// The number of an item set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemSetId(pub u32);

impl ItemSetId {
    /// The set after a step from a top ([`Chart::top`]) that completes what began below it.
    pub const BELOW: ItemSetId = ItemSetId(u32::MAX);
}

/// Where the completion of a rule is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Return {
    pub rule: u32,
    pub set: ItemSetId,
}

/// The number of an interned list of returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReturnsId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Item {
    pub expansion: u32,
    pub dot: u32,
    pub returns: ReturnsId,
}

impl Item {
    /// Orders items as they are ordered, without a branch at each of three numbers: sets may have thousands of them.
    fn key(self) -> u128 {
        (self.expansion as u128) << 64 | (self.dot as u128) << 32 | self.returns.0 as u128
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Kernel {
    items: Box<[Item]>,
    accepts: bool,
}

/// A set with its predictions.
struct Closure {
    lr0: Arc<Lr0Core>,
    /// Number of the LR(0) core.
    core: u32,
    /// What the predicted rules return to, by their place in the LR(0) core; found when first asked for.
    returns: Box<[ReturnsId]>,
    /// What each group of them hands on.
    leo_forwarded: Box<[ReturnsId]>,
}

/// What follows the completion of rules.
#[derive(Default)]
struct Completed {
    /// The items that go on, sorted.
    items: Box<[Item]>,
    /// Whether the start rule is complete.
    accepts: bool,
    /// Whether something is complete that began below a top; the rest says nothing then.
    below: bool,
}

/// How a text goes on after a rule, on a shortest way to the end.
#[derive(Clone, Copy)]
pub struct Continuation {
    /// Characters to the end.
    pub cost: u64,
    /// The item that goes on, its dot behind the rule.
    pub item: Item,
    /// Where the item's own completion is waited for on that way.
    pub then: Return,
}

/// Nobody has asked yet.
const UNKNOWN: ReturnsId = ReturnsId(u32::MAX);
/// More than [`HANDED_ON`].
const MANY: ReturnsId = ReturnsId(u32::MAX - 1);

/// The return of the start rule.
const END: Return = Return { rule: u32::MAX, set: ItemSetId(u32::MAX) };
/// The return of what a top was reached with.
const BELOW: Return = Return { rule: u32::MAX - 1, set: ItemSetId(u32::MAX) };
/// Returns that one rule may hand on.
const HANDED_ON: usize = 8;
/// Completions that are followed each by itself.
const FEW: usize = 8;
/// Bounds: sets of one automaton, items of one set.
const MAX_SETS: usize = 4_000_000;
const MAX_ITEMS: usize = 50_000;

heap_size::owned!(Kernel, this => heap_size::slice(&this.items));

#[derive(Default)]
pub struct Chart {
    pub grammar: Grammar,
    sets: Interner<Kernel>,
    closures: Vec<Option<Closure>>,
    lr0_cores: IndexMap<DottedItems, Arc<Lr0Core>, FxBuildHasher>,
    returns: Interner<Box<[Return]>>,
    steps: FxHashMap<(ItemSetId, u32), Option<ItemSetId>>,
    completions: FxHashMap<Return, Arc<Completed>>,
    /// Tops by their LR(0) cores.
    tops: FxHashMap<u32, ItemSetId>,
    /// Ways to the end that were found: the sets below are the same for most ends of a long text.
    pub continuations: FxHashMap<Return, Continuation>,
    /// Bytes of the closures' own lists, and of rules that were made for them.
    closure_bytes: usize,
}

impl Chart {
    pub fn new(grammar: Grammar) -> Self {
        let mut this = Chart { grammar, ..Chart::default() };
        this.returns.intern(Box::new([END]));
        this
    }

    /// Whether something holds for the expansions of all items that a set was reached with.
    pub fn all(&self, set: ItemSetId, holds: impl Fn(u32) -> bool) -> bool {
        self.sets[set.0 as usize].items.iter().all(|item| holds(item.expansion))
    }

    /// Bytes that the sets hold.
    pub fn bytes(&mut self) -> usize {
        heap_size::bytes!(self: sets, closures, lr0_cores, returns, steps, completions, tops, continuations)
            + self.closure_bytes
    }

    /// The set before the first symbol.
    pub fn start(&mut self) -> ItemSetId {
        let start = self.grammar.start;
        self.closure_bytes += self.grammar.unfold(start);
        let items = self.grammar.by_rule[start as usize].iter();
        let items = items.map(|&expansion| Item { expansion, dot: 0, returns: ReturnsId(0) }).collect();
        let accepts = self.grammar.nullable[start as usize];
        self.intern(Kernel { items, accepts })
    }

    fn intern(&mut self, kernel: Kernel) -> ItemSetId {
        work::spend(2 + kernel.items.len() as u64);
        if self.sets.len() >= MAX_SETS || kernel.items.len() > MAX_ITEMS {
            work::refuse(Error::limit(
                "the grammar's item sets reached the limit; simplify the grammar or end the text",
            ));
        }
        let (i, new) = self.sets.insert_full(kernel);
        if new {
            self.closures.push(None);
        }
        ItemSetId(i as u32)
    }

    /// Whether the start rule is complete.
    pub fn accepts(&self, set: ItemSetId) -> bool {
        self.sets[set.0 as usize].accepts
    }

    pub fn returns(&self, id: ReturnsId) -> &[Return] {
        &self.returns[id.0 as usize]
    }

    pub fn is_end(r: Return) -> bool {
        r == END
    }

    /// The top of the stack alone: the same rules with their dots, of which nobody knows where they return to.  All that
    /// is pushed on it is what is pushed on the set itself; a step that completes what it was reached with leads to
    /// [`ItemSetId::BELOW`].
    pub fn top(&mut self, set: ItemSetId) -> ItemSetId {
        let core = self.core_id(set);
        memo!(self.tops, core, {
            let returns = self.intern_returns(vec![BELOW]);
            let mut items: Vec<Item> =
                self.sets[set.0 as usize].items.iter().map(|item| Item { returns, ..*item }).collect();
            items.dedup();
            self.intern(Kernel { items: items.into(), accepts: false })
        })
    }

    /// The set after a terminal; `None` where it can't come.
    pub fn step(&mut self, set: ItemSetId, terminal: u32) -> Option<ItemSetId> {
        memo!(self.steps, (set, terminal), self.merge(&[(set, terminal)], &[]))
    }

    /// The set after terminals that end at one place. One that is ignored leads back to its set, and on as well where a
    /// rule reads it.
    pub fn after(&mut self, ends: &[(ItemSetId, u32)]) -> Option<ItemSetId> {
        let ignored = |end: &&(ItemSetId, u32)| self.grammar.terminals[end.1 as usize].ignored;
        let same: Vec<ItemSetId> = ends.iter().filter(ignored).map(|end| end.0).collect();
        let mut read = ends.to_vec();
        if !same.is_empty() {
            read.retain(|&(set, terminal)| self.lr0(set).terminals.contains(&terminal));
        }
        match (&read[..], &same[..]) {
            ([], [set]) => Some(*set),
            ([(set, terminal)], []) => self.step(*set, *terminal),
            _ => self.merge(&read, &same),
        }
    }

    /// The set after terminals that end at one place, where other texts lead back to the sets `same`.
    pub fn merge(&mut self, ends: &[(ItemSetId, u32)], same: &[ItemSetId]) -> Option<ItemSetId> {
        let mut items: Vec<Item> = Vec::new();
        let mut accepts = false;
        for &set in same {
            let kernel = &self.sets[set.0 as usize];
            items.extend(kernel.items.iter());
            accepts |= kernel.accepts;
        }
        let mut read: Vec<Item> = Vec::new();
        for &(set, terminal) in ends {
            self.waiting(set, Symbol::Terminal(terminal), &mut read);
        }
        let mut returns: Vec<Return> = Vec::new();
        for item in read {
            self.advance(item, &mut items, &mut returns);
        }
        crate::lists::sort_unique(&mut returns);
        // alone, what follows a completion serves every other text that leads to it
        let parts: Vec<&[Return]> = match returns.len() {
            0..=FEW => returns.chunks(1).collect(),
            _ => vec![&returns],
        };
        for part in parts {
            let found = self.completed(part);
            if found.below {
                return Some(ItemSetId::BELOW);
            }
            items.extend_from_slice(&found.items);
            accepts |= found.accepts;
        }
        if items.is_empty() && !accepts {
            return None;
        }
        work::spend(items.len() as u64 / 2);
        items.sort_unstable_by_key(|item| item.key());
        items.dedup();
        Some(self.intern(Kernel { items: items.into(), accepts }))
    }

    /// An item behind the symbol that it waits for; where its rule is complete there, what that returns to.
    fn advance(&self, item: Item, items: &mut Vec<Item>, returns: &mut Vec<Return>) {
        work::spend(3);
        let item = Item { dot: item.dot + 1, ..item };
        let expansion = &self.grammar.expansions[item.expansion as usize];
        if item.dot < expansion.symbols.len() as u32 {
            items.push(item);
        }
        if item.dot >= expansion.optional_from {
            let back = self.returns(item.returns);
            work::spend(back.len() as u64 / 2); // most were met before
            returns.extend_from_slice(back);
        }
    }

    /// What follows the completion of some rules; that of one is remembered.
    fn completed(&mut self, rules: &[Return]) -> Arc<Completed> {
        match rules {
            &[one] => memo!(self.completions, one, {
                let found = Arc::new(self.complete(rules));
                self.closure_bytes += heap_size::slice(&found.items) + heap_size::BLOCK;
                found
            }),
            _ => Arc::new(self.complete(rules)),
        }
    }

    fn complete(&mut self, rules: &[Return]) -> Completed {
        let mut found = Completed::default();
        let mut done: FxHashSet<Return> = rules.iter().copied().collect();
        let (mut todo, mut waiting, mut next) = (rules.to_vec(), Vec::new(), Vec::new());
        let mut items = Vec::new();
        while let Some(back) = todo.pop() {
            match back {
                END => found.accepts = true,
                BELOW => return Completed { below: true, ..found },
                Return { rule, set } => {
                    work::spend(6); // an entry, and two searches, far apart in memory
                    self.waiting(set, Symbol::Rule(rule), &mut waiting);
                    waiting.drain(..).for_each(|item| self.advance(item, &mut items, &mut next));
                    todo.extend(next.drain(..).filter(|next| done.insert(*next)));
                }
            }
        }
        items.sort_unstable_by_key(|item: &Item| item.key());
        items.dedup();
        found.items = items.into();
        found
    }

    /// What may come next: shared by all sets whose items differ by their returns alone.
    pub fn lr0(&mut self, set: ItemSetId) -> &Arc<Lr0Core> {
        &self.closure(set).lr0
    }

    /// The number of the LR(0) core.
    pub fn core_id(&mut self, set: ItemSetId) -> u32 {
        self.closure(set).core
    }

    fn closure(&mut self, set: ItemSetId) -> &mut Closure {
        if self.closures[set.0 as usize].is_none() {
            let mut places: Vec<(u32, u32)> =
                self.sets[set.0 as usize].items.iter().map(|i| (i.expansion, i.dot)).collect();
            places.dedup();
            let places: DottedItems = places.into();
            let shape = match self.lr0_cores.get_index_of(&places) {
                Some(known) => known,
                None => {
                    let (made, bytes) = Lr0Core::new(&mut self.grammar, &places);
                    self.closure_bytes += bytes + heap_size::slice(&places);
                    self.lr0_cores.insert_full(places, Arc::new(made)).0
                }
            };
            let lr0 = self.lr0_cores[shape].clone();
            let unknown = |n: usize| -> Box<[ReturnsId]> { vec![UNKNOWN; n].into() };
            let (returns, leo_forwarded) = (unknown(lr0.predicted.len()), unknown(lr0.groups.len()));
            self.closure_bytes += heap_size::slice(&returns) + heap_size::slice(&leo_forwarded);
            self.closures[set.0 as usize] = Some(Closure { lr0, core: shape as u32, returns, leo_forwarded });
        }
        self.closures[set.0 as usize].as_mut().expect("just made")
    }

    /// Adds the items of a set, predictions included, that wait for a symbol.
    pub fn waiting(&mut self, set: ItemSetId, symbol: Symbol, out: &mut Vec<Item>) {
        let lr0 = self.closure(set).lr0.clone();
        for &(_, source) in lr0.waiting(symbol) {
            self.items_of(set, source, out);
        }
    }

    /// The items of a set without its predictions.
    pub fn kernel(&self, set: ItemSetId) -> &[Item] {
        &self.sets[set.0 as usize].items
    }

    fn items_of(&mut self, set: ItemSetId, source: Source, out: &mut Vec<Item>) {
        match source {
            Source::Kernel { expansion, from, dot } => {
                let items = &self.sets[set.0 as usize].items;
                let first = items.partition_point(|i| (i.expansion, i.dot) < (expansion, from));
                let own = items[first..].iter().take_while(|i| (i.expansion, i.dot) == (expansion, from));
                out.extend(own.map(|i| Item { dot, ..*i }));
            }
            Source::Predicted { expansion, rule, dot } => {
                let returns = self.returns_of(set, rule);
                out.push(Item { expansion, dot, returns });
            }
        }
    }

    /// What a predicted rule returns to: its set, or what those that end with it return to.
    fn returns_of(&mut self, set: ItemSetId, at: u32) -> ReturnsId {
        let closure = self.closure(set);
        if closure.returns[at as usize] != UNKNOWN {
            return closure.returns[at as usize];
        }
        let lr0 = closure.lr0.clone();
        let predicted = &lr0.predicted[at as usize];
        // what is handed on by too many comes back instead: those that it hands on to do so themselves
        let id = match predicted.group.map_or(MANY, |group| self.leo_forwarded(set, &lr0, group)) {
            MANY => self.intern_returns(vec![Return { rule: predicted.rule, set }]),
            id => id,
        };
        self.closure(set).returns[at as usize] = id;
        id
    }

    /// What a group of predicted rules hands on; groups that it names come first.
    fn leo_forwarded(&mut self, set: ItemSetId, lr0: &Lr0Core, group: u32) -> ReturnsId {
        let mut todo = vec![group];
        while let Some(&at) = todo.last() {
            let known = &self.closure(set).leo_forwarded;
            let group = &lr0.groups[at as usize];
            let before = todo.len();
            if known[at as usize] == UNKNOWN {
                todo.extend(group.earlier.iter().filter(|&&above| known[above as usize] == UNKNOWN));
                if todo.len() > before {
                    continue;
                }
                let id = self.collect_returns(set, group);
                self.closure(set).leo_forwarded[at as usize] = id;
            }
            todo.pop();
        }
        self.closure(set).leo_forwarded[group as usize]
    }

    /// The same where what the groups above hand on is known.
    fn collect_returns(&mut self, set: ItemSetId, group: &RuleGroup) -> ReturnsId {
        let mut reached: Vec<Return> = group.returning.iter().map(|&rule| Return { rule, set }).collect();
        for &above in &group.earlier {
            match self.closure(set).leo_forwarded[above as usize] {
                MANY => return MANY,
                id => reached.extend_from_slice(self.returns(id)),
            }
        }
        for &(expansion, dot) in &group.kernel {
            let items = &self.sets[set.0 as usize].items;
            let first = items.partition_point(|i| (i.expansion, i.dot) < (expansion, dot));
            for item in items[first..].iter().take_while(|i| (i.expansion, i.dot) == (expansion, dot)) {
                reached.extend_from_slice(&self.returns[item.returns.0 as usize]);
            }
        }
        work::spend(2 + reached.len() as u64 / 4);
        crate::lists::sort_unique(&mut reached);
        match reached.len() > HANDED_ON {
            true => MANY,
            false => self.intern_returns(reached),
        }
    }

    fn intern_returns(&mut self, list: Vec<Return>) -> ReturnsId {
        ReturnsId(self.returns.intern(list.into()))
    }
}
