//! Rules that derive no text.
//!
//! Complexity: that of finding the shortest text of each rule ([`shortest`]): those that derive none have none.

use indexmap::{IndexMap, IndexSet};

use super::grammar::{shortest, Symbol, NEVER};
use crate::hash::KeyedSet;

/// A rule that derives no string of terminals because each of its expansions needs itself, directly or not, or
/// another rule of that kind: one on a circle, the first in the text of those there.
pub fn endless<'a, S>(
    rules: impl IntoIterator<Item = (&'a str, S)>,
    terminals: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str>
where
    S: IntoIterator<Item = &'a str>,
{
    let known: KeyedSet<&str> = terminals.into_iter().collect();
    let rules: Vec<(&str, Vec<&str>)> =
        rules.into_iter().map(|(origin, body)| (origin, body.into_iter().collect())).collect();
    let origins: IndexSet<&str> = rules.iter().map(|rule| rule.0).collect();
    let number = |name: &str| origins.get_index_of(name).map(|at| at as u32);
    // what is no rule either is never derived
    let symbol = |name: &str| number(name).map_or(Symbol::Terminal(0), Symbol::Rule);
    let expansions: Vec<(u32, Vec<Symbol>)> = rules
        .iter()
        .filter_map(|(origin, body)| {
            let needs = body.iter().filter(|name| !known.contains(*name));
            Some((number(origin)?, needs.map(|name| symbol(name)).collect()))
        })
        .collect();
    let (costs, _) = shortest(vec![NEVER; origins.len()], |_| NEVER, &expansions);
    // of each rule one symbol of an expansion that is waited for
    let mut needs: IndexMap<u32, u32> = IndexMap::new();
    for (origin, body) in expansions.iter().filter(|e| costs[e.0 as usize] >= NEVER) {
        let lacking = body.iter().find_map(|symbol| match symbol {
            Symbol::Rule(rule) if costs[*rule as usize] >= NEVER => Some(*rule),
            _ => None,
        });
        if let Some(rule) = lacking {
            needs.entry(*origin).or_insert(rule);
        }
    }
    // along what each needs, until a rule comes back
    let mut path: IndexSet<u32> = IndexSet::new();
    let mut rule = *needs.keys().next()?;
    while path.insert(rule) {
        rule = *needs.get(&rule)?;
    }
    let circle = path.get_index_of(&rule)?;
    origins.get_index(*path.iter().skip(circle).min()? as usize).copied()
}
