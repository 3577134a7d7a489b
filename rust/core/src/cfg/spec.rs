//! The neutral form of a grammar: terminals and flat rules by name, as the readers of grammar languages give it.

use serde_json::{json, Value};

use crate::lexical::TermId;

/// One terminal; among matches of one length and priority a literal is preferred to what is not ignored, then the first.
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
        GrammarSpec {
            terminals: value["terminals"].as_array().into_iter().flatten().map(entry).collect(),
            rules: value["rules"].as_array().into_iter().flatten().map(Self::rule).collect(),
            orders: value["orders"].as_array().into_iter().flatten().map(Self::order).collect(),
            ignore: texts(&value["ignore"]),
            declare: texts(&value["declare"]),
            start: value["start"].as_str().unwrap_or("start").to_string(),
            segmented: value["lexer"] == "dynamic",
            ambiguous: value["lexer"] == "longest",
            starts_at_once: value["starts_at_once"] == true,
            indenter: value["indenter"].clone(),
        }
    }

    /// An expansion with the name of its rule.
    pub fn rule(value: &Value) -> (String, Vec<String>) {
        (text(&value["origin"]), texts(&value["expansion"]))
    }

    /// Members in any order.
    pub fn order(value: &Value) -> OrderEntry {
        let member = |e: &Value| (text(&e[0]), e[1] == true);
        let maybe = |e: &Value| e.as_str().map(String::from);
        OrderEntry {
            origin: text(&value["origin"]),
            members: value["members"].as_array().into_iter().flatten().map(member).collect(),
            others: maybe(&value["others"]),
            separator: maybe(&value["separator"]),
        }
    }

    /// Puts a rule `part | nothing` around each of the parts `empty`, and one of nothing in the place of those `at_once`.
    pub fn optional(&mut self, empty: &[&str], at_once: &[&str]) {
        if empty.is_empty() && at_once.is_empty() {
            return;
        }
        let maybe = |name: &str| format!("{name}?");
        for symbol in self.rules.iter_mut().flat_map(|rule| &mut rule.1) {
            if empty.contains(&symbol.as_str()) || at_once.contains(&symbol.as_str()) {
                *symbol = maybe(symbol);
            }
        }
        for name in empty {
            self.rules.push((maybe(name), vec![name.to_string()]));
        }
        for name in empty.iter().chain(at_once) {
            self.rules.push((maybe(name), Vec::new()));
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
