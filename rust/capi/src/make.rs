//! Vocabularies, grammars and the automata of both.

use std::ffi::c_char;
use std::sync::Arc;

use serde_json::{json, Value};
use tokenform_core::{Error, Grammar, Kind, Limits, Options, TokenAutomaton, TokenId, Vocabulary};

use crate::call::{call, copy_out, free, give, held, list, text, wrong};

/// The bytes of every token id.
pub struct tokenform_vocabulary(pub(crate) Arc<Vocabulary>);

/// A constraint, before any vocabulary is known.
pub struct tokenform_grammar(Grammar);

/// A constraint over the tokens of a vocabulary, for any number of threads.
pub struct tokenform_automaton(pub(crate) Arc<TokenAutomaton>);

/// What a call may need and an automaton may keep.
#[repr(C)]
pub struct tokenform_limits {
    /// Steps of work that one call may need.
    pub work: u64,
    /// Bytes that an automaton keeps beside what live texts need.
    pub memory: u64,
    /// Nesting of arrays and objects in a document.
    pub depth: u32,
}

/// A vocabulary. `bytes`: those of all tokens one after the other, `lengths` how many each has (0: it stands for no
/// text); `eos` ends a text; `special` is spelled by no text.
///
/// # Safety
/// The arrays have the entries that are said.
#[no_mangle]
pub unsafe extern "C" fn tokenform_vocabulary_new(
    bytes: *const u8,
    lengths: *const u32,
    count: usize,
    eos: *const u32,
    eos_count: usize,
    special: *const u32,
    special_count: usize,
) -> *mut tokenform_vocabulary {
    call(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise
        let (lengths, eos, special) =
            unsafe { (list(lengths, count)?, list(eos, eos_count)?, list(special, special_count)?) };
        let total = lengths.iter().try_fold(0usize, |sum, &n| sum.checked_add(n as usize));
        // SAFETY: the caller's promise
        let mut rest = unsafe { list(bytes, total.ok_or_else(|| wrong("the tokens are too long"))?) }?;
        let tokens = lengths.iter().map(|&n| {
            let (token, after) = rest.split_at(n as usize);
            rest = after;
            token.into()
        });
        let made = Vocabulary::new(tokens.collect(), eos.to_vec(), special)?;
        Ok(give(tokenform_vocabulary(Arc::new(made))))
    })
}

/// # Safety
/// `vocabulary` is NULL or a vocabulary that is not used again.
#[no_mangle]
pub unsafe extern "C" fn tokenform_vocabulary_free(vocabulary: *mut tokenform_vocabulary) {
    // SAFETY: the caller's promise
    unsafe { free(vocabulary) }
}

/// Words of 32 bits that a mask takes, or a negative number.
///
/// # Safety
/// `vocabulary` is a vocabulary.
#[no_mangle]
pub unsafe extern "C" fn tokenform_mask_words(vocabulary: *const tokenform_vocabulary) -> isize {
    // SAFETY: the caller's promise
    call(-1, || Ok(unsafe { held(vocabulary) }?.0.mask_words() as isize))
}

fn grammar(make: impl FnOnce() -> Result<Grammar, Error>) -> *mut tokenform_grammar {
    call(std::ptr::null_mut(), || Ok(give(tokenform_grammar(make()?))))
}

/// The documents of a JSON Schema. `options`: NULL, or a JSON object of the options by name, such as
/// {"order": "any", "whitespace": "compact"}; "registry" is a list of [URI, schema as text].
///
/// # Safety
/// The texts have the bytes that are said.
#[no_mangle]
pub unsafe extern "C" fn tokenform_grammar_json_schema(
    schema: *const c_char,
    length: usize,
    options: *const c_char,
    options_length: usize,
) -> *mut tokenform_grammar {
    grammar(|| {
        // SAFETY: the caller's promise
        let (schema, options) = unsafe { (text(schema, length)?, text(options, options_length)?) };
        let options = match options {
            "" => Options::default(),
            options => Options::read(&object(options)?)?,
        };
        Grammar::json_schema(schema, options)
    })
}

fn object(options: &str) -> Result<Value, Error> {
    let value: Value =
        serde_json::from_str(options).map_err(|e| wrong(&format!("options are no JSON: {e}")))?;
    value.is_object().then_some(value).ok_or_else(|| wrong("options are a JSON object"))
}

/// The texts that a regular expression in Python's dialect matches from end to end.
///
/// # Safety
/// The text has the bytes that are said.
#[no_mangle]
pub unsafe extern "C" fn tokenform_grammar_regex(
    pattern: *const c_char,
    length: usize,
) -> *mut tokenform_grammar {
    // SAFETY: the caller's promise
    grammar(|| Grammar::regex(unsafe { text(pattern, length) }?))
}

/// Just the texts of a JSON array of strings.
///
/// # Safety
/// The text has the bytes that are said.
#[no_mangle]
pub unsafe extern "C" fn tokenform_grammar_choice(
    texts: *const c_char,
    length: usize,
) -> *mut tokenform_grammar {
    grammar(|| {
        // SAFETY: the caller's promise
        let texts = unsafe { text(texts, length) }?;
        let texts: Vec<String> =
            serde_json::from_str(texts).map_err(|_| wrong("choices are a JSON array of strings"))?;
        Grammar::choice(texts)
    })
}

