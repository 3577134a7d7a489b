//! A text into the arena of nodes, in one pass: nothing is built in between.
//!
//! Short texts are shared: the same few keywords make up most of a schema.
//! Invariant: JSON as RFC 8259 has it; a text with escapes and a number that is more than digits are read by `serde_json`.
//! Complexity: linear; what is open is a list, so that no text is too deep for the stack. One allocation for each array,
//! object and new text (43 for the median schema of MaskBench), since a first mask meets the allocator with a cold cache.
//! Rejected: `serde_json::Value` (154 allocations there); a visitor that `serde_json` drives (a key of its own is no key).

use std::str::FromStr;
use std::sync::Arc;

use indexmap::IndexMap;

use super::document::{Document, Entries, Json, JsonNodeId, MAX_DEPTH};
use crate::error::{Error, Kind, Result};
use crate::hash::KeyedSet;

/// Keys that give a part of a schema a name of its own.
const IDENTIFIERS: [&str; 5] = ["$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"];
/// Bytes up to which equal texts are one.
const SHORT: usize = 32;
/// A one in each byte.
const ONES: u64 = u64::from_ne_bytes([1; 8]);

pub(super) struct Parser<'d, 't> {
    doc: &'d mut Document,
    text: &'t str,
    /// Bytes that were read.
    at: usize,
    shared: KeyedSet<Arc<str>>,
    /// Members and items of what is open.
    members: Vec<(Arc<str>, JsonNodeId)>,
    items: Vec<JsonNodeId>,
    open: Vec<Open>,
}

/// An array or object that has not ended, and where its items or members begin.
#[derive(Clone, Copy)]
struct Open {
    id: JsonNodeId,
    start: usize,
    is_object: bool,
}

impl<'d, 't> Parser<'d, 't> {
    pub fn new(doc: &'d mut Document, text: &'t str) -> Self {
        let shared = KeyedSet::with_capacity_and_hasher(48, Default::default());
        let (members, items, open) = (Vec::with_capacity(32), Vec::with_capacity(16), Vec::with_capacity(16));
        Parser { doc, text, at: 0, shared, members, items, open }
    }

    /// Reads the whole text.
    pub fn read(mut self) -> Result<JsonNodeId> {
        let root = self.value(None)?;
        while let Some(&Open { id, start, is_object }) = self.open.last() {
            let count = if is_object { self.members.len() } else { self.items.len() } - start;
            match self.peek() {
                Some(b'}') if is_object => self.close_object(id, start),
                Some(b']') if !is_object => self.close_array(id, start),
                Some(b',') if count > 0 => {
                    self.at += 1;
                    self.element(id, count, is_object)?;
                }
                _ if count == 0 => self.element(id, count, is_object)?,
                _ => return Err(self.expected(if is_object { "',' or '}'" } else { "',' or ']'" })),
            }
        }
        if self.peek().is_some() {
            return Err(self.expected("the end of the text"));
        }
        self.doc.identified |= IDENTIFIERS.iter().any(|key| self.shared.contains(*key));
        Ok(root)
    }

