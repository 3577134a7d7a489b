//! The formats of JSON Schema as languages, written from the grammars of their RFCs.
//!
//! In: the name of a format.  Out: a [`Lang`], made once for the process.
//! Data: `formats.ebnf`, a rule for each format and its parts, read by `table`; `computed` has what compares numbers.
//! A format is exact unless the table says where the RFC asks for more than a regular language of moderate size can hold;
//! there the language is a subset, so that whatever is generated is valid.

mod computed;
mod table;

use std::sync::OnceLock;

use super::lang::Lang;

/// Every format that [`format`] knows.
pub const NAMES: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// How many digits times and durations have where their RFC says "one or more": as many as writers write, so
/// that a model does not run on, or any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    Few,
    Any,
}

/// The strings of a format of JSON Schema; `None` for a name that is none. Made once for the process.
pub fn format(name: &str, digits: Digits) -> Option<&'static Lang> {
    static KNOWN: [OnceLock<Lang>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    static ANY: [OnceLock<Lang>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    let place = NAMES.iter().position(|&known| known == name)?;
    let apart = digits == Digits::Any && ["date-time", "time", "duration"].contains(&name);
    let known = if apart { &ANY } else { &KNOWN };
    Some(known[place].get_or_init(|| table::Table::new(digits).rule(NAMES[place], Vec::new())))
}

/// What the language of a format does not check, for a report.
pub fn unchecked(name: &str) -> Option<&'static str> {
    (name == "idn-hostname").then_some("the 63 octets of a label are not counted in Punycode")
}

/// Makes the formats that take long (0.1 s) on a thread of their own, once for the process: no schema's first
/// mask should wait for what all schemas share.
pub fn prepare() {
    static STARTED: std::sync::Once = std::sync::Once::new();
    STARTED.call_once(|| {
        let made = std::thread::Builder::new().name("formats".into()).spawn(|| {
            for name in ["regex", "date-time", "idn-hostname", "ipv4", "uri"] {
                format(name, Digits::Few);
            }
        });
        // without a thread they are made at their first use
        drop(made);
    });
}
