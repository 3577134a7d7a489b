//! Members in any order, none of them twice: rules made on demand.
//!
//! Purpose: what may follow some of n members depends on the set of those that have come, and there are 2^n such
//! sets; a text meets at most n + 1 of them.
//! Invariant: a rule stands for a set of members that may still come. Its cost, and whether it may be empty, are known
//! from the beginning; its expansions, once [`Grammar::unfold`] has made them: before an item set predicts it.
//! Complexity: for each set that a text meets, a rule and an expansion for each of its members.
//! Rejected: the rules of all sets at once (28 members in any order have 268 million); items that hold a set of
//! members (every stage of the parser would have to know).

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::grammar::{together, Grammar, Symbol, ENDLESS, NEVER};
use super::spec::OrderEntry;
use crate::error::{Error, Kind, Result};
use crate::heap_size;

/// The members of one rule.
pub struct Order {
    pub rule: u32,
    /// Each with whether it has to come.
    pub members: Vec<(Symbol, bool)>,
    /// What may come besides, anywhere and any number of times.
    pub others: Option<Symbol>,
    /// What stands between two of them.
    pub separator: Option<Symbol>,
}

impl Order {
    pub(super) fn read(entry: &OrderEntry, symbol: impl Fn(&String) -> Result<Symbol>) -> Result<Self> {
        let Symbol::Rule(rule) = symbol(&entry.origin)? else {
            let message = format!("'{}' is both a terminal and a rule", entry.origin);
            return Err(Error::new(Kind::InvalidGrammar, message));
        };
        let members = entry.members.iter().map(|(name, must)| Ok((symbol(name)?, *must)));
        Ok(Order {
            rule,
            members: members.collect::<Result<_>>()?,
            others: entry.others.as_ref().map(&symbol).transpose()?,
            separator: entry.separator.as_ref().map(&symbol).transpose()?,
        })
    }
}

/// What may still come of an order.
#[derive(Clone, PartialEq, Eq, Hash)]
struct RemainingMembers {
    order: u32,
    /// Members, as bits.
    members: Box<[u64]>,
    /// A separator stands before what comes next.
    begun: bool,
}

impl RemainingMembers {
    fn has(&self, member: usize) -> bool {
        self.members[member / 64] >> (member % 64) & 1 == 1
    }

    fn without(&self, member: usize) -> Self {
        let mut rest = RemainingMembers { begun: true, ..self.clone() };
        rest.members[member / 64] &= !(1 << (member % 64));
        rest
    }
}

/// The orders of a grammar, and the rules that were made for them.
#[derive(Default)]
pub struct Orders {
    all: Vec<Order>,
    left: FxHashMap<u32, RemainingMembers>,
    rules: FxHashMap<RemainingMembers, u32>,
    /// Rules and expansions of the grammar before any was made.
    settled: (usize, usize),
}

impl Orders {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Grammar {
    /// The shortest text of each order, as expansions: their costs are those of the orders.
    pub(super) fn shortest_orders(orders: &[Order]) -> Vec<(u32, Vec<Symbol>)> {
        let needed = |order: &Order| {
            let needed: Vec<Symbol> = order.members.iter().filter(|m| m.1).map(|m| m.0).collect();
            needed.iter().enumerate().flat_map(|(at, &s)| between(order, at > 0).chain([s])).collect()
        };
        orders.iter().map(|order| (order.rule, needed(order))).collect()
    }

    /// Takes the orders over once the grammar is settled, with what [`Grammar::shortest_orders`] gave.
    pub(super) fn set_orders(&mut self, all: Vec<Order>) {
        self.orders = Orders { all, settled: (self.names.len(), self.expansions.len()), ..Orders::default() };
        self.fold_orders();
    }

    /// Forgets the rules that were made.
    pub(super) fn fold_orders(&mut self) {
        let (rules, expansions) = self.orders.settled;
        if self.orders.is_empty() {
            return;
        }
        self.names.truncate(rules);
        self.nullable.truncate(rules);
        self.costs.truncate(rules);
        self.shortest.truncate(rules);
        self.by_rule.truncate(rules);
        self.expansions.truncate(expansions);
        self.orders.left.clear();
        self.orders.rules.clear();
        for (i, order) in (0u32..).zip(&self.orders.all) {
            let mut members = vec![0; order.members.len().div_ceil(64)];
            (0..order.members.len()).for_each(|m| members[m / 64] |= 1 << (m % 64));
            let left =
                RemainingMembers { order: i, members: members.into(), begun: order.separator.is_none() };
            self.by_rule[order.rule as usize].clear();
            self.orders.left.insert(order.rule, left.clone());
            self.orders.rules.insert(left, order.rule);
        }
    }

