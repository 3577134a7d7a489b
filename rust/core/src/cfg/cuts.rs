//! Is longest match the only way to cut a text into terminals?
//!
//! Invariant: yes, where no terminal ends at a character at which another one that can come at its place ends too, or
//! goes on with what may follow the first. "No" may also mean that the bounds below did not let it be shown.
//! Source: FIRST and FOLLOW of Aho, Sethi, Ullman, section 4.4, over terminals; computed as DeRemer and Pennello,
//! "Efficient computation of LALR(1) look-ahead sets" (1982), compute theirs: one set for each circle of inclusions.
//! Complexity: linear in the grammar, plus the sizes of the different sets and the states of the terminals of each,
//! read together (bounded).
//! Rejected: comparing terminals two by two (5,000 words at one place took 20 s), and a set for each place (the same
//! words in a loop took 6 s and 700 MB).

use rustc_hash::{FxHashMap, FxHashSet};

use super::cycles::components;
use super::grammar::{Grammar, Symbol};
use crate::lexical::term::{intersect_ranges, union_ranges};
use crate::lexical::{TermId, Terms};

/// States of terminals that are read together: for each terminal, for each letter that the grammar spells, and in all.
const READS: usize = 400;
const LETTER_READS: usize = 4;
const ALL_READS: usize = 200_000;

/// Entries of all sets of terminals.
const ENTRIES: usize = 2_000_000;

/// Whether longest match finds the only way to cut each text: the terminals that come at one place are read together,
/// and none ends where another ends or goes on with what may follow it. `letters`: that the grammar spells.
pub fn is_unambiguous(grammar: &Grammar, terms: &mut Terms, letters: usize) -> bool {
    let Some(places) = FollowSets::of(grammar) else { return false };
    let term = |t: u32| grammar.terminals[t as usize].term.unwrap_or(Terms::EMPTY);
    let starts: Vec<Ranges> =
        (0..grammar.terminals.len() as u32).map(|t| alive_ranges(terms, term(t))).collect();
    let begin = |set: &[u32]| {
        union_ranges(&set.iter().flat_map(|&t| starts[t as usize].iter().copied()).collect::<Vec<_>>(), &[])
    };
    let begins: Vec<Ranges> = places.sets.iter().map(|set| begin(set)).collect();
    let follow = |t: u32| &begins[places.behind[t as usize] as usize];
    let mut seen: FxHashSet<TerminalsLeft> = FxHashSet::default();
    let mut todo: Vec<TerminalsLeft> = Vec::new();
    for &set in FxHashSet::from_iter(places.behind.iter().chain([&places.at_start])) {
        let read: TerminalsLeft = places.sets[set as usize].iter().map(|&t| (t, term(t))).collect();
        if seen.insert(read.clone()) {
            todo.push(read);
        }
    }
    let mut left = (READS * starts.len() + LETTER_READS * letters).min(ALL_READS);
    while let Some(read) = todo.pop() {
        let Some(all) = successors(terms, &read) else { return false };
        for next in all {
            if !seen.insert(next.clone()) {
                continue;
            }
            let Some(rest) = left.checked_sub(next.len()) else { return false };
            left = rest;
            if !ends_alone(terms, &next, follow) {
                return false;
            }
            todo.push(next);
        }
    }
    true
}

/// Which terminals may come at a place: sets of them, each once.
struct FollowSets {
    sets: Vec<Box<[u32]>>,
    /// The set behind each terminal.
    behind: Vec<u32>,
    /// The set at the beginning of the text.
    at_start: u32,
}

/// What a set takes in: a terminal, or the set of another node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum SetMember {
    Terminal(u32),
    Node(u32),
}

