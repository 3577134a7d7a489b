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

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::grammar::{Grammar, Symbol};

/// The number of an item set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SetId(pub u32);

/// Where the completion of a rule is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Return {
    pub rule: u32,
    pub set: SetId,
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

#[derive(PartialEq, Eq, Hash)]
struct Kernel {
    items: Box<[Item]>,
    accepts: bool,
}

/// A set with its predictions: items by the symbol that they wait for.
pub struct Closure {
    waiting: Box<[(Symbol, Item)]>,
    /// Terminals that may come next, ascending.
    pub terminals: Box<[u32]>,
}

impl Closure {
    pub fn waiting(&self, symbol: Symbol) -> &[(Symbol, Item)] {
        let from = self.waiting.partition_point(|w| w.0 < symbol);
        let len = self.waiting[from..].partition_point(|w| w.0 == symbol);
        &self.waiting[from..from + len]
    }

    pub fn all(&self) -> &[(Symbol, Item)] {
        &self.waiting
    }
}

/// The return of the start rule.
const END: Return = Return { rule: u32::MAX, set: SetId(u32::MAX) };
/// Returns that one rule may hand on.
const HANDED_ON: usize = 8;
/// Bounds: sets of one automaton, items of one set.
const MAX_SETS: usize = 4_000_000;
const MAX_ITEMS: usize = 50_000;

pub struct Chart {
    pub grammar: Grammar,
    sets: IndexSet<Kernel, FxBuildHasher>,
    closures: Vec<Option<std::sync::Arc<Closure>>>,
    returns: IndexSet<Box<[Return]>, FxBuildHasher>,
    steps: FxHashMap<(SetId, u32), Option<SetId>>,
    pub overflow: bool,
}

/// What is known of a predicted rule while a set is closed.
#[derive(Default)]
struct Predicted {
    /// An item goes on after it, so it must come back to this set.
    comes_back: bool,
    /// Returns of the items of the kernel that end with it.
    known: Vec<ReturnsId>,
    /// Predicted rules with an expansion that ends with it.
    from: Vec<u32>,
    reached: Vec<Return>,
}

impl Chart {
    pub fn new(grammar: Grammar) -> Self {
        let mut this = Chart {
            grammar,
            sets: IndexSet::default(),
            closures: Vec::new(),
            returns: IndexSet::default(),
            steps: FxHashMap::default(),
            overflow: false,
        };
        this.returns.insert(Box::new([END]));
        this
    }

    /// The set before the first symbol.
    pub fn start(&mut self) -> SetId {
        let start = self.grammar.start;
        let items = self.grammar.by_rule[start as usize].iter();
        let items = items.map(|&expansion| Item { expansion, dot: 0, returns: ReturnsId(0) }).collect();
        let accepts = self.grammar.nullable[start as usize];
        self.intern(Kernel { items, accepts })
    }

    fn intern(&mut self, kernel: Kernel) -> SetId {
        self.overflow |= self.sets.len() >= MAX_SETS || kernel.items.len() > MAX_ITEMS;
        let (i, new) = self.sets.insert_full(kernel);
        if new {
            self.closures.push(None);
        }
        SetId(i as u32)
    }