    /// Makes the expansions of a rule that stands for members in any order, if it has none yet; the bytes that they
    /// take.
    pub fn unfold(&mut self, rule: u32) -> usize {
        if !self.by_rule[rule as usize].is_empty() {
            return 0;
        }
        let Some(left) = self.orders.left.get(&rule).cloned() else { return 0 };
        let order = &self.orders.all[left.order as usize];
        let members = order.members.clone();
        let separator: Vec<Symbol> = between(order, left.begun).collect();
        let apart = between(order, true).map(|s| self.cost(s)).fold(0, together);
        let others = order.others;
        crate::work::spend(2 * members.len() as u64);
        let here = || (0..members.len()).filter(|&m| left.has(m));
        // what the members that must come cost together
        let needed = |m: &usize| members[*m].1;
        let count = here().filter(needed).count();
        let each = |m: usize| u128::from(self.cost(members[m].0)) + u128::from(apart);
        let total: u128 = here().filter(needed).map(each).sum();
        let never = here().filter(needed).any(|m| self.cost(members[m].0) >= NEVER);
        let left_over = |count: usize, total: u128| match never || count > 0 && apart >= NEVER {
            true => NEVER,
            false => u64::try_from(total).unwrap_or(ENDLESS).min(ENDLESS),
        };
        let mut ways: Vec<(Symbol, RemainingMembers, usize, u64)> = Vec::new();
        for m in here() {
            let (symbol, must) = members[m];
            if self.cost(symbol) < NEVER {
                let (count, spent) = (count - usize::from(must), if must { each(m) } else { 0 });
                ways.push((symbol, left.without(m), count, left_over(count, total - spent)));
            }
        }
        if let Some(symbol) = others.filter(|&s| self.cost(s) < NEVER) {
            ways.push((
                symbol,
                RemainingMembers { begun: true, ..left.clone() },
                count,
                left_over(count, total),
            ));
        }
        let mut bytes = 0;
        for (symbol, rest, count, cost) in ways {
            let mut symbols = separator.clone();
            symbols.push(symbol);
            if others.is_some() || rest.members.iter().any(|&word| word != 0) {
                bytes += heap_size::slice(&rest.members) * 2 + 128;
                symbols.push(Symbol::Rule(self.rule_of(rest, count == 0, cost)));
            }
            bytes += heap_size::slice(&symbols) + 32;
            self.by_rule[rule as usize].push(self.expansions.len() as u32);
            let expansion = self.expansion(rule, symbols);
            self.expansions.push(expansion);
        }
        bytes
    }

    /// The rule of a set.
    fn rule_of(&mut self, left: RemainingMembers, nullable: bool, cost: u64) -> u32 {
        memo!(self.orders.rules, left.clone(), {
            let rule = self.names.len() as u32;
            let name = self.orders.all[left.order as usize].rule;
            self.names.push(self.names[name as usize].clone());
            self.nullable.push(nullable);
            self.costs.push(cost);
            self.shortest.push(Box::new([]));
            self.by_rule.push(Vec::new());
            self.orders.left.insert(rule, left);
            rule
        })
    }

    /// The expansion that gives a shortest text of a rule.
    pub fn shortest_of(&self, rule: u32) -> Cow<'_, [Symbol]> {
        let Some(left) = self.orders.left.get(&rule) else {
            return Cow::Borrowed(&self.shortest[rule as usize]);
        };
        let order = &self.orders.all[left.order as usize];
        let mut symbols = Vec::new();
        for (m, &(symbol, must)) in order.members.iter().enumerate() {
            if must && left.has(m) {
                symbols.extend(between(order, left.begun || !symbols.is_empty()));
                symbols.push(symbol);
            }
        }
        Cow::Owned(symbols)
    }
}

/// The separator, where one stands.
fn between(order: &Order, begun: bool) -> impl Iterator<Item = Symbol> {
    order.separator.filter(|_| begun).into_iter()
}
