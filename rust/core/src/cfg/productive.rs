//! Rules that derive no text.
//!
//! Complexity: linear in the symbols (a worklist with one counter for each expansion; Hopcroft, Motwani, Ullman,
//! *Introduction to Automata Theory*, 3rd ed., section 7.4.3).

use crate::hash::{KeyedMap, KeyedSet};
use indexmap::{IndexMap, IndexSet};

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
    // of each rule one symbol of an expansion that is still waited for
    let mut origins: IndexSet<&str> = IndexSet::new();
    let mut expansions: Vec<(&str, KeyedSet<&str>)> = Vec::new();
    for (origin, body) in rules {
        origins.insert(origin);
        expansions.push((origin, body.into_iter().filter(|s| !known.contains(s)).collect()));
    }
    let mut waiting: KeyedMap<&str, Vec<usize>> = KeyedMap::default();
    let mut missing: Vec<usize> = Vec::with_capacity(expansions.len());
    let mut ready: Vec<&str> = Vec::new();
    for (i, (origin, needs)) in expansions.iter().enumerate() {
        missing.push(needs.len());
        if needs.is_empty() {
            ready.push(origin);
        }
        for &symbol in needs {
            waiting.entry(symbol).or_default().push(i);
        }
    }
    let mut productive: KeyedSet<&str> = KeyedSet::default();
    while let Some(name) = ready.pop() {
        if !productive.insert(name) {
            continue;
        }
        for &i in waiting.get(name).into_iter().flatten() {
            missing[i] -= 1;
            if missing[i] == 0 {
                ready.push(expansions[i].0);
            }
        }
    }
    let mut needs: IndexMap<&str, &str> = IndexMap::new();
    for (origin, symbols) in expansions.iter().filter(|e| !productive.contains(e.0)) {
        let lacking = symbols.iter().find(|s| origins.contains(*s) && !productive.contains(*s));
        if let Some(&symbol) = lacking {
            needs.entry(origin).or_insert(symbol);
        }
    }
    // along what each needs, until a rule comes back
    let mut path: IndexSet<&str> = IndexSet::new();
    let mut name = *needs.keys().next()?;
    while path.insert(name) {
        name = needs.get(name)?;
    }
    let circle = path.get_index_of(name)?;
    path.iter().skip(circle).copied().min_by_key(|n| origins.get_index_of(n))
}