impl FollowSets {
    /// `None`: the sets are too large.
    fn of(grammar: &Grammar) -> Option<Self> {
        let (rules, terminals) = (grammar.names.len() as u32, grammar.terminals.len() as u32);
        let parts = inclusions(grammar);
        let inner = |node: u32| -> Vec<u32> {
            let nodes = parts[node as usize].iter();
            nodes.filter_map(|p| if let SetMember::Node(v) = p { Some(*v) } else { None }).collect()
        };
        let mut set_of: Vec<u32> = vec![u32::MAX; parts.len()];
        let mut sets: Vec<Box<[u32]>> = Vec::new();
        let mut known: FxHashMap<Vec<SetMember>, u32> = FxHashMap::default();
        let mut left = ENTRIES;
        for circle in components(parts.len(), inner) {
            // nodes of one circle take in each other: they have one set
            let of = |part: &SetMember| match *part {
                SetMember::Node(v) => {
                    Some(set_of[v as usize]).filter(|&set| set != u32::MAX).map(SetMember::Node)
                }
                terminal => Some(terminal),
            };
            let mut key: Vec<SetMember> =
                circle.iter().flat_map(|&v| parts[v as usize].iter().filter_map(of)).collect();
            crate::lists::sort_unique(&mut key);
            let set = match (&key[..], known.get(&key)) {
                ([SetMember::Node(set)], _) | (_, Some(set)) => *set,
                _ => {
                    let set = union(&sets, &key, &mut left)?;
                    sets.push(set);
                    known.insert(key, sets.len() as u32 - 1);
                    sets.len() as u32 - 1
                }
            };
            circle.iter().for_each(|&v| set_of[v as usize] = set);
        }
        let behind = (0..terminals).map(|t| set_of[(2 * rules + t) as usize]).collect();
        Some(FollowSets { sets, behind, at_start: set_of[grammar.start as usize] })
    }
}

/// The set of all parts; nodes are numbers of sets. `None`: more entries than are left.
fn union(sets: &[Box<[u32]>], parts: &[SetMember], left: &mut usize) -> Option<Box<[u32]>> {
    let mut all: Vec<u32> = Vec::new();
    for part in parts {
        let more = match part {
            SetMember::Terminal(t) => std::slice::from_ref(t),
            SetMember::Node(set) => &sets[*set as usize],
        };
        *left = left.checked_sub(more.len())?;
        all.extend(more);
    }
    crate::lists::sort_unique(&mut all);
    Some(all.into())
}

/// What each node's set takes in. Nodes, in this order: the beginning of each rule, what may follow it, what may follow
/// each terminal, and what may follow each symbol of each expansion.
fn inclusions(grammar: &Grammar) -> Vec<Vec<SetMember>> {
    let (rules, terminals) = (grammar.names.len() as u32, grammar.terminals.len() as u32);
    let mut parts: Vec<Vec<SetMember>> = vec![Vec::new(); (2 * rules + terminals) as usize];
    let begin = |symbol: &Symbol| match *symbol {
        Symbol::Terminal(t) => SetMember::Terminal(t),
        Symbol::Rule(r) => SetMember::Node(r),
    };
    let empty = |s: &Symbol| matches!(s, Symbol::Rule(r) if grammar.nullable[*r as usize]);
    for expansion in grammar.by_rule.iter().flatten().map(|&e| &grammar.expansions[e as usize]) {
        let first = parts.len() as u32;
        for (place, symbol) in (first..).zip(expansion.symbols.iter()) {
            let whose = match *symbol {
                Symbol::Terminal(t) => 2 * rules + t,
                Symbol::Rule(r) => rules + r,
            };
            parts[whose as usize].push(SetMember::Node(place));
            parts.push(match expansion.symbols.get((place - first) as usize + 1) {
                None => vec![SetMember::Node(rules + expansion.origin)],
                Some(next) if empty(next) => vec![begin(next), SetMember::Node(place + 1)],
                Some(next) => vec![begin(next)],
            });
        }
        let leading =
            expansion.symbols.iter().position(|s| !empty(s)).map_or(expansion.symbols.len(), |k| k + 1);
        parts[expansion.origin as usize].extend(expansion.symbols[..leading].iter().map(begin));
    }
    parts
}

/// What is left of each terminal that goes on with the text read so far.
type TerminalsLeft = Vec<(u32, TermId)>;
type Ranges = Vec<(u32, u32)>;

/// What the terminals may have become a character later: a sweep over the ends of their runs. `None`: too much.
fn successors(terms: &mut Terms, read: &TerminalsLeft) -> Option<Vec<TerminalsLeft>> {
    let mut runs: Vec<(u32, u32, u32, TermId)> = Vec::new();
    for &(t, term) in read {
        let mut from = 0;
        for run in terms.delta(term).iter() {
            if run.to != Terms::EMPTY {
                runs.push((from, run.end, t, run.to));
            }
            from = run.end.saturating_add(1);
        }
    }
    let mut cuts: Vec<u32> = runs.iter().flat_map(|r| [r.0, r.1.saturating_add(1)]).collect();
    crate::lists::sort_unique(&mut cuts);
    runs.sort_unstable();
    let (mut open, mut out, mut coming) = (TerminalsLeft::new(), Vec::new(), runs.iter().peekable());
    let mut ends: Vec<(u32, u32)> = Vec::new();
    let mut left = ALL_READS;
    for cut in cuts {
        let closed: FxHashSet<u32> = ends.extract_if(.., |e| e.0 < cut).map(|e| e.1).collect();
        open.retain(|o| !closed.contains(&o.0));
        while let Some(run) = coming.next_if(|r| r.0 == cut) {
            open.push((run.2, run.3));
            ends.push((run.1, run.2));
        }
        if !open.is_empty() {
            left = left.checked_sub(open.len())?;
            let mut next = open.clone();
            next.sort_unstable();
            out.push(next);
        }
    }
    crate::lists::sort_unique(&mut out);
    Some(out)
}

