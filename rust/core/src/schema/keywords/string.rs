//! `minLength`, `maxLength`, `pattern`, `format`: languages over code points.

use super::{KeywordSite, Parts};
use crate::error::{Error, Kind, Result};
use crate::lexical::number::Decimal;
use crate::lexical::term::INF;
use crate::lexical::TermId;
use crate::regex;
use crate::regex::format::Digits;
use crate::schema::document::{Json, JsonNodeId};
use crate::schema::options::Numbers;
use crate::schema::{Schema, MARK};

pub(super) fn apply(schema: &mut Schema, site: &KeywordSite, parts: &mut Parts) -> Result<()> {
    let KeywordSite { keyword, at, .. } = *site;
    let terms = &mut schema.lexicon.terms;
    let term = match (keyword, schema.doc.get(at)) {
        ("pattern", Json::String(pattern)) => {
            let pattern = pattern.clone();
            match schema.pattern(site.node, &pattern)? {
                Some(term) => term,
                None => return Ok(()),
            }
        }
        ("format", Json::String(name)) => {
            let name = name.clone();
            match schema.format_term(&name) {
                Some(hole) if name.starts_with(MARK) => {
                    parts.strings.push(hole);
                    return Ok(());
                }
                Some(term) if schema.options.formats => term,
                _ => return Ok(()),
            }
        }
        (_, Json::Number(n)) => {
            let count = Decimal::parse(n).and_then(|d| d.to_count()).expect("checked before");
            let any = terms.any();
            match keyword {
                "minLength" => terms.repeat(any, count, INF),
                _ => terms.repeat(any, 0, count),
            }
        }
        _ => return Ok(()),
    };
    let term = schema.lifted(term);
    parts.strings.push(term);
    Ok(())
}

impl Schema {
    /// A keyword that can't be enforced is refused, or reported where the caller chose that.
    pub(crate) fn unsupported(&mut self, message: String) -> Result<()> {
        if self.options.report_unsupported {
            self.note(format!("ignored: {message}"));
            return Ok(());
        }
        Err(Error::new(Kind::UnsupportedSchema, message))
    }

    pub(crate) fn note(&mut self, line: String) {
        if !self.report.contains(&line) {
            self.report.push(line);
        }
    }

    fn format_term(&mut self, name: &str) -> Option<TermId> {
        memo!(self.patterns.formats, name, name.into(), {
            let digits = match self.options.numbers {
                Numbers::Any => Digits::Any,
                _ => Digits::Few,
            };
            regex::format(name, digits).map(|lang| self.lexicon.terms.lower(lang))
        })
    }

    /// An unknown format is ignored and reported; one that is nearly known as a keyword that is (`misspelled`).
    pub(crate) fn check_format(&mut self, at: JsonNodeId) -> Result<()> {
        let name: Box<str> = self.doc.str(at).unwrap_or_default().into();
        let known = regex::format::NAMES.contains(&&*name)
            || self.patterns.formats.get(&name).is_some_and(Option::is_some);
        if !self.options.formats {
            return Ok(());
        }
        if known {
            if let Some(what) = regex::format::unchecked(&name) {
                let place = self.doc.pointer(at);
                self.note(format!("loosened: format {name:?} at {place}: {what}"));
            }
            return Ok(());
        }
        if !self.check_unknown_format(&name, at)? {
            let place = self.doc.pointer(at);
            self.note(format!("ignored: format {name:?} at {place}"));
        }
        Ok(())
    }
}
