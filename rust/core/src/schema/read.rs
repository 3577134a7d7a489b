//! Reading a schema: its text, its identifiers, the constants of its arenas.  Every keyword that can be reached from the
//! root is checked before anything is built.
//!
//! Invariant: what can't be enforced is refused here, with its place, and never in the middle of a text.
//! Complexity: linear in the schemas that can be reached.

use super::document::{Document, Json, JsonNodeId};
use super::holes::Hole;
use super::resolve::Resolver;
use super::table::{holds, subschemas, Draft, ValueKind, SOME_PATTERNS, TYPES};
use super::{value, Arr, ArrId, Obj, ObjId, Options, Schema, SchemaExpr, ValId, Value};
use crate::error::{Error, Kind, Result};
use crate::lexical::number::Decimal;
use crate::lexical::{Lexicon, TermId, Terms};

use ValueKind::*;

impl Schema {
    /// Reads a schema; keywords that can't be enforced are refused here, before anything is generated.
    pub fn new(text: &str, options: Options) -> Result<Self> {
        Self::with_lexicon(text, options, Box::default(), &[])
    }

    /// The same, with its languages in an arena that holds those of other constraints already, and where the format
    /// `tokenform-mark-i` stands for the strings of the i-th hole.
    pub fn with_lexicon(text: &str, options: Options, lexicon: Box<Lexicon>, holes: &[Hole]) -> Result<Self> {
        let mut doc = Document::default();
        let root = doc.parse(text)?;
        let resolver = Resolver::new(&mut doc, root, &options)?;
        let mut this = Schema {
            doc,
            options,
            lexicon,
            resolver,
            report: Vec::new(),
            arenas: Default::default(),
            compiled: Default::default(),
            patterns: Default::default(),
            answers: Default::default(),
            scopes: Default::default(),
            key_sets: Default::default(),
            remembered: Default::default(),
            holes: Default::default(),
        };
        this.patterns.guard = this.without();
        this.open_holes(holes);
        this.reserve();
        check(&mut this, root)?;
        Ok(this)
    }

    /// The strings in whose spelling none of the texts of `without` occurs.  A text with a quote can only occur
    /// at the end of a string; one with a character that JSON escapes never does.
    fn without(&mut self) -> TermId {
        let terms = &mut self.lexicon.terms;
        let mut parts = Vec::new();
        for text in self.options.without.iter().filter(|t| !t.contains(|c: char| c < ' ' || c == '\\')) {
            let (inside, rest) = text.split_once('"').unwrap_or((text, ""));
            let quoted = inside.len() < text.len();
            if inside.is_empty() || !(rest.is_empty() || rest.starts_with([',', ':', '}', ']', ' '])) {
                continue;
            }
            let word = terms.literal(inside);
            let tail = if quoted { Terms::EPS } else { Terms::ALL };
            let with = terms.concat_all(&[Terms::ALL, word, tail]);
            parts.push(terms.not(with));
        }
        terms.and(&parts)
    }

    /// The constants of every arena.
    fn reserve(&mut self) {
        self.arenas.subs.intern(SchemaExpr::True);
        self.arenas.subs.intern(SchemaExpr::False);
        self.obj(Obj::True);
        self.obj(Obj::False);
        self.arr(Arr::True);
        self.arr(Arr::False);
        self.arenas.lists.intern(Box::new([]));
        let all = self.value_of(Value {
            consts: value::CONSTS,
            num: true,
            set: None,
            str: crate::lexical::Terms::ALL,
            arr: ArrId::TRUE,
            obj: ObjId::TRUE,
        });
        debug_assert_eq!(all, ValId::TRUE);
        let none = self.value_of(Value::none());
        debug_assert_eq!(none, ValId::FALSE);
    }
}

/// Checks every schema that can be reached from the root: types of keywords, patterns, references, formats.
fn check(schema: &mut Schema, root: JsonNodeId) -> Result<()> {
    let mut seen = vec![false; schema.doc.node_count()];
    seen[root.0 as usize] = true;
    let mut stack = vec![root];
    while let Some(node) = stack.pop() {
        let found = match schema.doc.get(node) {
            Json::Bool(_) => continue,
            Json::Object(entries) => entries.clone(),
            _ => {
                return Err(Error::new(Kind::InvalidSchema, "a schema is an object or a boolean")
                    .at(&schema.doc.pointer(node)))
            }
        };
        let draft = schema.resolver.draft(&schema.doc, node);
        let alone = draft < Draft::D2019 && found.iter().any(|e| &*e.0 == "$ref");
        for (keyword, value) in found.iter().map(|e| (&e.0, e.1)) {
            if alone && &**keyword != "$ref" {
                continue;
            }
            let Some(what) = holds(keyword, draft) else {
                schema.check_unknown(node, keyword, value)?;
                continue;
            };
            if keyword.starts_with("unevaluated")
                || what == Pattern && looks_around(doc_text(schema, value))
                || what == PatternMap && schema.doc.entries(value).len() > SOME_PATTERNS
            {
                schema.compiled.eager.push(node);
            }
            check_keyword(schema, node, draft, keyword, what, value)
                .map_err(|e| e.at(&schema.doc.pointer(value)).keyword(keyword))?;
            let mut next = subschemas(&schema.doc, what, value);
            if what == Reference {
                if let Some(target) = schema.reference(node, keyword, value)? {
                    next.push(target);
                }
                next.extend(schema.dynamic_targets(keyword, value));
            }
            next.retain(|n| !std::mem::replace(&mut seen[n.0 as usize], true));
            stack.extend(next);
        }
    }
    schema.check_says_nothing(root)
}

fn doc_text(schema: &Schema, value: JsonNodeId) -> &str {
    schema.doc.str(value).unwrap_or_default()
}

