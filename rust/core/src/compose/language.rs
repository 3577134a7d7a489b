//! Regular languages, read from the frontends' forms.

use serde_json::Value;

use crate::error::{Error, Kind, Result};
use crate::lexical::term::INF;
use crate::lexical::{Lexicon, TermId, Terms};
use crate::regex::{parse, Dialect};
use crate::schema::{Options, Schema};

/// A language, and whether no word of it is a proper prefix of another.
pub(super) type Language = (TermId, bool);

fn wrong(value: &Value) -> Error {
    Error::new(Kind::InvalidGrammar, format!("not the form of a language: {value}"))
}

/// Reads `{operator: operands}`.
pub(super) fn read(lexicon: &mut Box<Lexicon>, value: &Value) -> Result<Language> {
    stacker::maybe_grow(64 << 10, 1 << 20, || read_here(lexicon, value))
}

fn read_here(lexicon: &mut Box<Lexicon>, value: &Value) -> Result<Language> {
    let (operator, operand) = value.as_object().and_then(|o| o.iter().next()).ok_or_else(|| wrong(value))?;
    let text = operand.as_str();
    Ok(match (operator.as_str(), text) {
        ("literal", Some(text)) => (lexicon.terms.literal(text), true),
        ("regex", Some(pattern)) => (regex(lexicon, pattern, &value["dialect"])?, false),
        ("string", Some(schema)) => (strings_of(lexicon, schema)?, false),
        ("any", _) => (Terms::ALL, false),
        ("words", _) => {
            let words: Option<Vec<Box<str>>> = operand
                .as_array()
                .map(|list| list.iter().filter_map(|w| w.as_str().map(Into::into)).collect());
            (lexicon.terms.words(words.ok_or_else(|| wrong(value))?), false)
        }
        ("spans", Some(text)) => {
            let chunks: Vec<&str> = text.char_indices().map(|(i, c)| &text[i..i + c.len_utf8()]).collect();
            (lexicon.terms.spans(&chunks), false)
        }
        ("spans", _) => {
            let chunks = operand.as_array().ok_or_else(|| wrong(value))?;
            let chunks: Vec<&str> = chunks.iter().filter_map(|c| c.as_str()).collect();
            (lexicon.terms.spans(&chunks), false)
        }
        ("not", _) => {
            let (term, _) = read(lexicon, operand)?;
            (lexicon.terms.not(term), false)
        }
        ("repeat", _) => {
            let (term, _) = read(lexicon, &operand[0])?;
            let bound = |i: usize| operand[i].as_u64().map(|n| n.min(INF as u64 - 1) as u32);
            (lexicon.terms.repeat(term, bound(1).unwrap_or(0), bound(2).unwrap_or(INF)), false)
        }
        ("or" | "and" | "concat" | "until", _) => {
            let list = operand.as_array().ok_or_else(|| wrong(value))?;
            let list: Vec<Language> = list.iter().map(|v| read(lexicon, v)).collect::<Result<_>>()?;
            let terms: Vec<TermId> = list.iter().map(|l| l.0).collect();
            let closed = list.iter().all(|l| l.1);
            match operator.as_str() {
                "or" => (lexicon.terms.or(&terms), list.len() == 1 && closed),
                "and" => (lexicon.terms.and(&terms), list.iter().any(|l| l.1)),
                "concat" => (lexicon.terms.concat_all(&terms), closed),
                _ => (until(lexicon, &terms).ok_or_else(|| wrong(value))?, true),
            }
        }
        _ => return Err(wrong(value)),
    })
}

/// Texts of the first language, then one of the second, where no text of the second ends earlier.
fn until(lexicon: &mut Lexicon, terms: &[TermId]) -> Option<TermId> {
    let &[before, ends] = terms else { return None };
    let terms = &mut lexicon.terms;
    if let Some(words) = terms.finite_words(ends) {
        let found = terms.find(&words);
        if before == Terms::ALL {
            return Some(found);
        }
        let whole = terms.concat(before, ends);
        return Some(terms.and(&[whole, found]));
    }
    let any = terms.any();
    let earlier = terms.concat_all(&[Terms::ALL, ends, any, Terms::ALL]);
    let (whole, first) = (terms.concat(before, ends), terms.not(earlier));
    Some(terms.and(&[whole, first]))
}

fn regex(lexicon: &mut Lexicon, pattern: &str, dialect: &Value) -> Result<TermId> {
    let dialect = dialect.as_str().and_then(Dialect::named).unwrap_or(Dialect::Python);
    let lang = parse(pattern, dialect).map_err(|e| e.of_pattern(pattern))?;
    Ok(lexicon.terms.lower(&lang))
}

/// The strings that satisfy a schema, as they are, without quotes.
fn strings_of(lexicon: &mut Box<Lexicon>, schema: &str) -> Result<TermId> {
    let mut schema = Schema::with_lexicon(schema, Options::default(), std::mem::take(lexicon), &[])?;
    let root = schema.root()?;
    let term = schema.value(root).str;
    *lexicon = std::mem::take(&mut schema.lexicon);
    Ok(term)
}
