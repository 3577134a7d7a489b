//! The choices that a caller has, their names and their defaults: the one place that knows them.
//!
//! Every frontend hands options on as pairs of a name and a value ([`Options::set`]); what it says of them in its
//! own signature is compared with [`CHOICES`] by a test.  The defaults take away nothing that a careful writer of
//! JSON would write, and nothing more is taken for the sake of a canonical form: a model that copies a price or
//! indents a document is not driven into another text (`docs/json-schema.md` has the reasons one by one).

use serde_json::Value;

use crate::error::{Error, Kind, Result};
pub use crate::lexical::number::Numbers;
use crate::regex::Dialect;

/// In which order the keys of an object may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// As the schema's text first names them, undeclared keys last.
    Declared,
    /// Any: the law of JSON.
    Any,
}

/// What stands between the lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whitespace {
    /// At each gap what a writer puts there: nothing, a space, or a line break with an indentation.
    Natural,
    /// Nothing.
    Compact,
    /// One space after `,` and `:`, as `json.dumps` writes.
    Spaced,
    /// As `json.dumps(indent=2)` writes.
    Indent,
    /// Whatever JSON allows, in bounded runs.
    Any,
    /// So many whitespace characters in a row at most, one or more.
    AtMost(u8),
}

/// The most whitespace characters that `Whitespace::AtMost` counts; longer runs are `Any`.
const MOST_COUNTED: u8 = 15;

/// The name of `Whitespace::AtMost`.
fn counted(most: u8) -> String {
    format!("at most {most}")
}

/// How the characters of strings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strings {
    /// As writers of JSON write: as they are, with the escapes that JSON demands, those of what is not plain ASCII, and `\/`.
    Natural,
    /// As they are, or by any escape.
    Any,
    /// Only the escapes that JSON demands, in their short form.
    Canonical,
}

/// How documents of a schema may be written, and what is done with what can't be enforced.
///
/// ```
/// use tokenform_core::{Options, Whitespace};
///
/// let options = Options { whitespace: Whitespace::Any, ..Options::default() };
/// assert!(options.formats);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The order of an object's keys.
    pub order: Order,
    /// The whitespace between tokens of JSON.
    pub whitespace: Whitespace,
    /// The spelling of numbers.
    pub numbers: Numbers,
    /// The spelling of strings.
    pub strings: Strings,
    /// Whether `format` is asserted.
    pub formats: bool,
    /// Keys that the schema does not name are forbidden.
    pub forbid_additional: bool,
    /// Keywords that can't be enforced are reported instead of being refused.
    pub report_unsupported: bool,
    /// Keys that look like a keyword and are none are refused instead of being reported.
    pub strict: bool,
    /// How patterns are written where their subschema does not say it.
    pub pattern_dialect: Dialect,
    /// Other documents, by their URI, as JSON texts.
    pub registry: Vec<(String, String)>,
    /// Texts that may not occur in the document as it is written; each holds a character that only strings do.
    pub without: Vec<String>,
}

/// The options that have names and the names of their values, the default first.
pub const CHOICES: [(&str, &[&str]); 8] = [
    ("order", &["declared", "any"]),
    ("whitespace", &["natural", "compact", "spaced", "indent", "any"]),
    ("numbers", &["natural", "shortest", "canonical", "any"]),
    ("strings", &["natural", "canonical", "any"]),
    ("formats", &["assert", "annotate"]),
    ("additional", &["schema", "forbid"]),
    ("unsupported", &["refuse", "report"]),
    ("pattern_dialect", &["auto", "ecma", "python", "rust"]),
];

impl Default for Options {
    fn default() -> Self {
        Options {
            order: Order::Declared,
            whitespace: Whitespace::Natural,
            numbers: Numbers::Natural,
            strings: Strings::Natural,
            formats: true,
            forbid_additional: false,
            report_unsupported: false,
            strict: false,
            pattern_dialect: Dialect::Auto,
            registry: Vec::new(),
            without: Vec::new(),
        }
    }
}

