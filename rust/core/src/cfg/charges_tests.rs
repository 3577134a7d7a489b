//! What reading by a grammar and finding a way to its end is charged: counted, so the same on every machine.

use serde_json::json;

use super::chart::{Chart, ItemSetId};
use super::completion::plan;
use super::grammar::read;
use super::spec::GrammarSpec;
use crate::work;

const PLENTY: u64 = 1_000_000_000;

/// A chart of rules over the letters, each a terminal by its own name.
fn chart(rules: &[(&str, &[&str])], letters: &str) -> Chart {
    let terminals: Vec<_> = letters
        .chars()
        .map(|c| json!({"name": c.to_string(), "pattern": c.to_string(), "literal": c.to_string()}))
        .collect();
    let rules: Vec<_> =
        rules.iter().map(|(origin, body)| json!({"origin": origin, "expansion": body})).collect();
    let value = json!({"terminals": terminals, "rules": rules, "start": "s", "lexer": "dynamic"});
    let (grammar, _) = read(GrammarSpec::from_value(&value)).expect("a grammar");
    Chart::new(grammar)
}

fn spent<T>(call: impl FnOnce() -> T) -> (T, u64) {
    work::run(PLENTY, || (call(), work::spent())).expect("within the limit")
}

fn nested(chart: &mut Chart, levels: usize) -> ItemSetId {
    let start = chart.start();
    (0..levels).fold(start, |set, _| chart.step(set, 0).expect("an opening bracket"))
}

const BRACKETS: [(&str, &[&str]); 5] = [
    ("s", &["(", "s", ")"]),
    ("s", &["t"]),
    ("t", &["t", "+", "s"]),
    ("t", &["x"]),
    ("t", &["(", "t", ")", "y"]),
];

#[test]
fn a_way_is_looked_for_as_far_as_one_is_known() {
    // one way alone: others are looked into as far as they are shorter than the known one
    let rules: [(&str, &[&str]); 2] = [("s", &["(", "s", ")"]), ("s", &["x"])];
    for levels in [50, 500] {
        let mut chart = chart(&rules, "()x");
        let below = nested(&mut chart, levels);
        let (way, first) = spent(|| plan(&mut chart, below, usize::MAX));
        assert_eq!(way.expect("a way").len(), levels + 1);
        let above = chart.step(below, 0).expect("a bracket");
        let (way, again) = spent(|| plan(&mut chart, above, usize::MAX));
        assert_eq!(way.expect("a way").len(), levels + 2);
        // what is left is to write the way out
        assert!(again < 6 * levels as u64 + 300, "{again}");
        assert!(first > again + 2 * levels as u64, "{first} {again}");
        assert!(first < 100 * levels as u64, "{first}");
    }
}

#[test]
fn known_ways_are_as_short_as_those_that_are_looked_for() {
    let grammars: [&[(&str, &[&str])]; 3] = [
        &BRACKETS,
        &[
            ("s", &["(", "u", "s"]),
            ("s", &["u"]),
            ("u", &[]),
            ("u", &["x", "u", "x"]),
            ("u", &["("]),
            ("u", &["s", "+"]),
        ],
        &[
            ("s", &["s", "s"]),
            ("s", &["(", "s", "t", ")"]),
            ("s", &["x"]),
            ("t", &["y", "s"]),
            ("t", &[]),
            ("s", &["(", "t", "y"]),
        ],
    ];
    let mut compared = 0;
    for rules in grammars {
        let mut chart = chart(rules, "()+xy");
        let (mut sets, mut seed) = (vec![chart.start()], 7u32);
        while sets.len() < 300 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let from = sets[(seed >> 8) as usize % sets.len()];
            sets.extend(chart.step(from, seed >> 28 & 7).filter(|_| seed >> 28 & 7 < 5));
            let set = sets[sets.len() - 1];
            let kept = plan(&mut chart, set, usize::MAX).map(|way| way.len());
            let known = std::mem::take(&mut chart.continuations);
            assert_eq!(kept, plan(&mut chart, set, usize::MAX).map(|way| way.len()));
            chart.continuations = known;
            compared += usize::from(kept.is_some_and(|length| length > 3));
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn merging_is_charged_for_each_item() {
    // not `s: s s`, which is read in one way
    let rules: [(&str, &[&str]); 4] =
        [("s", &["t", "t"]), ("s", &["x"]), ("t", &["s"]), ("t", &["s", "x", "s"])];
    let mut chart = chart(&rules, "x");
    let mut set = chart.start();
    for n in 1..60u64 {
        let (next, charged) = spent(|| chart.step(set, 0).expect("a letter"));
        set = next;
        let items = chart.kernel(set).len() as u64;
        assert!(charged >= 2 * items, "{n}: {charged} for {items} items");
        assert!(charged < 400 + 10 * n * n, "{n}: {charged}");
    }
}

#[test]
fn reading_on_where_one_was_costs_nothing_more() {
    let mut chart = chart(&BRACKETS, "()+xy");
    let (below, first) = spent(|| nested(&mut chart, 200));
    let (again, second) = spent(|| nested(&mut chart, 200));
    assert_eq!(below, again);
    assert!(first < 200 * 100, "{first}");
    assert!(second < 20, "{second}");
}
