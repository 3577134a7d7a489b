//! The schema's text as an arena of JSON nodes: numbers instead of references, parents for pointers.
//!
//! Invariant: a number is given once; equal values may have several.  Complexity: linear in the text.
//! Memory: the schema's text, and the values of items that must be remembered.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::lexical::number::Decimal;
use crate::work;

/// The number of a JSON node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JsonNodeId(pub u32);

/// A JSON value; numbers keep their text. Copies share what they hold.
#[derive(Clone, Debug)]
pub enum Json {
    Null,
    Bool(bool),
    Number(Arc<str>),
    String(Arc<str>),
    Array(Arc<[JsonNodeId]>),
    Object(Entries),
}

/// The members of an object.
pub type Entries = Arc<[(Arc<str>, JsonNodeId)]>;

/// Members from which on an object's keys are found by bisection.
const WIDE: usize = 24;

/// All JSON nodes of a schema and of its registry.
#[derive(Default)]
pub struct Document {
    pub(super) nodes: Vec<Json>,
    /// The node that holds each, and its place there.
    pub(super) parents: Vec<Option<(JsonNodeId, u32)>>,
    /// Members of wide objects in the order of their keys.
    pub(super) sorted: FxHashMap<JsonNodeId, Box<[u32]>>,
    /// Whether some text is a key that identifies a schema, or one below a root names its draft.
    pub(super) identified: bool,
    /// Nodes that there may be once the text under way is read.
    pub(super) most: usize,
}

/// A text has more values than it may have; what is read of it so far is of no use.
#[derive(Debug)]
pub(super) struct TooMany;

impl Document {
    /// A new node; the place where it stands.
    pub(super) fn add(
        &mut self,
        node: Json,
        parent: Option<(JsonNodeId, u32)>,
    ) -> std::result::Result<JsonNodeId, TooMany> {
        work::spend(4);
        let id = JsonNodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.parents.push(parent);
        if self.nodes.len() > self.most {
            return Err(TooMany);
        }
        Ok(id)
    }

    pub(super) fn set(&mut self, id: JsonNodeId, node: Json) {
        self.nodes[id.0 as usize] = node;
    }

    pub(super) fn move_to(&mut self, id: JsonNodeId, place: (JsonNodeId, u32)) {
        self.parents[id.0 as usize] = Some(place);
    }

    /// Remembers the order of a wide object's keys.
    pub(super) fn set_order(&mut self, id: JsonNodeId, order: Option<Box<[u32]>>) {
        self.sorted.extend(order.map(|order| (id, order)));
    }

    pub fn get(&self, id: JsonNodeId) -> &Json {
        &self.nodes[id.0 as usize]
    }

    /// Bytes that the nodes hold: of texts those that are usual.
    pub fn bytes(&self) -> usize {
        self.nodes.capacity() * (std::mem::size_of::<Json>() + 12 + 48) + crate::heap_size::map(&self.sorted)
    }

    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub fn key(&self, id: JsonNodeId, key: &str) -> Option<JsonNodeId> {
        let Json::Object(entries) = self.get(id) else { return None };
        match self.sorted.get(&id) {
            None => entries.iter().find(|e| &*e.0 == key).map(|e| e.1),
            Some(order) => {
                let found = order.binary_search_by(|&i| entries[i as usize].0.as_ref().cmp(key)).ok()?;
                Some(entries[order[found] as usize].1)
            }
        }
    }

    pub fn str(&self, id: JsonNodeId) -> Option<&str> {
        match self.get(id) {
            Json::String(s) => Some(s),
            _ => None,
        }
    }

    pub fn entries(&self, id: JsonNodeId) -> &[(Arc<str>, JsonNodeId)] {
        match self.get(id) {
            Json::Object(entries) => entries,
            _ => &[],
        }
    }

    pub fn items(&self, id: JsonNodeId) -> &[JsonNodeId] {
        match self.get(id) {
            Json::Array(items) => items,
            _ => &[],
        }
    }

    pub fn parent(&self, id: JsonNodeId) -> Option<JsonNodeId> {
        self.parents[id.0 as usize].as_ref().map(|p| p.0)
    }

    /// RFC 6901 pointer from the node's document root.
    pub fn pointer(&self, id: JsonNodeId) -> String {
        let mut parts = Vec::new();
        let mut at = id;
        while let Some((parent, place)) = self.parents[at.0 as usize] {
            parts.push(match self.get(parent) {
                Json::Object(entries) => entries[place as usize].0.replace('~', "~0").replace('/', "~1"),
                _ => place.to_string(),
            });
            at = parent;
        }
        parts.iter().rev().map(|p| format!("/{p}")).collect()
    }

    /// The node that a pointer (already percent-decoded) leads to.
    pub fn at_pointer(&self, root: JsonNodeId, pointer: &str) -> Option<JsonNodeId> {
        let mut at = root;
        for part in pointer.split('/').skip(1) {
            let part = match part.contains('~') {
                true => Cow::Owned(part.replace("~1", "/").replace("~0", "~")),
                false => Cow::Borrowed(part),
            };
            at = match self.get(at) {
                Json::Object(_) => self.key(at, &part)?,
                Json::Array(items) => *items.get(part.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(at)
    }

    /// A text that equal values share: numbers by value, keys sorted, no space.
    pub fn canonical(&self, id: JsonNodeId) -> String {
        let mut out = String::new();
        self.write_canonical(id, &mut out);
        work::spend(out.len() as u64 / 16);
        out
    }

    fn write_canonical(&self, id: JsonNodeId, out: &mut String) {
        work::spend(8);
        stacker::maybe_grow(32 << 10, 1 << 20, || match self.get(id) {
            Json::Null => out.push_str("null"),
            Json::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            Json::Number(n) => match Decimal::parse(n) {
                Some(d) => out.push_str(&d.short()),
                None => out.push_str(n),
            },
            Json::String(s) => out.push_str(&serde_json::to_string(&**s).expect("a string")),
            Json::Array(items) => {
                out.push('[');
                for (i, &item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    self.write_canonical(item, out);
                }
                out.push(']');
            }
            Json::Object(entries) => {
                let mut sorted: Vec<&(Arc<str>, JsonNodeId)> = entries.iter().collect();
                sorted.sort();
                out.push('{');
                for (i, (key, value)) in sorted.into_iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    out.push_str(&serde_json::to_string(&**key).expect("a string"));
                    out.push(':');
                    self.write_canonical(*value, out);
                }
                out.push('}');
            }
        })
    }
}

/// The members of a wide object in the order of their keys.
pub(super) fn order_of(members: &[(Arc<str>, JsonNodeId)]) -> Option<Box<[u32]>> {
    if members.len() < WIDE {
        return None;
    }
    let mut order: Box<[u32]> = (0..members.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| members[a as usize].0.cmp(&members[b as usize].0));
    Some(order)
}
