//! A text into the arena of nodes, in one pass: `serde_json` reads, nothing is built in between.
//!
//! Short texts are shared: the same few keywords make up most of a schema.
//! Complexity: one allocation for each array, object and new text (43 for the median schema of MaskBench; by way
//! of `serde_json::Value` it was 154, and a first mask meets the allocator with a cold cache).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};

use super::document::{order_of, Document, Entries, Json, JsonNodeId, TooMany};
use crate::error::{self, Error, Kind};
use crate::work;

/// Bytes from which on a text's values are counted: shorter ones have no more than there is room for.
const LARGE: usize = 6 << 20;
/// Steps that a value of such a text costs at least once something is made of it.
const LARGE_VALUE: u64 = 16;
/// Nesting that a schema's text may have.
pub const MAX_DEPTH: usize = 2_000;
/// The key under which `serde_json` hands over the text of a number (its feature `arbitrary_precision`).
const NUMBER: &str = "$serde_json::private::Number";
/// Keys that give a part of a schema a name of its own.
const IDENTIFIERS: [&str; 5] = ["$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"];
/// Bytes up to which equal texts are one, as long as no other takes their place.
const SHORT: usize = 32;
/// Places of texts that were met.
const PLACES: usize = 128;

impl Document {
    /// Reads a text and returns its root.
    pub fn parse(&mut self, text: &str) -> error::Result<JsonNodeId> {
        work::spend(text.len() as u64 / 32);
        check_depth(text)?;
        self.nodes.reserve(text.len() / 16);
        self.parents.reserve(text.len() / 16);
        let (before, most) = (self.nodes.len(), most_values(text.len()));
        self.most = before.saturating_add(most);
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = Parser::new(self).read(&mut reader).and_then(|root| reader.end().map(|()| root));
        if let Ok(root) = read {
            return Ok(root);
        }
        if self.nodes.len() > self.most {
            return Err(too_many_values(most));
        }
        // few texts nest deeper than the reader goes by itself; they, and those that are none, are read on a stack
        // that grows
        self.nodes.truncate(before);
        self.parents.truncate(before);
        self.sorted.retain(|id, _| (id.0 as usize) < before);
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.disable_recursion_limit();
        let read = Parser::new(self).read(serde_stacker::Deserializer::new(&mut reader));
        read.and_then(|root| reader.end().map(|()| root)).map_err(|e| {
            if self.nodes.len() > self.most {
                return too_many_values(most);
            }
            let mut error = Error::new(Kind::InvalidSchema, format!("the schema is not JSON: {e}"));
            (error.line, error.column) = (Some(e.line()), Some(e.column()));
            error
        })
    }
}

pub(super) struct Parser<'d> {
    doc: &'d mut Document,
    shared: Box<[Option<Arc<str>>]>,
    /// Members and items of what is open.
    members: Vec<(Arc<str>, JsonNodeId)>,
    items: Vec<JsonNodeId>,
}

impl<'d> Parser<'d> {
    pub fn new(doc: &'d mut Document) -> Self {
        Parser {
            doc,
            shared: vec![None; PLACES].into(),
            members: Vec::with_capacity(32),
            items: Vec::with_capacity(16),
        }
    }

    /// Reads the value that a deserializer is at.
    pub fn read<'de, D: serde::Deserializer<'de>>(mut self, from: D) -> Result<JsonNodeId, D::Error> {
        ValueReader { parser: &mut self, parent: None }.deserialize(from)
    }

    fn add<E: serde::de::Error>(
        &mut self,
        node: Json,
        parent: Option<(JsonNodeId, u32)>,
    ) -> Result<JsonNodeId, E> {
        self.doc.add(node, parent).map_err(|TooMany| E::custom("too many values"))
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        let bytes = text.as_bytes();
        let [first, .., last] = *bytes else { return text.into() };
        if bytes.len() > SHORT {
            return text.into();
        }
        let middle = bytes[bytes.len() / 2];
        let place = bytes.len() + 31 * first as usize + 7 * last as usize + 13 * middle as usize;
        match &mut self.shared[place % PLACES] {
            Some(known) if **known == *text => known.clone(),
            place => {
                self.doc.identified |= IDENTIFIERS.contains(&text);
                let new: Arc<str> = text.into();
                *place = Some(new.clone());
                new
            }
        }
    }

    /// The members from `start` on as an object: of equal keys, the place of the first and the value of the last.
    fn close(&mut self, id: JsonNodeId, start: usize) -> Json {
        let mut order = order_of(&self.members[start..]);
        if has_duplicates(&self.members[start..], order.as_deref()) {
            let kept: IndexMap<Arc<str>, JsonNodeId> = self.members.drain(start..).collect();
            for (i, (key, value)) in (0..).zip(kept) {
                self.doc.move_to(value, (id, i));
                self.members.push((key, value));
            }
            order = order_of(&self.members[start..]);
        }
        self.doc.set_order(id, order);
        let entries: Entries = self.members.drain(start..).collect();
        Json::Object(entries)
    }
}

