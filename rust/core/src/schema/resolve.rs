//! Drafts, identifiers and references.
//!
//! A *resource* is a document root or a subschema with an `$id`; references are resolved against the URI of the
//! resource that they stand in (RFC 3986, by the `url` crate) and lead to a resource, an anchor in it, or a
//! pointer below it.  Nothing is fetched: other documents come from the registry that the caller passes.

use std::sync::{Arc, OnceLock};

use indexmap::IndexSet;
use rustc_hash::FxHashMap;
use url::Url;

use super::document::{Document, Json, JsonNodeId};
use super::options::Options;
use super::table::{self, Draft};
use crate::error::{Error, Kind, Result};
use crate::hash::{Keyed, KeyedMap};

/// Where each dynamic anchor leads on one path through the schema.
type Scope = Box<[(Box<str>, JsonNodeId)]>;

/// The dynamic scopes that were met, and the one in which the schema at hand is read.
pub(crate) struct Scopes {
    /// By number; the anchors of each are sorted by name, and the first has none.
    pub(super) all: IndexSet<Scope, Keyed>,
    pub current: u32,
}

impl Default for Scopes {
    fn default() -> Self {
        Scopes { all: IndexSet::from_iter([Scope::default()]), current: 0 }
    }
}

/// Where references lead.
pub struct Resolver {
    root: JsonNodeId,
    /// URI (without fragment) to the root of the resource.
    pub(super) resources: KeyedMap<String, JsonNodeId>,
    /// URI and plain name fragment to the schema.
    pub(super) anchors: KeyedMap<(String, String), JsonNodeId>,
    pub(super) dynamic: KeyedMap<String, Vec<JsonNodeId>>,
    /// Root of a resource to its URI, its draft, and whether a `$schema` says that.
    bases: FxHashMap<JsonNodeId, (Arc<Url>, Draft, bool)>,
}

impl Resolver {
    pub fn new(doc: &mut Document, root: JsonNodeId, options: &Options) -> Result<Self> {
        let mut this = Resolver {
            root,
            resources: KeyedMap::default(),
            anchors: KeyedMap::default(),
            dynamic: KeyedMap::default(),
            bases: FxHashMap::default(),
        };
        static BASE: OnceLock<Url> = OnceLock::new();
        let base = BASE.get_or_init(|| Url::parse("schema:///root").expect("a URI"));
        this.scan(doc, root, base.clone(), Draft::D2020);
        for (uri, text) in &options.registry {
            let other = doc.parse(text).map_err(|mut e| {
                e.message = format!("in the registry's {uri:?}: {}", e.message);
                e
            })?;
            let base = Url::parse(uri).map_err(|e| {
                Error::new(Kind::InvalidSchema, format!("{uri:?} in the registry is not a URI: {e}"))
            })?;
            this.scan(doc, other, base, Draft::D2020);
        }
        Ok(this)
    }

    pub fn root(&self) -> JsonNodeId {
        self.root
    }

    /// Collects the identifiers of a document, by an explicit stack; of one without any, the draft alone.
    fn scan(&mut self, doc: &Document, root: JsonNodeId, base: Url, draft: Draft) {
        let base = Arc::new(base);
        self.bases.insert(root, (base.clone(), draft, false));
        self.resources.insert(without_fragment(&base), root);
        let mut stack = vec![(root, base, draft, false)];
        while let Some((node, mut base, mut draft, mut stated)) = stack.pop() {
            if let Some(found) = doc.key(node, "$schema").and_then(|s| doc.str(s)).and_then(Draft::of) {
                (draft, stated) = (found, true);
                if let Some(entry) = self.bases.get_mut(&node) {
                    (entry.1, entry.2) = (draft, stated);
                }
            }
            let id_key = if draft <= Draft::D4 { "id" } else { "$id" };
            let id = doc.key(node, id_key).and_then(|i| doc.str(i));
            let ignored = draft < Draft::D2019 && doc.key(node, "$ref").is_some();
            if let (Some(id), false) = (id, ignored) {
                if let Ok(uri) = base.join(id) {
                    let fragment = uri.fragment().unwrap_or("").to_string();
                    if !fragment.is_empty() {
                        self.anchors.insert((without_fragment(&uri), fragment), node);
                    } else {
                        base = Arc::new(uri);
                        self.resources.insert(without_fragment(&base), node);
                        self.bases.insert(node, (base.clone(), draft, stated));
                    }
                }
            }
            for (key, dynamic) in [("$anchor", false), ("$dynamicAnchor", true)] {
                if let Some(name) = doc.key(node, key).and_then(|a| doc.str(a)) {
                    self.anchors.insert((without_fragment(&base), name.to_string()), node);
                    if dynamic {
                        self.dynamic.entry(name.to_string()).or_default().push(node);
                    }
                }
            }
            if doc.key(node, "$recursiveAnchor").is_some_and(|a| matches!(doc.get(a), Json::Bool(true))) {
                self.dynamic.entry(String::new()).or_default().push(node);
            }
            if doc.identified {
                let children = schema_children(doc, node);
                stack.extend(children.into_iter().map(|child| (child, base.clone(), draft, stated)));
            }
        }
    }

    /// The resource that a node stands in: its root, its URI, its draft, and whether a `$schema` says which.
    pub(super) fn base(&self, doc: &Document, node: JsonNodeId) -> (JsonNodeId, &Url, Draft, bool) {
        // one document, nothing in it has a name: the way up to its root is saved
        let mut at = if self.bases.len() == 1 { self.root } else { node };
        loop {
            if let Some((url, draft, stated)) = self.bases.get(&at) {
                return (at, url, *draft, *stated);
            }
            match doc.parent(at) {
                Some(parent) => at = parent,
                None => {
                    let (url, draft, stated) = &self.bases[&self.root];
                    return (self.root, url, *draft, *stated);
                }
            }
        }
    }

    /// The draft by which a schema is read.  Where no `$schema` says which, that is the newest, but for a schema
    /// that has a list as its `items`: the newest has none, every older one does.
    pub fn draft(&self, doc: &Document, node: JsonNodeId) -> Draft {
        let (_, _, draft, stated) = self.base(doc, node);
        let older = || {
            doc.key(node, "items").is_some_and(|items| matches!(doc.get(items), Json::Array(_)))
                && doc.key(node, "prefixItems").is_none()
                && doc.key(node, "$dynamicRef").is_none()
        };
        if !stated && older() {
            return Draft::D2019;
        }
        draft
    }

    /// Whether a `$schema` says by which draft a schema is read.
    pub fn is_stated(&self, doc: &Document, node: JsonNodeId) -> bool {
        self.base(doc, node).3
    }
}

/// The places below a schema where schemas stand, whatever the draft.
fn schema_children(doc: &Document, node: JsonNodeId) -> Vec<JsonNodeId> {
    let mut out = Vec::new();
    for (key, value) in doc.entries(node) {
        let known = table::DEFINITIONS.contains(&&**key) || table::is_known(key);
        if !known || matches!(&**key, "enum" | "const") {
            continue;
        }
        match doc.get(*value) {
            Json::Object(entries) => match &**key {
                "properties" | "patternProperties" | "dependencies" | "dependentSchemas" | "$defs"
                | "definitions" => out.extend(entries.iter().map(|e| e.1)),
                _ => out.push(*value),
            },
            Json::Array(items) => out.extend(items.iter().copied()),
            _ => {}
        }
    }
    out.retain(|&n| matches!(doc.get(n), Json::Object(_)));
    out
}

pub(super) fn without_fragment(uri: &Url) -> String {
    let mut uri = uri.clone();
    uri.set_fragment(None);
    uri.to_string()
}