/// Whether a pattern asks for several languages at once: what may be too much to decide is decided when the schema
/// is read, and not in the middle of a text.
fn looks_around(pattern: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| pattern.contains(group))
}

fn check_keyword(
    schema: &mut Schema,
    node: JsonNodeId,
    draft: Draft,
    keyword: &str,
    what: ValueKind,
    value: JsonNodeId,
) -> Result<()> {
    let wrong =
        |expected: &str| Err(Error::new(Kind::InvalidSchema, format!("{keyword:?} must be {expected}")));
    let doc = &schema.doc;
    let json = doc.get(value).clone();
    let is_schema = |id: JsonNodeId| matches!(doc.get(id), Json::Object(_) | Json::Bool(_));
    let is_names = |id: JsonNodeId| match doc.get(id) {
        Json::Array(items) => items.iter().all(|&i| doc.str(i).is_some()),
        _ => false,
    };
    match what {
        Schema if !is_schema(value) => wrong("a schema"),
        Schemas => match &json {
            Json::Array(items) if items.is_empty() && keyword != "prefixItems" => {
                wrong("a list of at least one schema")
            }
            Json::Array(items) if items.iter().all(|&i| is_schema(i)) => Ok(()),
            _ => wrong("a list of schemas"),
        },
        SchemaMap | PatternMap => match &json {
            Json::Object(entries) if entries.iter().all(|e| is_schema(e.1)) => {
                if what == PatternMap {
                    for (pattern, at) in entries.iter() {
                        schema.check_pattern(node, pattern, *at)?;
                    }
                }
                Ok(())
            }
            _ => wrong("an object of schemas"),
        },
        SchemaOrList => match &json {
            Json::Array(items) if draft < Draft::D2020 && items.iter().all(|&i| is_schema(i)) => Ok(()),
            Json::Array(_) if draft >= Draft::D2020 => {
                wrong("a schema (lists of schemas are \"prefixItems\" from 2020-12 on)")
            }
            Json::Object(_) | Json::Bool(_) => Ok(()),
            _ => wrong("a schema or a list of schemas"),
        },
        Dependencies => match &json {
            Json::Object(e) if e.iter().all(|e| is_schema(e.1) || is_names(e.1)) => Ok(()),
            _ => wrong("an object of schemas or lists of names"),
        },
        NamesMap => match &json {
            Json::Object(entries) if entries.iter().all(|e| is_names(e.1)) => Ok(()),
            _ => wrong("an object of lists of names"),
        },
        Names if draft <= Draft::D4 && matches!(json, Json::Bool(_)) => Ok(()),
        Names if matches!(json, Json::Bool(_)) => wrong(
            "a list of names (a flag beside a property is draft 3: list the property in the \"required\" of its object)",
        ),
        Names if !is_names(value) => wrong("a list of names"),
        Number | PositiveNumber => check_number(&json, keyword, what),
        ExclusiveBound if draft <= Draft::D4 => match json {
            Json::Bool(_) => Ok(()),
            _ => wrong("true or false in draft 4"),
        },
        ExclusiveBound if matches!(json, Json::Bool(_)) => {
            if schema.resolver.is_stated(&schema.doc, node) {
                return wrong("a number (a flag only in draft 4)");
            }
            let place = schema.doc.pointer(value);
            schema.note(format!("read: {keyword:?} at {place} as a flag, as OpenAPI 3.0 and draft 4 do"));
            Ok(())
        }
        ExclusiveBound => check_number(&json, keyword, Number),
        Count => match &json {
            Json::Number(n) if Decimal::parse(n).is_some_and(|d| d.to_count().is_some()) => Ok(()),
            _ => wrong("a whole number from 0 on"),
        },
        Flag if !matches!(json, Json::Bool(_)) => wrong("true or false"),
        Text | Reference if doc.str(value).is_none() => wrong("a string"),
        Text => schema.check_format(value),
        Pattern => match json {
            Json::String(pattern) => schema.check_pattern(node, &pattern, value),
            _ => wrong("a regular expression"),
        },
        Type => check_type(schema, value),
        Gone => schema.unsupported(format!("{keyword:?} of draft 3 can't be enforced; {}", instead(keyword))),
        List if !matches!(json, Json::Array(_)) => wrong("a list"),
        _ => Ok(()),
    }
}

/// What is written today for a keyword of draft 3.
fn instead(keyword: &str) -> &'static str {
    match keyword {
        "disallow" => "write \"not\"",
        _ => "write \"allOf\"",
    }
}

fn check_number(json: &Json, keyword: &str, what: ValueKind) -> Result<()> {
    let Json::Number(text) = json else {
        return Err(Error::new(Kind::InvalidSchema, format!("{keyword:?} must be a number")));
    };
    match Decimal::parse(text) {
        None => {
            Err(Error::limit(format!("{keyword:?} has an exponent or a length beyond what is exact here")))
        }
        Some(d) if what == PositiveNumber && !d.is_positive() => {
            Err(Error::new(Kind::InvalidSchema, format!("{keyword:?} must be greater than 0")))
        }
        Some(_) => Ok(()),
    }
}

fn check_type(schema: &Schema, value: JsonNodeId) -> Result<()> {
    let names: Vec<JsonNodeId> = match schema.doc.get(value) {
        Json::Array(items) => items.to_vec(),
        _ => vec![value],
    };
    let bad = names.iter().find(|&&n| !schema.doc.str(n).is_some_and(|s| TYPES.contains(&s)));
    match bad {
        None => Ok(()),
        Some(&n) => Err(Error::new(
            Kind::InvalidSchema,
            format!("{} is not a type; types are {}", schema.doc.canonical(n), TYPES.join(", ")),
        )),
    }
}