/// Whether two members have one key; `order`: that of their keys, where they are many.
fn has_duplicates(members: &[(Arc<str>, JsonNodeId)], order: Option<&[u32]>) -> bool {
    match order {
        Some(order) => order.windows(2).any(|two| members[two[0] as usize].0 == members[two[1] as usize].0),
        None => (1..members.len()).any(|i| members[..i].iter().any(|m| m.0 == members[i].0)),
    }
}

/// Where a value is read.
struct ValueReader<'p, 'd> {
    parser: &'p mut Parser<'d>,
    parent: Option<(JsonNodeId, u32)>,
}

impl<'de> DeserializeSeed<'de> for ValueReader<'_, '_> {
    type Value = JsonNodeId;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<JsonNodeId, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueReader<'_, '_> {
    type Value = JsonNodeId;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<JsonNodeId, E> {
        self.parser.add(Json::Null, self.parent)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<JsonNodeId, E> {
        self.parser.add(Json::Bool(value), self.parent)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<JsonNodeId, E> {
        let text = self.parser.text(text);
        self.parser.add(Json::String(text), self.parent)
    }

    // integers that are spelled as Rust would
    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<JsonNodeId, E> {
        let text = self.parser.text(&value.to_string());
        self.parser.add(Json::Number(text), self.parent)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<JsonNodeId, E> {
        let text = self.parser.text(&value.to_string());
        self.parser.add(Json::Number(text), self.parent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonNodeId, A::Error> {
        let ValueReader { parser, parent } = self;
        let id = parser.add(Json::Null, parent)?;
        let start = parser.items.len();
        let mut i = 0;
        while let Some(item) = items.next_element_seed(ValueReader { parser, parent: Some((id, i)) })? {
            parser.items.push(item);
            i += 1;
        }
        let list = parser.items.drain(start..).collect();
        parser.doc.set(id, Json::Array(list));
        Ok(id)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonNodeId, A::Error> {
        let ValueReader { parser, parent } = self;
        let id = parser.add(Json::Null, parent)?;
        let start = parser.members.len();
        let mut i = 0;
        while let Some(key) = map.next_key_seed(KeyReader { parser })? {
            if i == 0 && &*key == NUMBER {
                let text: String = map.next_value()?;
                // a schema may have that key too: what is no number goes no further
                serde_json::Number::from_str(&text).map_err(A::Error::custom)?;
                parser.doc.set(id, Json::Number(text.into()));
                return Ok(id);
            }
            parser.doc.identified |= parent.is_some() && &*key == "$schema";
            let value = map.next_value_seed(ValueReader { parser, parent: Some((id, i)) })?;
            parser.members.push((key, value));
            i = i.checked_add(1).ok_or_else(|| A::Error::custom("an object has too many members"))?;
        }
        let object = parser.close(id, start);
        parser.doc.set(id, object);
        Ok(id)
    }
}

/// A key of an object.
struct KeyReader<'p, 'd> {
    parser: &'p mut Parser<'d>,
}

impl<'de> DeserializeSeed<'de> for KeyReader<'_, '_> {
    type Value = Arc<str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Arc<str>, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyReader<'_, '_> {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(self.parser.text(text))
    }
}

/// The most values of a schema whose text has so many bytes, in the call under way: a long text's are so many that
/// memory has no room for what would be made of more.
pub fn most_values(bytes: usize) -> usize {
    match bytes > LARGE {
        true => (work::allowed() / LARGE_VALUE) as usize,
        false => usize::MAX,
    }
}

/// The refusal of a schema of more values than that.
pub fn too_many_values(most: usize) -> Error {
    Error::limit(format!(
        "the schema has more than {most} values (one for {LARGE_VALUE} steps of Limits.work); leave some out, or \
         raise the limit by set_limits"
    ))
}

/// Refuses nesting beyond the limit before anything recursive sees the text.
fn check_depth(text: &str) -> error::Result<()> {
    // nearly every text has fewer brackets than that, and counting them is quicker: both differ in one bit, and sums
    // of a byte each are what the compiler makes one instruction for 32 of
    let opens = |piece: &[u8]| piece.iter().map(|b| u8::from(b | 0x20 == b'{')).sum::<u8>();
    if text.as_bytes().chunks(255).map(|piece| usize::from(opens(piece))).sum::<usize>() <= MAX_DEPTH {
        return Ok(());
    }
    let (mut depth, mut string, mut escaped) = (0usize, false, false);
    for (i, b) in text.bytes().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' if string => escaped = true,
            b'"' => string = !string,
            b'{' | b'[' if !string => depth += 1,
            b'}' | b']' if !string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(Error::limit(format!(
                "the schema is nested more than {MAX_DEPTH} deep (at byte {i}); move inner parts to $defs"
            )));
        }
    }
    Ok(())
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
    fn the_key_of_numbers_is_no_way_around_them() {
        for text in ["x", "1 2", "", "01", "{}"] {
            let object = format!(r#"{{"{NUMBER}": "{text}"}}"#);
            assert!(Document::default().parse(&object).is_err(), "{object}");
        }
        let longer = format!(r#"{{"{NUMBER}": "1", "a": 2}}"#);
        assert!(Document::default().parse(&longer).is_err());
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
