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
use super::table;
use super::Schema;
use crate::error::{Error, Kind, Result};
use crate::hash::{Keyed, KeyedMap};

/// The drafts, by year or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draft {
    D3 = 3,
    D4 = 4,
    D6 = 6,
    D7 = 7,
    D2019 = 2019,
    D2020 = 2020,
}

impl Draft {
    fn of(uri: &str) -> Option<Draft> {
        let known = [
            ("draft-03", Draft::D3),
            ("draft-04", Draft::D4),
            ("draft-06", Draft::D6),
            ("draft-07", Draft::D7),
            ("2019-09", Draft::D2019),
            ("2020-12", Draft::D2020),
        ];
        known.iter().find(|(name, _)| uri.contains(name)).map(|k| k.1)
    }
}

/// Where each dynamic anchor leads on one path through the schema.
type Scope = Box<[(Box<str>, JsonNodeId)]>;

/// The dynamic scopes that were met, and the one in which the schema at hand is read.
pub(crate) struct Scopes {
    /// By number; the anchors of each are sorted by name, and the first has none.
    all: IndexSet<Scope, Keyed>,
    pub now: u32,
}

impl Default for Scopes {
    fn default() -> Self {
        Scopes { all: IndexSet::from_iter([Scope::default()]), now: 0 }
    }
}

/// Where references lead.
pub struct Resolver {
    root: JsonNodeId,
    /// URI (without fragment) to the root of the resource.
    resources: KeyedMap<String, JsonNodeId>,
    /// URI and plain name fragment to the schema.
    anchors: KeyedMap<(String, String), JsonNodeId>,
    dynamic: KeyedMap<String, Vec<JsonNodeId>>,
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
    fn base(&self, doc: &Document, node: JsonNodeId) -> (JsonNodeId, &Url, Draft, bool) {
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

fn without_fragment(uri: &Url) -> String {
    let mut uri = uri.clone();
    uri.set_fragment(None);
    uri.to_string()
}

impl Schema {
    /// The schema that a reference keyword leads to; `None` for a meta-schema that is taken as "any".
    pub(crate) fn reference(
        &self,
        node: JsonNodeId,
        keyword: &str,
        value: JsonNodeId,
    ) -> Result<Option<JsonNodeId>> {
        let text = self.doc.str(value).unwrap_or_default();
        let fail = |message: String, kind: Kind| {
            Err(Error::new(kind, message).at(&self.doc.pointer(value)).keyword(keyword))
        };
        let (own, base, ..) = self.resolver.base(&self.doc, node);
        if let Some(target) = self.local_target(own, base, keyword, text) {
            return Ok(Some(target));
        }
        let Ok(uri) = base.join(text) else {
            return fail(format!("{text:?} is not a URI reference"), Kind::InvalidSchema);
        };
        let fragment = percent_decode(uri.fragment().unwrap_or(""));
        let resource = without_fragment(&uri);
        let Some(&root) = self.resolver.resources.get(&resource) else {
            return fail(
                format!(
                    "{text:?} leads to {resource}, which is not part of the schema; pass it in the registry"
                ),
                Kind::UnsupportedSchema,
            );
        };
        let mut target = if fragment.is_empty() {
            Some(root)
        } else if fragment.starts_with('/') {
            self.doc.at_pointer(root, &fragment)
        } else {
            self.resolver.anchors.get(&(resource, fragment.clone())).copied()
        };
        if keyword == "$dynamicRef" || keyword == "$recursiveRef" {
            target = self.dynamic_target(keyword, &fragment, target);
        }
        match target {
            Some(t) if matches!(self.doc.get(t), Json::Object(_) | Json::Bool(_)) => Ok(Some(t)),
            Some(_) => fail(format!("{text:?} leads to something that is not a schema"), Kind::InvalidSchema),
            None => fail(format!("{text:?} leads nowhere in the schema"), Kind::InvalidSchema),
        }
    }

    /// The schema that `#/...` leads to: below the root of its resource, whose URI need not be joined with anything.
    fn local_target(&self, own: JsonNodeId, base: &Url, keyword: &str, text: &str) -> Option<JsonNodeId> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/_-.$~".contains(&b);
        let pointer = text.strip_prefix('#').filter(|p| p.starts_with('/') && p.bytes().all(plain))?;
        let root = match (self.doc.identified, keyword) {
            (false, _) => own,
            // of resources with one URI the last counts
            (true, "$ref") => *self.resolver.resources.get(base.as_str().split('#').next()?)?,
            (true, _) => return None,
        };
        let target = self.doc.at_pointer(root, pointer)?;
        matches!(self.doc.get(target), Json::Object(_) | Json::Bool(_)).then_some(target)
    }

    /// A dynamic reference leads to the outermost resource on the path that has its anchor.
    fn dynamic_target(
        &self,
        keyword: &str,
        fragment: &str,
        target: Option<JsonNodeId>,
    ) -> Option<JsonNodeId> {
        let name = if keyword == "$recursiveRef" { "" } else { fragment };
        let candidates = self.resolver.dynamic.get(name).map_or(&[][..], |v| &v[..]);
        if !target.is_some_and(|t| candidates.contains(&t)) {
            return target;
        }
        let scope = &self.scopes.all[self.scopes.now as usize];
        match scope.binary_search_by(|entry| (*entry.0).cmp(name)) {
            Ok(at) => Some(scope[at].1),
            Err(_) => target,
        }
    }

    /// All places to which a dynamic reference may lead, whatever the path.
    pub(crate) fn dynamic_targets(&self, keyword: &str, value: JsonNodeId) -> Vec<JsonNodeId> {
        let name = match keyword {
            "$recursiveRef" => "",
            "$dynamicRef" => self.doc.str(value).and_then(|v| v.rsplit_once('#')).map_or("", |v| v.1),
            _ => return Vec::new(),
        };
        self.resolver.dynamic.get(name).cloned().unwrap_or_default()
    }

    /// The scope after a schema is entered: anchors of its resource count unless an outer resource has them.
    pub(crate) fn enter(&mut self, scope: u32, node: JsonNodeId) -> u32 {
        if self.resolver.dynamic.values().all(|places| places.len() < 2) {
            return 0;
        }
        let resource = self.resolver.base(&self.doc, node).0;
        let mut entries = self.scopes.all[scope as usize].to_vec();
        for (name, places) in &self.resolver.dynamic {
            let own = places.iter().find(|&&p| self.resolver.base(&self.doc, p).0 == resource);
            if let (Some(&own), Err(at)) =
                (own, entries.binary_search_by(|entry| (*entry.0).cmp(name.as_str())))
            {
                entries.insert(at, (name.as_str().into(), own));
            }
        }
        self.scopes.all.insert_full(entries.into()).0 as u32
    }
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let hex = (bytes[i] == b'%').then(|| text.get(i + 1..i + 3)).flatten();
        match hex.and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                i += 3;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
