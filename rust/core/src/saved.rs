//! Grammars as bytes, so that a host without the frontends loads what they have read.
//!
//! The bytes are the grammar's source: a mark and a version, then texts with their lengths, then a sum over all of
//! that. Loading builds the grammar from its source, under the same checks and limits as any other.
//! Invariant: whatever the bytes are, loading gives a grammar or an error; a grammar's bytes give the same grammar.
//! Rejected: the built automata (a hundred times the size, and nothing in them could be checked).
//!
//! ```
//! use tokenform_core::Grammar;
//!
//! let bytes = Grammar::regex("a|b")?.to_bytes();
//! assert_eq!(Grammar::from_bytes(&bytes)?.to_bytes(), bytes);
//! assert!(Grammar::from_bytes(&bytes[1..]).is_err());
//! # Ok::<(), tokenform_core::Error>(())
//! ```

use crate::error::{Error, Kind, Result};
use crate::grammar::Grammar;
use crate::regex::Dialect;
use crate::schema::options::Options;
use crate::source::Source;

const MARK: &[u8] = b"tokenform grammar\n";
const VERSION: u32 = 1;
/// Bytes of the sum at the end.
const SUM: usize = 8;

/// A source as plain texts: its kind, its texts, and for schemas the options, the registry and the texts to avoid.
type SourceParts = (&'static str, Vec<String>, [Vec<String>; 3]);

impl Source {
    /// What it is made of, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Source::Schema { .. } => "schema",
            Source::Regex { dialect, .. } => dialect.name(),
            Source::Choice(_) => "choice",
            Source::ContextFree(_) => "context_free",
            Source::Gbnf(..) => "gbnf",
            Source::Composite(..) | Source::Branched { .. } => "composite",
        }
    }

    fn parts(&self) -> SourceParts {
        let plain = |texts: &[&String]| {
            (self.kind(), texts.iter().map(|t| t.to_string()).collect(), Default::default())
        };
        match self {
            Source::Schema { text, options } => {
                let names = options.names().into_iter().flat_map(|(name, value)| [name.into(), value]);
                let registry = options.registry.iter().flat_map(|(uri, text)| [uri.clone(), text.clone()]);
                let more = [names.collect(), registry.collect(), options.without.clone()];
                (self.kind(), vec![text.clone()], more)
            }
            Source::Branched { name, .. } => plain(&[&self.to_form().to_string(), name]),
            Source::Choice(words) => (self.kind(), words.clone(), Default::default()),
            Source::Regex { pattern: text, .. } | Source::ContextFree(text) => plain(&[text]),
            Source::Gbnf(text, name) | Source::Composite(text, name) => plain(&[text, name]),
        }
    }

    fn of_parts(kind: &str, mut texts: Vec<String>, more: [Vec<String>; 3]) -> Result<Self> {
        if kind == "choice" {
            return Ok(Source::Choice(texts));
        }
        let second = if texts.len() == 2 { texts.pop() } else { None };
        let (Some(first), None) = (texts.pop(), texts.pop()) else {
            return Err(damaged("texts are missing"));
        };
        match (kind, second) {
            ("schema", None) => {
                let [names, registry, without] = more;
                let pairs = |texts: Vec<String>| -> Vec<(String, String)> {
                    texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
                };
                let mut options = Options { registry: pairs(registry), without, ..Options::default() };
                pairs(names).iter().try_for_each(|(name, value)| options.set(name, value))?;
                Ok(Source::Schema { text: first, options })
            }
            ("context_free", None) => Ok(Source::ContextFree(first)),
            ("gbnf", Some(start)) => Ok(Source::Gbnf(first, start)),
            ("composite", Some(name)) => Ok(Source::Composite(first, name)),
            (name, None) => match Dialect::named(name) {
                Some(dialect) => Ok(Source::Regex { pattern: first, dialect }),
                None => Err(damaged("the kind of grammar is not known")),
            },
            _ => Err(damaged("the kind of grammar is not known")),
        }
    }
}