/// The texts of a grammar in GBNF from its rule `start`; NULL: "root".
///
/// # Safety
/// The texts have the bytes that are said.
#[no_mangle]
pub unsafe extern "C" fn tokenform_grammar_gbnf(
    grammar_text: *const c_char,
    length: usize,
    start: *const c_char,
    start_length: usize,
) -> *mut tokenform_grammar {
    grammar(|| {
        // SAFETY: the caller's promise
        let (source, start) = unsafe { (text(grammar_text, length)?, text(start, start_length)?) };
        Grammar::gbnf(source, if start.is_empty() { "root" } else { start })
    })
}

/// The grammar of bytes that Grammar.to_bytes() of the Python package or tokenform_grammar_to_bytes gave: how
/// grammars in Lark's language and tool calls come here.
///
/// # Safety
/// `bytes` has `count` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_grammar_from_bytes(
    bytes: *const u8,
    count: usize,
) -> *mut tokenform_grammar {
    // SAFETY: the caller's promise
    grammar(|| Grammar::from_bytes(unsafe { list(bytes, count) }?))
}

/// Writes the grammar as bytes, as far as there is room; returns how many they are, or a negative number.
///
/// # Safety
/// `grammar` is a grammar, `out` has room for `capacity` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_grammar_to_bytes(
    grammar: *const tokenform_grammar,
    out: *mut u8,
    capacity: usize,
) -> isize {
    // SAFETY: the caller's promise
    call(-1, || unsafe { copy_out(&held(grammar)?.0.to_bytes(), out, capacity) })
}

/// Writes what was ignored, loosened or not proven, a line each, as far as there is room; returns the bytes it has
/// (0: the grammar is exact), or a negative number.
///
/// # Safety
/// `grammar` is a grammar, `out` has room for `capacity` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_grammar_report(
    grammar: *const tokenform_grammar,
    out: *mut c_char,
    capacity: usize,
) -> isize {
    // SAFETY: the caller's promise
    call(-1, || unsafe { copy_out(held(grammar)?.0.report().join("\n").as_bytes(), out.cast(), capacity) })
}

/// # Safety
/// `grammar` is NULL or a grammar that is not used again.
#[no_mangle]
pub unsafe extern "C" fn tokenform_grammar_free(grammar: *mut tokenform_grammar) {
    // SAFETY: the caller's promise
    unsafe { free(grammar) }
}

/// The automaton of a grammar over a vocabulary; lazy, so this is quick. `limits`: NULL for the usual ones.
///
/// # Safety
/// The handles are what they are called; `limits` is NULL or points to limits.
#[no_mangle]
pub unsafe extern "C" fn tokenform_automaton_new(
    grammar: *const tokenform_grammar,
    vocabulary: *const tokenform_vocabulary,
    limits: *const tokenform_limits,
) -> *mut tokenform_automaton {
    call(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise
        let (grammar, vocabulary, limits) = unsafe { (held(grammar)?, held(vocabulary)?, limits.as_ref()) };
        let limits = limits.map_or_else(Limits::default, |l| Limits {
            work: l.work,
            memory: usize::try_from(l.memory).unwrap_or(usize::MAX),
            depth: l.depth,
        });
        Ok(give(tokenform_automaton(grammar.0.compile(vocabulary.0.clone(), limits)?)))
    })
}

/// # Safety
/// `automaton` is NULL or an automaton that is not used again.
#[no_mangle]
pub unsafe extern "C" fn tokenform_automaton_free(automaton: *mut tokenform_automaton) {
    // SAFETY: the caller's promise
    unsafe { free(automaton) }
}

/// Says as JSON what is wrong with a text: "null" where it is accepted, else an object of "offset" (of the first byte that
/// is refused; its length where it may go on but not end), "expected" (a list of words) and "pointer" (where the schema
/// says so, or null). Writes as far as there is room; returns how many bytes it has, or a negative number.
///
/// # Safety
/// `automaton` is an automaton, the text has the bytes that are said, `out` has room for `capacity` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_automaton_check(
    automaton: *const tokenform_automaton,
    document: *const c_char,
    length: usize,
    out: *mut c_char,
    capacity: usize,
) -> isize {
    call(-1, || {
        // SAFETY: the caller's promise
        let (automaton, document) = unsafe { (held(automaton)?, list(document.cast::<u8>(), length)?) };
        let said = automaton.0.check(document)?.map(|(offset, expected, pointer)| {
            json!({ "offset": offset, "expected": expected, "pointer": pointer })
        });
        // SAFETY: the caller's promise
        unsafe { copy_out(json!(said).to_string().as_bytes(), out.cast(), capacity) }
    })
}

/// Tokens of the caller's.
pub(crate) fn tokens_of(tokens: &[u32]) -> Vec<TokenId> {
    tokens.iter().map(|&t| TokenId(t)).collect()
}

/// A number that C says may be missing.
pub(crate) fn optional(number: i32, name: &str) -> Result<Option<u32>, Error> {
    match number {
        -1 => Ok(None),
        n => u32::try_from(n).map(Some).map_err(|_| {
            Error::new(Kind::OptionError, format!("{name} is {n}: neither a number of tokens nor -1"))
        }),
    }
}