    pub fn len(&self) -> usize {
        self.sets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Whether the start rule is complete.
    pub fn accepts(&self, set: SetId) -> bool {
        self.sets[set.0 as usize].accepts
    }

    pub fn returns(&self, id: ReturnsId) -> &[Return] {
        &self.returns[id.0 as usize]
    }

    pub fn is_end(r: Return) -> bool {
        r == END
    }

    /// The set after a terminal; `None` where it can't come.
    pub fn step(&mut self, set: SetId, terminal: u32) -> Option<SetId> {
        if let Some(&known) = self.steps.get(&(set, terminal)) {
            return known;
        }
        let next = self.merge(&[(set, terminal)], &[]);
        self.steps.insert((set, terminal), next);
        next
    }

    /// The set after terminals that end at one place, where other texts lead back to the sets `same`.
    pub fn merge(&mut self, ends: &[(SetId, u32)], same: &[SetId]) -> Option<SetId> {
        let mut items: FxHashSet<Item> = FxHashSet::default();
        let mut accepts = false;
        for &set in same {
            let kernel = &self.sets[set.0 as usize];
            items.extend(kernel.items.iter());
            accepts |= kernel.accepts;
        }
        let mut done: FxHashSet<Return> = FxHashSet::default();
        let mut todo: Vec<Item> = Vec::new();
        for &(set, terminal) in ends {
            let closure = self.closure(set);
            todo.extend(closure.waiting(Symbol::Terminal(terminal)).iter().map(|w| w.1));
        }
        while let Some(item) = todo.pop() {
            let item = Item { dot: item.dot + 1, ..item };
            let expansion = &self.grammar.expansions[item.expansion as usize];
            let (length, optional_from) = (expansion.symbols.len() as u32, expansion.optional_from);
            if item.dot < length && !items.insert(item) {
                continue;
            }
            if item.dot < optional_from {
                continue;
            }
            for k in 0..self.returns(item.returns).len() {
                let back = self.returns(item.returns)[k];
                if !done.insert(back) {
                    continue;
                }
                if back == END {
                    accepts = true;
                    continue;
                }
                let closure = self.closure(back.set);
                todo.extend(closure.waiting(Symbol::Rule(back.rule)).iter().map(|w| w.1));
            }
        }
        if items.is_empty() && !accepts {
            return None;
        }
        let mut items: Vec<Item> = items.into_iter().collect();
        items.sort_unstable();
        Some(self.intern(Kernel { items: items.into(), accepts }))
    }

    /// A set with its predictions.
    pub fn closure(&mut self, set: SetId) -> std::sync::Arc<Closure> {
        if let Some(closure) = &self.closures[set.0 as usize] {
            return closure.clone();
        }
        let closure = std::sync::Arc::new(self.close(set));
        self.closures[set.0 as usize] = Some(closure.clone());
        closure
    }

    fn close(&mut self, set: SetId) -> Closure {
        let mut waiting: Vec<(Symbol, Item)> = Vec::new();
        let mut predicted: indexmap::IndexMap<u32, Predicted, FxBuildHasher> = Default::default();
        for &item in self.sets[set.0 as usize].items.iter() {
            for (symbol, dot, last) in reachable(&self.grammar, item.expansion, item.dot) {
                waiting.push((symbol, Item { dot, ..item }));
                if let Symbol::Rule(rule) = symbol {
                    let entry = predicted.entry(rule).or_default();
                    entry.comes_back |= !last;
                    entry.known.push(item.returns);
                }
            }
        }
        let mut at = 0;
        while at < predicted.len() {
            let (&rule, _) = predicted.get_index(at).expect("below the length");
            for &expansion in &self.grammar.by_rule[rule as usize] {
                for (symbol, _, last) in reachable(&self.grammar, expansion, 0) {
                    if let Symbol::Rule(inner) = symbol {
                        let entry = predicted.entry(inner).or_default();
                        entry.comes_back |= !last;
                        entry.from.push(rule);
                    }
                }
            }
            at += 1;
        }
        self.hand_on(set, &mut predicted);
        for (&rule, entry) in &predicted {
            let returns = ReturnsId(self.returns.insert_full(entry.reached.as_slice().into()).0 as u32);
            for &expansion in &self.grammar.by_rule[rule as usize] {
                for (symbol, dot, _) in reachable(&self.grammar, expansion, 0) {
                    waiting.push((symbol, Item { expansion, dot, returns }));
                }
            }
        }
        waiting.sort_unstable();
        waiting.dedup();
        let mut terminals: Vec<u32> = waiting
            .iter()
            .filter_map(|w| if let Symbol::Terminal(t) = w.0 { Some(t) } else { None })
            .collect();
        terminals.dedup();
        Closure { waiting: waiting.into(), terminals: terminals.into() }
    }

    /// Settles what each predicted rule returns to: this set, or what those that end with it return to.
    fn hand_on(&self, set: SetId, predicted: &mut indexmap::IndexMap<u32, Predicted, FxBuildHasher>) {
        for (&rule, entry) in predicted.iter_mut() {
            if entry.comes_back {
                entry.reached = vec![Return { rule, set }];
                continue;
            }
            entry.from.sort_unstable();
            entry.from.dedup();
            entry.reached = entry.known.iter().flat_map(|&r| self.returns(r)).copied().collect();
            entry.reached.sort_unstable();
            entry.reached.dedup();
        }
        loop {
            let mut changed = false;
            for i in 0..predicted.len() {
                if predicted[i].comes_back {
                    continue;
                }
                let mut all = predicted[i].reached.clone();
                for from in &predicted[i].from {
                    all.extend_from_slice(&predicted[from].reached);
                }
                all.sort_unstable();
                all.dedup();
                let (&rule, entry) = predicted.get_index_mut(i).expect("below the length");
                if all.len() > HANDED_ON {
                    // from here on it comes back: the sets of others that took its returns over stay right,
                    // since they are only added to
                    entry.comes_back = true;
                    entry.reached = vec![Return { rule, set }];
                    changed = true;
                } else if all != entry.reached {
                    entry.reached = all;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }
}

/// The symbols that an expansion may read next from a dot on, where rules that may be empty are skipped:
/// (symbol, place of the dot before it, whether it is the last one).
fn reachable(grammar: &Grammar, expansion: u32, dot: u32) -> impl Iterator<Item = (Symbol, u32, bool)> + '_ {
    let symbols = &grammar.expansions[expansion as usize].symbols;
    let mut open = true;
    (dot as usize..symbols.len()).map_while(move |at| {
        if !open {
            return None;
        }
        let symbol = symbols[at];
        open = matches!(symbol, Symbol::Rule(r) if grammar.nullable[r as usize]);
        Some((symbol, at as u32, at + 1 == symbols.len()))
    })
}
