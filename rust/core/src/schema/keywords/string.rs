//! `minLength`, `maxLength`, `pattern`, `format`: languages over code points.

use super::Parts;
use crate::error::{Error, Kind, Result};
use crate::lexical::number::Decimal;
use crate::lexical::term::INF;
use crate::lexical::TermId;
use crate::regex::{self, Dialect, RegexErrorKind};
use crate::schema::document::{Json, JsonNodeId};
use crate::schema::{Schema, MARK};

pub(super) fn apply(schema: &mut Schema, parts: &mut Parts, keyword: &str, at: JsonNodeId) -> Result<()> {
    let terms = &mut schema.lexicon.terms;
    let term = match (keyword, schema.doc.get(at)) {
        ("pattern", Json::String(pattern)) => {
            let pattern = pattern.clone();
            match schema.pattern(&pattern)? {
                Some(term) => term,
                None => return Ok(()),
            }
        }
        ("format", Json::String(name)) => {
            let name = name.clone();
            match schema.format_term(&name) {
                Some(term) if schema.options.formats || name.starts_with(MARK) => term,
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
    parts.strings.push(term);
    Ok(())
}

impl Schema {
    /// The texts in which an ECMA-262 pattern is found; `None` when it is not supported and only reported.
    pub(crate) fn pattern(&mut self, pattern: &str) -> Result<Option<TermId>> {
        if let Some(&term) = self.patterns.terms.get(pattern) {
            return Ok(Some(term));
        }
        if !self.check_pattern(pattern)? {
            return Ok(None);
        }
        let term = self.lexicon.terms.lower(&self.patterns.parsed[pattern]);
        self.patterns.terms.insert(pattern.into(), term);
        Ok(Some(term))
    }

    /// Whether a pattern is read and enforced; what it means to the lexicon is found when a value is compiled.
    pub(crate) fn check_pattern(&mut self, pattern: &str) -> Result<bool> {
        if self.patterns.parsed.contains_key(pattern) {
            return Ok(true);
        }
        match regex::parse(pattern, Dialect::Ecma) {
            Ok(lang) => {
                self.patterns.parsed.insert(pattern.into(), lang);
                Ok(true)
            }
            Err(e) => {
                let kind = match e.kind {
                    RegexErrorKind::Invalid => Kind::InvalidSchema,
                    RegexErrorKind::Unsupported => Kind::UnsupportedSchema,
                    RegexErrorKind::Limit => Kind::LimitExceeded,
                };
                let message = format!("the pattern {}: {}", quoted(pattern), e.message);
                if kind == Kind::UnsupportedSchema && self.options.report_unsupported {
                    self.note(format!("ignored: {message}"));
                    return Ok(false);
                }
                Err(Error::new(kind, message).column(e.column))
            }
        }
    }

    pub(crate) fn note(&mut self, line: String) {
        if !self.report.contains(&line) {
            self.report.push(line);
        }
    }

    fn format_term(&mut self, name: &str) -> Option<TermId> {
        if let Some(&known) = self.patterns.formats.get(name) {
            return known;
        }
        let term = regex::format(name).map(|lang| self.lexicon.terms.lower(lang));
        self.patterns.formats.insert(name.into(), term);
        term
    }

    /// An unknown format is ignored and reported, or refused, as the caller chose.
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
        let place = self.doc.pointer(at);
        self.note(format!("ignored: format {name:?} at {place}"));
        Ok(())
    }
}

fn quoted(pattern: &str) -> String {
    match pattern.char_indices().nth(80) {
        Some((end, _)) => format!("{:?}...", &pattern[..end]),
        None => format!("{pattern:?}"),
    }
}