/// Whether at most one of the terminals ends here, and what may follow it goes on with none of them.
fn ends_alone<'a>(terms: &mut Terms, read: &TerminalsLeft, follow: impl Fn(u32) -> &'a Ranges) -> bool {
    let mut ended = read.iter().filter(|r| terms.nullable(r.1));
    let Some(&(t, _)) = ended.next() else { return true };
    if ended.next().is_some() {
        return false;
    }
    read.iter().all(|r| intersect_ranges(&alive_ranges(terms, r.1), follow(t)).is_empty())
}

/// The code points that a language goes on with.
fn alive_ranges(terms: &mut Terms, term: TermId) -> Ranges {
    let mut out = Vec::new();
    let mut from = 0;
    for run in terms.delta(term).iter() {
        if run.to != Terms::EMPTY {
            out.push((from, run.end));
        }
        from = run.end + 1;
    }
    union_ranges(&out, &[])
}

#[cfg(test)]
mod tests {
    use super::super::grammar::read;
    use super::super::spec::GrammarSpec;
    use super::*;

    const WORDS: [&str; 6] = ["a", "b", "ab", "ba", "aab", "bb"];

    fn chosen(bits: u32) -> Vec<&'static str> {
        (0..WORDS.len()).filter(|k| bits >> k & 1 == 1).map(|k| WORDS[k]).collect()
    }

    /// Word by word, as the invariant says it: the terminals that come at each place, and those behind each.
    fn by_words(languages: &[Vec<&str>], places: &[Vec<usize>], behind: &[Vec<usize>]) -> bool {
        let follows = |t: usize, c: char| {
            behind[t].iter().any(|&next| languages[next].iter().any(|word| word.starts_with(c)))
        };
        places.iter().all(|place| {
            place.iter().all(|&a| {
                place.iter().all(|&b| {
                    languages[a].iter().all(|u| {
                        languages[b].iter().all(|v| match v.strip_prefix(u).map(|rest| rest.chars().next()) {
                            Some(None) => a == b,
                            Some(Some(next)) => !follows(a, next),
                            None => true,
                        })
                    })
                })
            })
        })
    }

    fn answer(languages: &[Vec<&str>], expansions: &[Vec<&str>]) -> bool {
        let terminals: Vec<_> = (0..languages.len())
            .map(|t| {
                let pattern = languages[t].join("|");
                serde_json::json!({"name": format!("T{t}"), "pattern": pattern, "kind": "re", "flags": "", "priority": 0})
            })
            .collect();
        let rules: Vec<_> = (0..)
            .zip(expansions)
            .map(|(k, e)| serde_json::json!({"origin": "start", "expansion": e, "priority": 0, "order": k}))
            .collect();
        let text = serde_json::json!({"terminals": terminals, "rules": rules, "ignore": [], "declare": [],
            "start": "start", "lexer": "dynamic", "indenter": null, "schemas": {}});
        let (grammar, mut lexicon) = read(GrammarSpec::from_value(&text)).expect("a grammar");
        is_unambiguous(&grammar, &mut lexicon.terms, 0)
    }

    #[test]
    fn terminals_read_together_give_the_answer_of_their_words() {
        let mut found = [0; 2];
        for (first, second) in (1u32..64).flat_map(|x| (1u32..64).map(move |y| (x, y))) {
            let languages = [chosen(first), chosen(second)];
            let looped = by_words(&languages, &[vec![0, 1]], &[vec![0, 1], vec![0, 1]]);
            assert_eq!(
                answer(&languages, &[vec![], vec!["start", "T0"], vec!["start", "T1"]]),
                looped,
                "{languages:?}"
            );
            let joined = by_words(&languages, &[vec![0], vec![1]], &[vec![1], vec![]]);
            assert_eq!(answer(&languages, &[vec!["T0", "T1"]]), joined, "{languages:?}");
            found[0] += looped as usize;
            found[1] += joined as usize;
        }
        assert!(found.iter().all(|&n| n > 20 && n < 3_900), "{found:?}");
    }
}
