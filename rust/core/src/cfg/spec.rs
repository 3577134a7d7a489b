//! The neutral form of a grammar: terminals and flat rules by name, as the readers of grammar languages give it.

use serde_json::{json, Value};

use crate::lexical::TermId;

/// One terminal; among matches of one length and priority a literal is preferred, then the first.
#[derive(Default)]
pub struct Entry {
    pub name: String,
    /// A regular expression without flags.
    pub pattern: String,
    /// The text itself, where the terminal is one.
    pub literal: Option<String>,
    /// Letters of "imslux".
    pub flags: String,
    pub priority: i64,
    /// It ends where it first can.
    pub lazy: bool,
    /// Its language, where that was read beforehand; the pattern says nothing then.
    pub term: Option<TermId>,
}

/// A rule whose members come in any order, each at most once.
pub struct OrderEntry {
    pub origin: String,
    /// Each with whether it has to come.
    pub members: Vec<(String, bool)>,
    /// What may come besides, anywhere and any number of times.
    pub others: Option<String>,
    /// What stands between two of them.
    pub separator: Option<String>,
}

pub struct GrammarSpec {
    pub terminals: Vec<Entry>,
    /// Expansions, each with the name of its rule.
    pub rules: Vec<(String, Vec<String>)>,
    pub orders: Vec<OrderEntry>,
    /// Terminals that may stand between any two.
    pub ignore: Vec<String>,
    /// Terminals without a pattern.
    pub declare: Vec<String>,
    pub start: String,
    /// Every segmentation of a text counts: there is no lexer.
    pub segmented: bool,
    /// Every terminal of the longest match counts, not the best one alone ([`super::joints`]).
    pub ambiguous: bool,
    /// Nothing that is ignored stands before the first lexeme.
    pub starts_at_once: bool,
    pub indenter: Value,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(String::from)).collect()
}

impl GrammarSpec {
    /// From the frontends' `GrammarStructure`.
    pub fn from_value(value: &Value) -> Self {
        let entry = |e: &Value| Entry {
            name: text(&e["name"]),
            pattern: text(&e["pattern"]),
            literal: e["literal"].as_str().map(String::from),
            flags: text(&e["flags"]),
            priority: e["priority"].as_i64().unwrap_or(0),
            lazy: e["lazy"] == true,
            term: None,
        };
        let member = |e: &Value| (text(&e[0]), e[1] == true);
        let rule = |e: &Value| (text(&e["origin"]), texts(&e["expansion"]));
        let maybe = |e: &Value| e.as_str().map(String::from);
        let order = |e: &Value| OrderEntry {
            origin: text(&e["origin"]),
            members: e["members"].as_array().into_iter().flatten().map(member).collect(),
            others: maybe(&e["others"]),
            separator: maybe(&e["separator"]),
        };
        GrammarSpec {
            terminals: value["terminals"].as_array().into_iter().flatten().map(entry).collect(),
            rules: value["rules"].as_array().into_iter().flatten().map(rule).collect(),
            orders: value["orders"].as_array().into_iter().flatten().map(order).collect(),
            ignore: texts(&value["ignore"]),
            declare: texts(&value["declare"]),
            start: value["start"].as_str().unwrap_or("start").to_string(),
            segmented: value["lexer"] == "dynamic",
            ambiguous: value["lexer"] == "longest",
            starts_at_once: value["starts_at_once"] == true,
            indenter: value["indenter"].clone(),
        }
    }

    /// The frontends' `GrammarStructure`.
    pub fn to_value(&self) -> Value {
        let terminals = self.terminals.iter().map(|t| {
            json!({
                "name": t.name, "pattern": t.pattern, "literal": t.literal, "flags": t.flags,
                "kind": if t.literal.is_some() { "str" } else { "re" }, "priority": t.priority,
            })
        });
        let mut orders: crate::hash::KeyedMap<&str, u32> = Default::default();
        let rules = self.rules.iter().map(|(origin, expansion)| {
            let order = orders.entry(origin).or_default();
            *order += 1;
            json!({"origin": origin, "expansion": expansion, "priority": 0, "order": *order - 1})
        });
        let orders = self.orders.iter().map(|o| {
            json!({"origin": o.origin, "members": o.members, "others": o.others, "separator": o.separator})
        });
        json!({
            "terminals": terminals.collect::<Vec<_>>(), "rules": rules.collect::<Vec<_>>(),
            "orders": orders.collect::<Vec<_>>(), "ignore": self.ignore, "declare": self.declare, "start": self.start,
            "lexer": if self.segmented { "dynamic" } else { "contextual" },
            "indenter": self.indenter, "schemas": {},
        })
    }
}
