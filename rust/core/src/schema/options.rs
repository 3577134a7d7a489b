//! The choices that a caller has.

/// In which order the keys of an object may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the schema's text first names them, undeclared keys last.
    Declared,
    /// Any: the law of JSON.
    Any,
}

/// What stands between the lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whitespace {
    /// Nothing.
    Compact,
    /// One space after `,` and `:`, as `json.dumps` writes.
    Spaced,
    /// As `json.dumps(indent=2)` writes.
    Indent,
    /// Whatever JSON allows, in bounded runs.
    Any,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub order: Order,
    pub whitespace: Whitespace,
    /// Every spelling of numbers, or the canonical one.
    pub numbers_any: bool,
    /// Every escape in strings, or only those that JSON demands.
    pub strings_any: bool,
    /// Whether `format` is asserted.
    pub formats: bool,
    /// Unknown formats are refused instead of being ignored and reported.
    pub refuse_unknown_formats: bool,
    /// Keys that the schema does not name are forbidden.
    pub forbid_additional: bool,
    /// Keywords that can't be enforced are reported instead of being refused.
    pub report_unsupported: bool,
    /// Keys that look like a keyword and are none are refused instead of being reported.
    pub strict: bool,
    /// Other documents, by their URI, as JSON texts.
    pub registry: Vec<(String, String)>,
    /// Texts that may not occur in the document as it is written; each holds a character that only strings do.
    pub without: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            order: Order::Declared,
            whitespace: Whitespace::Spaced,
            numbers_any: false,
            strings_any: false,
            formats: true,
            refuse_unknown_formats: false,
            forbid_additional: false,
            report_unsupported: false,
            strict: false,
            registry: Vec::new(),
            without: Vec::new(),
        }
    }
}