impl Options {
    /// Chooses by the names of an option and of its value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match (name, value) {
            ("pattern_dialect", _) => {
                self.pattern_dialect = Dialect::named(value).ok_or_else(|| unknown(name, value))?;
            }
            ("order", "declared") => self.order = Order::Declared,
            ("order", "any") => self.order = Order::Any,
            ("whitespace", "natural") => self.whitespace = Whitespace::Natural,
            ("whitespace", "compact") => self.whitespace = Whitespace::Compact,
            ("whitespace", "spaced") => self.whitespace = Whitespace::Spaced,
            ("whitespace", "indent") => self.whitespace = Whitespace::Indent,
            ("whitespace", "any") => self.whitespace = Whitespace::Any,
            ("whitespace", _) => {
                let most = (1..=MOST_COUNTED).find(|&most| counted(most) == value);
                self.whitespace = Whitespace::AtMost(most.ok_or_else(|| unknown(name, value))?);
            }
            ("numbers", "natural") => self.numbers = Numbers::Natural,
            ("numbers", "shortest") => self.numbers = Numbers::Shortest,
            ("numbers", "canonical") => self.numbers = Numbers::Canonical,
            ("numbers", "any") => self.numbers = Numbers::Any,
            ("strings", "natural") => self.strings = Strings::Natural,
            ("strings", "any") => self.strings = Strings::Any,
            ("strings", "canonical") => self.strings = Strings::Canonical,
            ("formats", "assert" | "annotate") => self.formats = value == "assert",
            ("additional", "schema" | "forbid") => self.forbid_additional = value == "forbid",
            ("unsupported", "refuse" | "report") => self.report_unsupported = value == "report",
            // a flag: Python writes it with a capital
            ("strict", "true" | "True" | "false" | "False") => self.strict = value.ends_with("rue"),
            _ => return Err(unknown(name, value)),
        }
        Ok(())
    }

    /// The names and values that [`Options::set`] needs to make these of the defaults; registry and texts apart.
    pub fn names(&self) -> Vec<(&'static str, String)> {
        let flags: (&str, &[&str]) = ("strict", &["false", "true"]);
        let same = |name, value| {
            let mut other = self.clone();
            other.set(name, value).is_ok() && other == *self
        };
        let chosen = |(name, values): &(&'static str, &'static [&'static str])| {
            let value = *values.iter().find(|value| same(name, value))?;
            (value != values[0]).then(|| (*name, value.to_string()))
        };
        let white = match self.whitespace {
            Whitespace::AtMost(most) => Some(("whitespace", counted(most))),
            _ => None,
        };
        CHOICES.iter().chain([&flags]).filter_map(chosen).chain(white).collect()
    }

    /// The options of a form: names and values, `registry` as pairs, `without` as a list; what is missing has its
    /// default.
    pub fn read(form: &Value) -> Result<Self> {
        let mut options = Options::default();
        let texts = |v: &Value| -> Vec<String> {
            v.as_array().into_iter().flatten().filter_map(|w| Some(w.as_str()?.into())).collect()
        };
        for (name, value) in form.as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                ("registry", Value::Array(pairs)) => {
                    let pair = |v: &Value| Some((v[0].as_str()?.to_string(), v[1].as_str()?.to_string()));
                    options.registry = pairs.iter().filter_map(pair).collect();
                }
                ("without", Value::Array(_)) => options.without = texts(value),
                (_, Value::String(value)) => options.set(name, value)?,
                (_, Value::Bool(value)) => options.set(name, &value.to_string())?,
                (_, value) => return Err(unknown(name, &value.to_string())),
            }
        }
        Ok(options)
    }
}

fn unknown(name: &str, value: &str) -> Error {
    let quoted = |names: &[&str]| names.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", ");
    let message = match CHOICES.iter().find(|c| c.0 == name) {
        Some((_, values)) => format!("{name}='{value}' is not known; choose one of {}.", quoted(values)),
        None => {
            let names: Vec<&str> = CHOICES.iter().map(|c| c.0).collect();
            format!("there is no option '{name}'; there are {}.", quoted(&names))
        }
    };
    Error::new(Kind::OptionError, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_can_be_set_and_the_first_is_the_default() {
        let mut first = Options::default();
        for (name, values) in CHOICES {
            for value in values {
                let mut options = Options::default();
                options.set(name, value).unwrap();
                let mut again = Options::default();
                options.names().into_iter().for_each(|(name, value)| again.set(name, &value).unwrap());
                assert_eq!(options, again);
            }
            first.set(name, values[0]).unwrap();
            assert!(Options::default().set(name, "nonsense").is_err());
        }
        assert_eq!(format!("{first:?}"), format!("{:?}", Options::default()));
    }
}