    /// The byte that comes after blanks.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let blanks = rest.iter().take_while(|b| matches!(b, b' ' | b'\n' | b'\r' | b'\t')).count();
        self.at += blanks;
        rest.get(blanks).copied()
    }

    /// An item or member, the `at`-th of what is open.
    fn element(&mut self, of: JsonNodeId, at: usize, is_object: bool) -> Result<()> {
        let id = JsonNodeId(self.doc.node_count() as u32);
        if is_object {
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key"));
            }
            let key = self.string()?;
            if self.peek() != Some(b':') {
                return Err(self.expected("':'"));
            }
            self.at += 1;
            self.doc.identified |= self.open.len() > 1 && &*key == "$schema";
            self.members.push((key, id));
        } else {
            self.items.push(id);
        }
        self.value(Some((of, at as u32))).map(|_| ())
    }

    /// A value, or the beginning of one that holds others.
    fn value(&mut self, parent: Option<(JsonNodeId, u32)>) -> Result<JsonNodeId> {
        let node = match self.peek() {
            Some(b'"') => Json::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Json::Number(self.number()?),
            Some(b'{' | b'[') if self.open.len() == MAX_DEPTH => {
                return Err(Error::limit(format!(
                    "the schema is nested more than {MAX_DEPTH} deep (at byte {}); move inner parts to $defs",
                    self.at
                )))
            }
            Some(bracket @ (b'{' | b'[')) => {
                self.at += 1;
                let (id, is_object) = (self.doc.add(Json::Null, parent), bracket == b'{');
                let start = if is_object { self.members.len() } else { self.items.len() };
                self.open.push(Open { id, start, is_object });
                return Ok(id);
            }
            _ => {
                let words = [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))];
                let found = words.into_iter().find(|(word, _)| self.text[self.at..].starts_with(word));
                let (word, node) = found.ok_or_else(|| self.expected("a value"))?;
                self.at += word.len();
                node
            }
        };
        Ok(self.doc.add(node, parent))
    }

    /// The text between quotes.
    fn string(&mut self) -> Result<Arc<str>> {
        let (text, from) = (self.text, self.at + 1);
        self.at = from + plain_bytes(&text.as_bytes()[from..]);
        match text.as_bytes().get(self.at) {
            Some(b'"') => {
                self.at += 1;
                Ok(self.share(&text[from..self.at - 1]))
            }
            Some(b'\\') => self.escaped(from - 1),
            _ => Err(self.expected("a character of a string, or '\"',")),
        }
    }

    /// The string that begins at a quote and has escapes.
    fn escaped(&mut self, from: usize) -> Result<Arc<str>> {
        while let Some(&byte) = self.text.as_bytes().get(self.at).filter(|byte| **byte != b'"') {
            self.at += 1 + usize::from(byte == b'\\');
        }
        let quoted = self.text.get(from..=self.at).ok_or_else(|| {
            self.at = self.text.len();
            self.expected("'\"'")
        })?;
        self.at += 1;
        let meant = serde_json::from_str::<String>(quoted).map_err(|e| {
            self.at = from + e.column().saturating_sub(1);
            self.expected("an escape that JSON has")
        })?;
        Ok(self.share(&meant))
    }

    fn number(&mut self) -> Result<Arc<str>> {
        let (text, from) = (self.text, self.at);
        let within = |b: &&u8| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        self.at += text.as_bytes()[from..].iter().take_while(within).count();
        let spelled = &text[from..self.at];
        let digits = spelled.strip_prefix('-').unwrap_or(spelled).as_bytes();
        let is_plain =
            digits.iter().all(u8::is_ascii_digit) && (digits[..] == [b'0'] || digits.first() > Some(&b'0'));
        if is_plain {
            return Ok(self.share(spelled));
        }
        let number = serde_json::Number::from_str(spelled).map_err(|_| {
            self.at = from;
            self.expected("a number as JSON spells it")
        })?;
        Ok(self.share(number.as_str()))
    }

    fn share(&mut self, text: &str) -> Arc<str> {
        if text.len() > SHORT {
            return text.into();
        }
        match self.shared.get(text) {
            Some(known) => known.clone(),
            None => {
                let new: Arc<str> = text.into();
                self.shared.insert(new.clone());
                new
            }
        }
    }

    fn close_array(&mut self, id: JsonNodeId, start: usize) {
        self.at += 1;
        self.open.pop();
        self.doc.set(id, Json::Array(self.items.drain(start..).collect()));
    }

    /// The members from `start` on as an object: of equal keys, the place of the first and the value of the last.
    fn close_object(&mut self, id: JsonNodeId, start: usize) {
        self.at += 1;
        self.open.pop();
        if has_duplicates(&self.members[start..]) {
            let kept: IndexMap<Arc<str>, JsonNodeId> = self.members.drain(start..).collect();
            for (i, (key, value)) in (0..).zip(kept) {
                self.doc.move_to(value, (id, i));
                self.members.push((key, value));
            }
        }
        let entries: Entries = self.members.drain(start..).collect();
        self.doc.sort_keys(id, &entries);
        self.doc.set(id, Json::Object(entries));
    }

    /// The error of a text that goes on in another way.
    fn expected(&self, what: &str) -> Error {
        let before = &self.text.as_bytes()[..self.at.min(self.text.len())];
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let column = before.len() - start + 1;
        let message = format!("the schema is not JSON: {what} is missing at line {line} column {column}");
        let mut error = Error::new(Kind::InvalidSchema, message);
        (error.line, error.column) = (Some(line), Some(column));
        error
    }
}

