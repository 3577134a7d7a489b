//! The languages of terminals, from their patterns.
//!
//! Complexity: that of the patterns; where one may look past its ends,
//! [`super::context_dependence::context_dependence`] visits its states.

use super::context_dependence::{begins, context_dependence, Ranges, SurveyRefusal};
use super::grammar::{invalid, Terminal};
use super::spec::Entry;
use crate::error::{Error, Kind, Result};
use crate::lexical::term::union_ranges;
use crate::lexical::{TermId, Terms};
use crate::regex::charset::parted;
use crate::regex::context::{Pattern, END};
use crate::regex::{CharSet, Lang, RegexError, RegexErrorKind};
use crate::work;

/// The words of a terminal, and its pattern where that may look past the ends of what it matches.
pub fn read(terms: &mut Terms, entry: &Entry, segmented: bool) -> Result<(TermId, Option<Pattern>)> {
    let Entry { name, pattern, .. } = entry;
    let flags: String = entry.flags.chars().filter(|c| "imsx".contains(*c)).collect();
    let mut looking = None;
    let term = match &entry.literal {
        _ if entry.term.is_some() => entry.term.unwrap_or(Terms::EMPTY),
        Some(literal) if flags.is_empty() => terms.words(vec![literal.as_str().into()]),
        _ => {
            let source = if flags.is_empty() { pattern.clone() } else { format!("(?{flags}){pattern}") };
            let refused = |e: RegexError| refused(name, &format!(" {pattern:?}"), e);
            let pattern = Pattern::parse(&source, !segmented).map_err(refused)?;
            let term = terms.lower(&pattern.alone().map_err(refused)?);
            let looks = pattern.looks();
            looking = (!segmented && (looks.before || looks.behind)).then_some(pattern);
            term
        }
    };
    let term = if terms.nullable(term) {
        if segmented {
            return Err(invalid(format!(
                "The terminal {name} matches the empty text; make the rule that uses it optional"
            )));
        }
        let empty = terms.not(Terms::EPS);
        terms.and(&[term, empty])
    } else {
        term
    };
    let term = if entry.lazy {
        let early = begun_by(terms, term, true);
        let others = terms.not(early);
        terms.and(&[term, others])
    } else {
        term
    };
    let live = work::naming(|| format!("The terminal {name}"), || terms.live(term));
    // what needs it is left out
    Ok((if live { term } else { Terms::EMPTY }, looking))
}

/// The texts that begin with a word of a language; `longer`: and go on.
pub fn begun_by(terms: &mut Terms, words: TermId, longer: bool) -> TermId {
    let any = terms.any();
    let rest = if longer { terms.concat(any, Terms::ALL) } else { Terms::ALL };
    terms.concat(words, rest)
}

fn refused(name: &str, pattern: &str, e: RegexError) -> Error {
    let kind = match e.kind {
        RegexErrorKind::Invalid => Kind::InvalidGrammar,
        RegexErrorKind::Unsupported => Kind::UnsupportedRegex,
        RegexErrorKind::Limit => Kind::LimitExceeded,
    };
    Error::new(kind, format!("The terminal {name}: its pattern{pattern}: {}", e.message)).column(e.column)
}

/// Where constraints stand in each other, or lines in blocks, a lexer knows too little of the text around a lexeme.
pub fn not_followed(name: &str) -> Error {
    let message = format!(
        "The terminal {name} looks past the ends of what it matches, which is not followed where other constraints stand in \
         the grammar or its lines are indented; leave the assertion out, or say in the rules what may stand there"
    );
    Error::new(Kind::UnsupportedRegex, message)
}

