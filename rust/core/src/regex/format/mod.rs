//! The formats of JSON Schema as languages, written from the grammars of their RFCs.
//!
//! One family a file; [`abnf`] has the few words they are written in. A format is exact unless its file says
//! where the RFC asks for more than a regular language of moderate size can hold; there the language is
//! a subset, so that whatever is generated is valid.

mod abnf;
mod datetime;
mod idn;
mod internet;
mod misc;
mod pattern;
mod pointer;
mod uri;

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

/// How many digits moments and durations have where their RFC says "one or more": as many as writers write, so that
/// a model does not run on, or any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    Few,
    Any,
}

impl Digits {
    /// One digit or more, `most` where they are few.
    fn up_to(self, most: u32) -> Lang {
        abnf::digit().repeat(1, (self == Digits::Few).then_some(most))
    }
}

/// The strings of a format of JSON Schema; `None` for a name that is none. Made once for the process.
pub fn format(name: &str, digits: Digits) -> Option<&'static Lang> {
    static KNOWN: [OnceLock<Lang>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    static ANY: [OnceLock<Lang>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    let place = NAMES.iter().position(|&known| known == name)?;
    let apart = digits == Digits::Any && ["date-time", "time", "duration"].contains(&name);
    let known = if apart { &ANY } else { &KNOWN };
    Some(known[place].get_or_init(|| build(name, digits)))
}

/// What of a format its language does not check, to be reported.
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
        // without a thread they are made when asked for
        drop(made);
    });
}

fn build(name: &str, digits: Digits) -> Lang {
    match name {
        "date" => datetime::date(),
        "time" => datetime::time(digits),
        "date-time" => datetime::date_time(digits),
        "duration" => misc::duration(digits),
        "email" => internet::email(),
        "idn-email" => internet::idn_email(),
        "hostname" => internet::hostname(),
        "idn-hostname" => idn::hostname(),
        "ipv4" => internet::ipv4(),
        "ipv6" => internet::ipv6(),
        "uri" => uri::uri(),
        "uri-reference" => uri::uri_reference(),
        "iri" => uri::iri(),
        "iri-reference" => uri::iri_reference(),
        "uri-template" => uri::template(),
        "json-pointer" => pointer::absolute(),
        "relative-json-pointer" => pointer::relative(),
        "regex" => pattern::regex(),
        "uuid" => misc::uuid(),
        _ => unreachable!("one of NAMES"),
    }
}