/// Bytes up to the first that ends a text, begins an escape or may not stand in one.
fn plain_bytes(text: &[u8]) -> usize {
    let is_other = |b: &u8| (*b < b' ') | (*b == b'"') | (*b == b'\\');
    let mut at = 0;
    while let Some(word) = text[at..].first_chunk::<8>() {
        // of each byte the highest bit: of the first that is looked for, and perhaps of some after it
        let word = u64::from_le_bytes(*word);
        let below = |least: u8, word: u64| word.wrapping_sub(ONES * u64::from(least)) & !word & (ONES << 7);
        let is = |byte: u8| below(1, word ^ (ONES * u64::from(byte)));
        let found = below(b' ', word) | is(b'"') | is(b'\\');
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    text[at..].iter().position(is_other).map_or(text.len(), |found| at + found)
}

fn has_duplicates(members: &[(Arc<str>, JsonNodeId)]) -> bool {
    if members.len() > 16 {
        let mut seen = KeyedSet::default();
        return !members.iter().all(|(key, _)| seen.insert(key));
    }
    (1..members.len()).any(|i| members[..i].iter().any(|m| m.0 == members[i].0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut doc = Document::default();
        let root = doc.parse(text).expect("JSON");
        let mut out = String::new();
        write(&doc, root, &mut out);
        out
    }

    /// The nodes as they stand, with the pointer of each leaf.
    fn write(doc: &Document, id: JsonNodeId, out: &mut String) {
        match doc.get(id).clone() {
            Json::Array(items) => items.iter().for_each(|&item| write(doc, item, out)),
            Json::Object(entries) => entries.iter().for_each(|(key, value)| {
                assert_eq!(doc.key(id, key), Some(*value));
                write(doc, *value, out)
            }),
            Json::Number(text) => out.push_str(&format!("{}={text} ", doc.pointer(id))),
            leaf => out.push_str(&format!("{}={leaf:?} ", doc.pointer(id))),
        }
    }

    #[test]
    fn numbers_keep_their_text() {
        let digits = "1".repeat(60);
        let text = format!("[1, -0.50, 1E+400, {digits}.0, {digits}, -7, -0, 18446744073709551616]");
        assert_eq!(
            written(&text),
            format!("/0=1 /1=-0.50 /2=1e+400 /3={digits}.0 /4={digits} /5=-7 /6=-0 /7=18446744073709551616 ")
        );
        assert_eq!(written("12"), "=12 ");
    }

    #[test]
    fn any_key_may_come() {
        assert_eq!(
            written(r#"{"$serde_json::private::Number": "x"}"#).trim(),
            "/$serde_json::private::Number=String(\"x\")"
        );
    }

    /// What `serde_json` makes of a text, written as [`written`] does.
    fn judged(value: &serde_json::Value, pointer: &str, out: &mut String) {
        use serde_json::Value;
        match value {
            Value::Array(items) => {
                (0..).zip(items).for_each(|(i, item): (u32, _)| judged(item, &format!("{pointer}/{i}"), out))
            }
            Value::Object(members) => members.iter().for_each(|(key, value)| {
                let key = key.replace('~', "~0").replace('/', "~1");
                judged(value, &format!("{pointer}/{key}"), out);
            }),
            Value::Null => out.push_str(&format!("{pointer}=Null ")),
            Value::Bool(b) => out.push_str(&format!("{pointer}=Bool({b}) ")),
            Value::Number(n) => out.push_str(&format!("{pointer}={n} ")),
            Value::String(text) => out.push_str(&format!("{pointer}=String({text:?}) ")),
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]
        #[test]
        fn what_serde_json_reads_is_read_alike_and_nothing_else(
            text in "([{}\\[\\],: \n\t]|\"([abé]|[a-z ]{1,40}|\\\\[n\"u/x]|\\\\u(00e9|d83d|dca9))*\"|-?(0|12)(\\.5|\\.)?([eE][+-]?[01])?|true|null|tru|\u{1}){1,12}",
            wrapped in 0..4,
        ) {
            let text = match wrapped {
                0 => text,
                1 => format!("[{text}]"),
                2 => format!("{{\"a\": {text}}}"),
                _ => format!("[{}]", text.split(' ').filter(|t| !t.is_empty()).collect::<Vec<_>>().join(", ")),
            };
            let mut doc = Document::default();
            let found = doc.parse(&text);
            match serde_json::from_str::<serde_json::Value>(&text) {
                Err(_) => proptest::prop_assert!(found.is_err(), "{}", text),
                Ok(value) => {
                    let (mut own, mut theirs) = (String::new(), String::new());
                    write(&doc, found.expect(&text), &mut own);
                    judged(&value, "", &mut theirs);
                    proptest::prop_assert_eq!(own, theirs);
                }
            }
        }
    }

    #[test]
    fn of_equal_keys_the_last_value_stands_in_the_first_place() {
        let text = r#"{"a": [1, {"c": 2}], "b": null, "a": {"b": true, "x": 0}}"#;
        assert_eq!(written(text), "/a/b=Bool(true) /a/x=0 /b=Null ");
        let many: Vec<String> = (0..40).map(|i| format!(r#""k{}": {i}"#, i % 39)).collect();
        let found = written(&format!("{{{}}}", many.join(",")));
        assert!(found.starts_with("/k0=39 /k1=1 ") && found.ends_with("/k38=38 "), "{found}");
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        for (text, line, column) in
            [("{\"a\": }", 1, 7), ("[1,\n2 x", 2, 3), ("1 2", 1, 3), ("{\"a\" 1}", 1, 6)]
        {
            let error = Document::default().parse(text).expect_err(text);
            assert_eq!((error.line, error.column), (Some(line), Some(column)), "{text}");
        }
    }
}
