//! What an item set predicts, but for where its items return to.
//!
//! Purpose: the sets of a long text are many, their rules with dots are few (the states of an LR(0) automaton):
//! predictions, terminals and who hands its returns on to whom are found once for each skeleton.
//! Complexity: the items of the closure, and the rules that hand on to several, squared; once for a skeleton.

use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;

use super::grammar::{Grammar, Symbol};

/// Expansions and dots of a set, ascending and distinct.
pub type Places = Box<[(u32, u32)]>;

/// Where an item that waits for a symbol comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The items of the set with the dot at `from`; what stands between may be empty.
    Kernel { expansion: u32, from: u32, dot: u32 },
    /// Predicted with the rule at that place of [`Skeleton::predicted`].
    Predicted { expansion: u32, rule: u32, dot: u32 },
}

/// A predicted rule.
pub struct Predicted {
    pub rule: u32,
    /// An item goes on after it, so it must come back to the set.
    pub comes_back: bool,
    /// Otherwise it hands on the returns of these items of the set,
    pub kernel: Box<[(u32, u32)]>,
    /// and of these rules, which come back.
    pub back: Box<[u32]>,
}

pub struct Skeleton {
    waiting: Box<[(Symbol, Source)]>,
    /// Terminals that may come next, ascending.
    pub terminals: Box<[u32]>,
    pub predicted: Box<[Predicted]>,
}

/// What is known of a predicted rule while a skeleton is made.
#[derive(Default)]
struct Entry {
    comes_back: bool,
    kernel: Vec<(u32, u32)>,
    /// Predicted rules with an expansion that ends with it.
    from: Vec<u32>,
}

impl Skeleton {
    /// The skeleton, and the bytes that the grammar took for rules that were made for it.
    pub fn new(grammar: &mut Grammar, places: &[(u32, u32)]) -> (Self, usize) {
        let mut waiting: Vec<(Symbol, Source)> = Vec::new();
        let mut entries: IndexMap<u32, Entry, FxBuildHasher> = IndexMap::default();
        for &(expansion, from) in places {
            for (symbol, dot, last) in reachable(grammar, expansion, from) {
                waiting.push((symbol, Source::Kernel { expansion, from, dot }));
                if let Symbol::Rule(rule) = symbol {
                    let entry = entries.entry(rule).or_default();
                    entry.comes_back |= !last;
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
                        entry.comes_back |= !last;
                        entry.from.push(rule);
                    }
                }
            }
            at += 1;
        }
        waiting.sort_unstable();
        waiting.dedup();
        let terminal = |w: &(Symbol, Source)| if let Symbol::Terminal(t) = w.0 { Some(t) } else { None };
        let mut terminals: Vec<u32> = waiting.iter().filter_map(terminal).collect();
        terminals.dedup();
        let mut predicted: Vec<Predicted> = Vec::with_capacity(entries.len());
        for at in 0..entries.len() {
            let found = inherited(&entries, at, &predicted).unwrap_or_else(|| settle(&entries, at));
            predicted.push(found);
        }
        let terminals = terminals.into();
        (Skeleton { waiting: waiting.into(), terminals, predicted: predicted.into() }, bytes)
    }

    pub fn waiting(&self, symbol: Symbol) -> &[(Symbol, Source)] {
        let from = self.waiting.partition_point(|w| w.0 < symbol);
        let len = self.waiting[from..].partition_point(|w| w.0 == symbol);
        &self.waiting[from..from + len]
    }

    pub fn all(&self) -> &[(Symbol, Source)] {
        &self.waiting
    }
}

/// What the only rule that ends with this one hands on: a chain of thousands of optional rules is walked once.
fn inherited(
    entries: &IndexMap<u32, Entry, FxBuildHasher>,
    at: usize,
    known: &[Predicted],
) -> Option<Predicted> {
    let (&rule, entry) = entries.get_index(at).expect("below the length");
    let &first = entry.from.first()?;
    if entry.comes_back || !entry.kernel.is_empty() || entry.from.iter().any(|&r| r != first) {
        return None;
    }
    // it was predicted by that rule, so that one stands before it
    let above = known.get(entries.get_index_of(&first)?)?;
    Some(match above.comes_back {
        true => Predicted { rule, comes_back: false, kernel: Box::new([]), back: Box::new([first]) },
        false => {
            Predicted { rule, comes_back: false, kernel: above.kernel.clone(), back: above.back.clone() }
        }
    })
}

/// The items and the rules whose returns a rule hands on: those that end with it, and so on up to rules that come
/// back.
fn settle(entries: &IndexMap<u32, Entry, FxBuildHasher>, at: usize) -> Predicted {
    let (&rule, entry) = entries.get_index(at).expect("below the length");
    let (mut kernel, mut back) = (Vec::new(), Vec::new());
    if !entry.comes_back {
        let mut seen: IndexSet<u32, FxBuildHasher> = IndexSet::from_iter([rule]);
        let mut next = 0;
        while next < seen.len() {
            let found = &entries[&seen[next]];
            next += 1;
            if found.comes_back {
                back.push(seen[next - 1]);
                continue;
            }
            kernel.extend_from_slice(&found.kernel);
            for &r in &found.from {
                seen.insert(r);
            }
        }
        kernel.sort_unstable();
        kernel.dedup();
    }
    Predicted { rule, comes_back: entry.comes_back, kernel: kernel.into(), back: back.into() }
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
