//! References to the official meta-schemas, found in a schema's text before it is read.
//!
//! Invariant: what the pattern `"$ref"\s*:\s*"(https?:\\?/\\?/json-schema\.org\\?/draft[^"#]*)` finds.
//! Complexity: one look for the host's name, and a few bytes around each place that has it.

use std::sync::OnceLock;

use memchr::memmem::Finder;

const HOST: &str = "json-schema.org";
const KEY: &[u8] = b"\"$ref\"";

/// The URIs without fragment, as the text spells them, in its order.
pub fn references(text: &str) -> Vec<&str> {
    static FINDER: OnceLock<Finder<'static>> = OnceLock::new();
    let places = FINDER.get_or_init(|| Finder::new(HOST)).find_iter(text.as_bytes());
    places.filter_map(|at| reference(text, at)).collect()
}

/// The URI whose host's name stands at a place, where it is one of a draft behind `$ref`.
fn reference(text: &str, at: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    let slash = |before| Some(without(strip(before, b"/")?, b"\\"));
    let mut before = strip(slash(slash(&bytes[..at])?)?, b":")?;
    before = strip(without(before, b"s"), b"http")?;
    let from = before.len();
    before = blank(strip(before, b"\"")?);
    strip(blank(strip(before, b":")?), KEY)?;
    let rest = &text[at + HOST.len()..];
    rest.strip_prefix('\\').unwrap_or(rest).strip_prefix("/draft")?;
    let length = rest.find(['"', '#']).unwrap_or(rest.len());
    Some(&text[from..at + HOST.len() + length])
}

fn strip<'t>(text: &'t [u8], end: &[u8]) -> Option<&'t [u8]> {
    text.strip_suffix(end)
}

fn without<'t>(text: &'t [u8], end: &[u8]) -> &'t [u8] {
    text.strip_suffix(end).unwrap_or(text)
}

/// Without the white space of JSON at the end.
fn blank(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|b| !b" \t\n\r".contains(b));
    &text[..end.map_or(0, |at| at + 1)]
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use fancy_regex::Regex;
    use proptest::prelude::*;

    use super::references;

    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r##""\$ref"[ \t\n\r]*:[ \t\n\r]*"(https?:\\?/\\?/json-schema\.org\\?/draft[^"#]*)"##;
        Regex::new(pattern).unwrap()
    });

    fn by_pattern(text: &str) -> Vec<&str> {
        PATTERN.captures_iter(text).map(|found| found.unwrap().get(1).unwrap().as_str()).collect()
    }

    #[test]
    fn references_are_told_from_names() {
        let named = r##"{"$schema": "http://json-schema.org/draft-07/schema#",
            "$ref" : "https:\/\/json-schema.org\/draft/2020-12/schema#/$defs"}"##;
        assert_eq!(references(named), [r"https:\/\/json-schema.org\/draft/2020-12/schema"]);
        assert_eq!(references(named), by_pattern(named));
        assert!(references(r#"{"$ref": "http://json-schema.org/schema"}"#).is_empty());
    }

    proptest! {
        #[test]
        fn they_are_what_the_pattern_finds(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "\"", "\"$ref\"", ":", " ", "\n", "http", "https", "s", "\\", "/", "//", "\\/\\/", "json-schema.org", "/draft", "-07", "#", "é", "\"$ref\": \"http:", "\"$ref\":\"https://json-schema.org/draft",
                ]),
                0..24,
            )
        ) {
            let text = parts.concat();
            prop_assert_eq!(references(&text), by_pattern(&text));
        }
    }
}