impl Grammar {
    /// The grammar as bytes, for [`Grammar::from_bytes`] of this version and later ones.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, texts, more) = self.source().parts();
        let mut out = MARK.to_vec();
        number(&mut out, VERSION as usize);
        text(&mut out, kind);
        for list in std::iter::once(&texts).chain(&more) {
            number(&mut out, list.len());
            list.iter().for_each(|t| text(&mut out, t));
        }
        let sum = sum_of(&out);
        out.extend(sum.to_le_bytes());
        out
    }

    /// The grammar whose bytes these are.
    ///
    /// # Errors
    /// [`Kind::InvalidGrammar`]: they are not, or of a later version; else as [`Grammar::new`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let body = bytes.strip_prefix(MARK).ok_or_else(|| damaged("they do not begin as such"))?;
        let (version, _) = body.split_first_chunk().ok_or_else(|| damaged("the end is missing"))?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            let message =
                format!("the bytes of the grammar have the version {version}; this library reads {VERSION}");
            return Err(Error::new(Kind::InvalidGrammar, message));
        }
        let (said, sum) = bytes.split_last_chunk::<SUM>().ok_or_else(|| damaged("the end is missing"))?;
        if u64::from_le_bytes(*sum) != sum_of(said) {
            return Err(damaged("the sum at their end differs"));
        }
        let mut reader = Reader(&said[MARK.len() + 4..]);
        let kind = reader.text()?;
        let texts = reader.texts()?;
        let more = [reader.texts()?, reader.texts()?, reader.texts()?];
        if !reader.0.is_empty() {
            return Err(damaged("something follows after the end"));
        }
        Grammar::new(Source::of_parts(&kind, texts, more)?)
    }
}

fn damaged(why: &str) -> Error {
    Error::new(Kind::InvalidGrammar, format!("these are not the bytes of a grammar: {why}"))
}

fn number(out: &mut Vec<u8>, n: usize) {
    // a text of 4 GiB is refused long before it is a grammar
    out.extend(u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes());
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len());
    out.extend(text.as_bytes());
}

/// FNV-1a: against damage, not against malice; the reader checks everything again.
fn sum_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &b| (sum ^ b as u64).wrapping_mul(0x0100_0000_01b3))
}

/// What is left of the bytes.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Result<usize> {
        let (number, rest) = self.0.split_first_chunk().ok_or_else(|| damaged("the end is missing"))?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*number) as usize)
    }

    fn text(&mut self) -> Result<String> {
        let length = self.number()?;
        let (text, rest) = self.0.split_at_checked(length).ok_or_else(|| damaged("the end is missing"))?;
        self.0 = rest;
        String::from_utf8(text.into()).map_err(|_| damaged("a text is not UTF-8"))
    }

    fn texts(&mut self) -> Result<Vec<String>> {
        let count = self.number()?;
        // each text needs its length: nothing is reserved for what is not there
        if count > self.0.len() / 4 {
            return Err(damaged("the end is missing"));
        }
        (0..count).map(|_| self.text()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Vec<Source> {
        let mut options = Options::default();
        options.set("order", "any").unwrap();
        options.registry.push(("urn:a".into(), r#"{"type": "null"}"#.into()));
        vec![
            Source::Schema { text: r#"{"$ref": "urn:a"}"#.into(), options },
            Source::Regex { pattern: "é+".into(), dialect: Dialect::Python },
            Source::Regex { pattern: "a".into(), dialect: Dialect::Ecma },
            Source::Choice(vec!["".into(), "b".into()]),
            Source::Gbnf("top ::= \"a\" top?".into(), "top".into()),
            Source::Composite(r#"{"language": {"words": ["x"]}}"#.into(), "the words".into()),
        ]
    }

    #[test]
    fn what_was_saved_is_loaded() {
        for source in sources() {
            let bytes = Grammar::new(source.clone()).unwrap().to_bytes();
            assert_eq!(*Grammar::from_bytes(&bytes).unwrap().source(), source);
        }
    }

    #[test]
    fn damage_is_seen_and_malice_is_only_read() {
        for source in sources() {
            let bytes = Grammar::new(source).unwrap().to_bytes();
            for at in 0..bytes.len() {
                assert!(Grammar::from_bytes(&bytes[..at]).is_err());
                for change in [1, 0x80, 0xff] {
                    let mut other = bytes.clone();
                    other[at] ^= change;
                    assert!(Grammar::from_bytes(&other).is_err(), "{at}");
                    // with a sum that fits: an error or a grammar, whose bytes these are
                    let body = other.len() - SUM;
                    let sum = sum_of(&other[..body]);
                    other[body..].copy_from_slice(&sum.to_le_bytes());
                    if let Ok(grammar) = Grammar::from_bytes(&other) {
                        assert!(Grammar::from_bytes(&grammar.to_bytes()).is_ok());
                    }
                }
            }
        }
    }
}