/// Gives those of the terminals whose matches hang on the text around them their language there; the sets of characters
/// that they ask for before them.
pub fn look_around(
    terms: &mut Terms,
    terminals: &mut [Terminal],
    looking: &[(usize, Pattern)],
) -> Result<Box<[CharSet]>> {
    let mut sets: Vec<CharSet> = Vec::new();
    for (at, pattern) in looking.iter().filter(|l| l.1.looks().before) {
        sets.extend(pattern.sets_before().map_err(|e| refused(&terminals[*at].name, "", e))?);
    }
    let mut all: Vec<(usize, Vec<TermId>)> = Vec::new();
    for (at, pattern) in looking {
        let own: &[CharSet] = if pattern.looks().before { &sets } else { &[] };
        let langs = pattern.around(own).map_err(|e| refused(&terminals[*at].name, "", e))?;
        all.push((*at, langs.iter().map(|lang| with_text(terms, lang)).collect()));
    }
    let read = terminals.iter().filter_map(|t| t.term).chain(all.iter().flat_map(|a| a.1.clone()));
    let read: Vec<TermId> = read.filter(|_| !all.is_empty()).collect();
    let first =
        read.into_iter().fold(Ranges::new(), |first, term| union_ranges(&first, &begins(terms, term)));
    let mut before = false;
    for (at, found) in all {
        let terminal = &mut terminals[at];
        let mut least: Option<u64> = None;
        let mut depends = found.iter().any(|&term| term != found[0]);
        for &term in &found {
            let seen = work::naming(
                || format!("The terminal {}", terminal.name),
                || context_dependence(terms, term, &first),
            )
            .map_err(|why| too_far(&terminal.name, &why))?;
            depends |= seen.depends;
            least = least.into_iter().chain(seen.least).min();
        }
        if depends {
            before |= found.len() > 1;
            terminal.cost = least.unwrap_or(super::grammar::NEVER);
            let found: Vec<TermId> =
                found.iter().map(|&term| where_text_goes_on(terms, term, &first)).collect();
            terminal.around = Some(found.into());
            // of words without what follows none holds the mark either
            let text = terms.class(&[(0, 0xD7FF), (0xE000, END - 1)]);
            let texts = terms.star(text);
            terminal.term = terminal.term.map(|term| terms.and(&[term, texts])).map(|term| terms.prune(term));
        }
    }
    Ok(if before { parted(&sets).into() } else { Box::default() })
}

/// The characters that terminals begin with.
pub fn begins_of(terms: &mut Terms, terminals: &[Terminal]) -> Ranges {
    let languages: Vec<TermId> = terminals.iter().flat_map(Terminal::languages).collect();
    languages.into_iter().fold(Ranges::new(), |first, term| union_ranges(&first, &begins(terms, term)))
}

/// The language of words, each with what may follow, without the empty one.
fn with_text(terms: &mut Terms, lang: &Lang) -> TermId {
    let words = terms.lower(lang);
    let first = terms.any();
    let end = terms.class(&[(END, END)]);
    let each = terms.or(&[first, end]);
    let rest = terms.star(each);
    let some = terms.concat(first, rest);
    let words = terms.and(&[words, some]);
    terms.prune(words)
}

/// The words of a language behind which the text ends or goes on with one of these characters.
fn where_text_goes_on(terms: &mut Terms, around: TermId, first: &Ranges) -> TermId {
    let text = terms.class(&[(0, 0xD7FF), (0xE000, END - 1)]);
    let word = terms.star(text);
    let end = terms.class(&[(END, END)]);
    let next = terms.class(first);
    let next = terms.concat(next, Terms::ALL);
    let behind = terms.or(&[Terms::EPS, next]);
    let marked = terms.concat(end, behind);
    let possible = terms.concat(word, marked);
    let both = terms.and(&[around, possible]);
    terms.prune(both)
}

fn too_far(name: &str, why: &SurveyRefusal) -> Error {
    let (kind, what) = match why {
        SurveyRefusal::Far => {
            (Kind::UnsupportedRegex, "looks further than one character past the end of what it matches")
        }
        SurveyRefusal::Large => {
            (Kind::LimitExceeded, "looks past the end of what it matches and has too many states")
        }
    };
    Error::new(kind, format!("The terminal {name} {what}; say in the rules what may stand behind it"))
}
