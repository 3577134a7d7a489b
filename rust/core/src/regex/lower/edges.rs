//! The strings of a language that end in, or start with, a character of a set.
//!
//! Structural where that is exact and small, an intersection with `any·set` (`set·any`) elsewhere.

use crate::regex::charset::CharSet;
use crate::regex::lang::Lang;

#[derive(Clone, Copy, PartialEq)]
enum Edge {
    First,
    Last,
}

/// The strings of `lang` whose last character is in `set`.
pub(super) fn ending_in(lang: &Lang, set: &CharSet) -> Lang {
    restrict(lang, set, Edge::Last)
}

/// The strings of `lang` whose first character is in `set`.
pub(super) fn starting_with(lang: &Lang, set: &CharSet) -> Lang {
    restrict(lang, set, Edge::First)
}

fn restrict(lang: &Lang, set: &CharSet, edge: Edge) -> Lang {
    if set.is_empty() {
        return Lang::Empty;
    }
    match lang {
        Lang::Empty | Lang::Epsilon => Lang::Empty,
        Lang::Class(own) => Lang::class(own.intersect(set)),
        Lang::Literal(text) => {
            let c = if edge == Edge::First { text.chars().next() } else { text.chars().next_back() };
            if c.is_some_and(|c| set.contains(c as u32)) {
                lang.clone()
            } else {
                Lang::Empty
            }
        }
        Lang::Or(parts) => Lang::or(parts.iter().map(|part| restrict(part, set, edge))),
        Lang::Concat(parts) => restrict_concat(lang, parts, set, edge),
        Lang::Repeat(inner, low, high) if !inner.nullable() => {
            let rest =
                inner.as_ref().clone().repeat(low.saturating_sub(1), high.map(|high| high.saturating_sub(1)));
            ordered(restrict(inner, set, edge), vec![rest], edge)
        }
        _ if set.is_full() => Lang::and([lang.clone(), Lang::any_char().plus()]),
        _ => meet(lang, set, edge),
    }
}

/// Nullable factors at the edge may be skipped, but only a few: each copies the rest.
fn restrict_concat(lang: &Lang, parts: &[Lang], set: &CharSet, edge: Edge) -> Lang {
    let inward: Vec<&Lang> =
        if edge == Edge::First { parts.iter().collect() } else { parts.iter().rev().collect() };
    let skipped = inward.iter().take_while(|part| part.nullable()).count();
    if skipped > 3 {
        return meet(lang, set, edge);
    }
    let branches = (0..=skipped.min(inward.len() - 1)).map(|i| {
        let rest = inward[i + 1..].iter().map(|part| (*part).clone()).collect();
        ordered(restrict(inward[i], set, edge), rest, edge)
    });
    Lang::or(branches)
}

/// `outer` and then, going inward, `rest`.
fn ordered(outer: Lang, rest: Vec<Lang>, edge: Edge) -> Lang {
    let inward = std::iter::once(outer).chain(rest);
    if edge == Edge::First {
        Lang::concat(inward)
    } else {
        Lang::concat(inward.collect::<Vec<_>>().into_iter().rev())
    }
}

fn meet(lang: &Lang, set: &CharSet, edge: Edge) -> Lang {
    let at_edge = ordered(Lang::class(set.clone()), vec![Lang::any()], edge);
    Lang::and([lang.clone(), at_edge])
}
