//! What a reference keyword leads to, and where dynamic references lead on a path through the schema.
//!
//! Invariant: a reference leads to a schema of the text or of the registry, or is refused with its place.
//! Complexity: a look by URI and name; a pointer costs its length.

use url::Url;

use super::document::{Json, JsonNodeId};
use super::resolve::without_fragment;
use super::Schema;
use crate::error::{Error, Kind, Result};

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
        let scope = &self.scopes.all[self.scopes.current as usize];
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
