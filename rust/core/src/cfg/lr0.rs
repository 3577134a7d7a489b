//! LR(0) cores: what an item set predicts, without where its items return to.
//!
//! Purpose: a long text has many sets, but few different sets of rules with dots (the states of an LR(0) automaton).
//! Predictions, terminals and which rule forwards its returns to which are found once per core.
//! Complexity: the items of the closure, once per LR(0) core.

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use super::cycles::components;
use super::grammar::{Grammar, Symbol};
use crate::{heap_size, work};

/// Expansions and dots of a set, ascending and distinct.
pub type DottedItems = Box<[(u32, u32)]>;

/// Where an item that waits for a symbol comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The items of the set with the dot at `from`; what stands between may be empty.
    Kernel { expansion: u32, from: u32, dot: u32 },
    /// Predicted with the rule at that place of [`Lr0Core::predicted`].
    Predicted { expansion: u32, rule: u32, dot: u32 },
}

/// A predicted rule.
pub struct Predicted {
    pub rule: u32,
    /// The group with which it hands on its returns; `None`: an item goes on after it, so it must come back to the set.
    pub group: Option<u32>,
}

/// Predicted rules that end with each other, mostly one alone: they hand on the returns
#[derive(Default)]
pub struct RuleGroup {
    /// of these items of the set,
    pub kernel: Vec<(u32, u32)>,
    /// of these rules, which come back,
    pub returning: Vec<u32>,
    /// and of these groups, which stand before this one. Named and not written out: each of thousands of optional rules
    /// in a row hands on what all before it do.
    pub earlier: Vec<u32>,
}

pub struct Lr0Core {
    waiting: Box<[(Symbol, Source)]>,
    /// Terminals that may come next, ascending.
    pub terminals: Box<[u32]>,
    pub predicted: Box<[Predicted]>,
    pub groups: Box<[RuleGroup]>,
}

/// What is known of a predicted rule while an LR(0) core is made.
#[derive(Default)]
struct Entry {
    needs_set: bool,
    kernel: Vec<(u32, u32)>,
    /// Predicted rules with an expansion that ends with it.
    from: Vec<u32>,
}

impl Lr0Core {
    /// The LR(0) core, and its bytes with those that the grammar took for rules that were made for it.
    pub fn new(grammar: &mut Grammar, places: &[(u32, u32)]) -> (Self, usize) {
        let mut waiting: Vec<(Symbol, Source)> = Vec::new();
        let mut entries: IndexMap<u32, Entry, FxBuildHasher> = IndexMap::default();
        for &(expansion, from) in places {
            for (symbol, dot, last) in reachable(grammar, expansion, from) {
                waiting.push((symbol, Source::Kernel { expansion, from, dot }));
                if let Symbol::Rule(rule) = symbol {
                    let entry = entries.entry(rule).or_default();
                    entry.needs_set |= !last;
                    entry.kernel.push((expansion, from));
                }
            }
        }
        let (mut at, mut bytes) = (0, 0);
        while at < entries.len() {
            let (&rule, _) = entries.get_index(at).expect("below the length");
            bytes += grammar.unfold(rule);
            for &expansion in &grammar.by_rule[rule as usize] {
                for (symbol, dot, last) in reachable(grammar, expansion, 0) {
                    waiting.push((symbol, Source::Predicted { expansion, rule: at as u32, dot }));
                    if let Symbol::Rule(inner) = symbol {
                        let entry = entries.entry(inner).or_default();
                        entry.needs_set |= !last;
                        entry.from.push(rule);
                    }
                }
            }
            at += 1;
        }
        work::spend(4 * (waiting.len() + entries.len()) as u64);
        crate::lists::sort_unique(&mut waiting);
        let terminal = |w: &(Symbol, Source)| if let Symbol::Terminal(t) = w.0 { Some(t) } else { None };
        let mut terminals: Vec<u32> = waiting.iter().filter_map(terminal).collect();
        terminals.dedup();
        let (predicted, groups) = grouped(entries);
        let made = Lr0Core { waiting: waiting.into(), terminals: terminals.into(), predicted, groups };
        bytes += made.bytes();
        (made, bytes)
    }

    fn bytes(&self) -> usize {
        let lists = |g: &RuleGroup| {
            heap_size::list(&g.kernel) + heap_size::list(&g.returning) + heap_size::list(&g.earlier)
        };
        let groups: usize = self.groups.iter().map(lists).sum();
        let flat = heap_size::slice(&self.waiting)
            + heap_size::slice(&self.terminals)
            + heap_size::slice(&self.predicted);
        std::mem::size_of::<Self>() + flat + heap_size::slice(&self.groups) + groups
    }

    pub fn waiting(&self, symbol: Symbol) -> &[(Symbol, Source)] {
        let from = self.waiting.partition_point(|w| w.0 < symbol);
        let len = self.waiting[from..].iter().take_while(|w| w.0 == symbol).count(); // mostly one or two
        &self.waiting[from..from + len]
    }
}

/// The predicted rules, and what those hand on that need not come back.
fn grouped(entries: IndexMap<u32, Entry, FxBuildHasher>) -> (Box<[Predicted]>, Box<[RuleGroup]>) {
    let place =
        |rule: &u32| entries.get_index_of(rule).expect("what ends with a rule was predicted too") as u32;
    let circles = components(entries.len(), |at| match &entries[at as usize] {
        entry if entry.needs_set => Vec::new(),
        entry => entry.from.iter().map(place).collect(),
    });
    let mut predicted: Vec<Predicted> = entries.keys().map(|&rule| Predicted { rule, group: None }).collect();
    let mut groups: Vec<RuleGroup> = Vec::with_capacity(circles.len());
    for circle in circles {
        if entries[circle[0] as usize].needs_set {
            continue;
        }
        for &at in &circle {
            predicted[at as usize].group = Some(groups.len() as u32);
        }
        let mut group = RuleGroup::default();
        for entry in circle.iter().map(|&at| &entries[at as usize]) {
            group.kernel.extend_from_slice(&entry.kernel);
            for rule in &entry.from {
                match predicted[place(rule) as usize].group {
                    None => group.returning.push(*rule),
                    Some(above) if above as usize != groups.len() => group.earlier.push(above),
                    Some(_) => {}
                }
            }
        }
        distinct(&mut group.kernel);
        distinct(&mut group.returning);
        distinct(&mut group.earlier);
        groups.push(group);
    }
    (predicted.into(), groups.into())
}

fn distinct<T: Ord>(list: &mut Vec<T>) {
    crate::lists::sort_unique(list);
    list.shrink_to_fit();
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
