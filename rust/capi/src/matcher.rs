//! Texts as they grow.

use std::ffi::c_char;

use serde_json::json;
use tokenform_core::mask::automaton::FAR;
use tokenform_core::mask::batch;
use tokenform_core::{Matcher, Result, TokenId};

use crate::call::{call, copy_out, free, give, held, held_mut, list, room, wrong};
use crate::make::{optional, tokenform_automaton, tokens_of};

/// A text over the tokens of an automaton: takes tokens, takes them back, fills masks.
pub struct tokenform_matcher(Matcher);

fn plain(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|t| t.0).collect()
}

/// A matcher before its first token. `max_tokens`: every text ends within so many, the token that ends it not
/// counted; -1: as many as it likes.
///
/// # Safety
/// `automaton` is an automaton.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_new(
    automaton: *const tokenform_automaton,
    max_tokens: i32,
) -> *mut tokenform_matcher {
    call(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise
        let automaton = unsafe { held(automaton) }?.0.clone();
        Ok(give(tokenform_matcher(Matcher::new(automaton, optional(max_tokens, "max_tokens")?)?)))
    })
}

/// A matcher at the same place, which goes on by itself.
///
/// # Safety
/// `matcher` is a matcher.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_fork(matcher: *const tokenform_matcher) -> *mut tokenform_matcher {
    // SAFETY: the caller's promise
    call(std::ptr::null_mut(), || Ok(give(tokenform_matcher(unsafe { held(matcher) }?.0.fork()))))
}

/// # Safety
/// `matcher` is NULL or a matcher that is not used again.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_free(matcher: *mut tokenform_matcher) {
    // SAFETY: the caller's promise
    unsafe { free(matcher) }
}

/// Takes the tokens, all of them (0) or none (-1: an error).
///
/// # Safety
/// `matcher` is a matcher, `tokens` has `count` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_accept(
    matcher: *mut tokenform_matcher,
    tokens: *const u32,
    count: usize,
) -> i32 {
    call(-1, || {
        // SAFETY: the caller's promise
        let (matcher, tokens) = unsafe { (held_mut(matcher)?, list(tokens, count)?) };
        matcher.0.accept_tokens(&tokens_of(tokens)).map(|()| 0)
    })
}

/// How many of the tokens may follow one after the other, or a negative number; the matcher stays where it is.
///
/// # Safety
/// `matcher` is a matcher, `tokens` has `count` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_validate(
    matcher: *const tokenform_matcher,
    tokens: *const u32,
    count: usize,
) -> isize {
    call(-1, || {
        // SAFETY: the caller's promise
        let (matcher, tokens) = unsafe { (held(matcher)?, list(tokens, count)?) };
        Ok(matcher.0.validate_tokens(&tokens_of(tokens))? as isize)
    })
}

/// Takes back the last tokens: 0, or -1 where fewer were taken.
///
/// # Safety
/// `matcher` is a matcher.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_rollback(matcher: *mut tokenform_matcher, count: usize) -> i32 {
    // SAFETY: the caller's promise
    call(-1, || unsafe { held_mut(matcher) }?.0.rollback(count).map(|()| 0))
}

/// Takes back every token: 0, or -1 for NULL.
///
/// # Safety
/// `matcher` is a matcher.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_reset(matcher: *mut tokenform_matcher) -> i32 {
    call(-1, || {
        // SAFETY: the caller's promise
        unsafe { held_mut(matcher) }?.0.reset();
        Ok(0)
    })
}

/// Writes the mask: bit t % 32 of word t / 32 says whether token t may come next. 0, or -1: an error.
///
/// # Safety
/// `matcher` is a matcher, `out` has room for `words` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_fill_mask(
    matcher: *const tokenform_matcher,
    out: *mut u32,
    words: usize,
) -> i32 {
    call(-1, || {
        // SAFETY: the caller's promise
        let (matcher, out) = unsafe { (held(matcher)?, room(out, words)?) };
        matcher.0.fill_mask(out).map(|()| 0)
    })
}

/// Masks for a draft: row 0 is what may come next, row i + 1 what may come after token i. `parents`: NULL for a chain,
/// or for each token the one that it follows, by its place in the draft, -1 for the text so far. `allowed`: NULL, or
/// room for `count` entries, 1 where a token may stand where it does; rows behind others are zeros. 0, or -1.
///
/// # Safety
/// The arrays have the entries that are said, `out` room for `words` of them: count + 1 rows.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_fill_draft_masks(
    matcher: *const tokenform_matcher,
    tokens: *const u32,
    parents: *const i32,
    count: usize,
    out: *mut u32,
    words: usize,
    allowed: *mut u8,
) -> i32 {
    call(-1, || {
        // SAFETY: the caller's promise
        let (matcher, tokens, out) = unsafe { (held(matcher)?, list(tokens, count)?, room(out, words)?) };
        let parents: Option<Vec<Option<usize>>> = match parents.is_null() {
            true => None,
            false => {
                // what is neither a place nor -1 stands behind every child
                let place = |&p: &i32| (p != -1).then(|| usize::try_from(p).unwrap_or(usize::MAX));
                // SAFETY: the caller's promise
                Some(unsafe { list(parents, count) }?.iter().map(place).collect())
            }
        };
        let may = matcher.0.fill_draft_masks(&tokens_of(tokens), parents.as_deref(), out, 1)?;
        if !allowed.is_null() {
            // SAFETY: the caller's promise
            let allowed = unsafe { room(allowed, count) }?;
            allowed.iter_mut().zip(may).for_each(|(to, may)| *to = may.into());
        }
        Ok(0)
    })
}

/// Masks of several matchers over vocabularies of one size, one row each, on so many threads. Returns how many failed:
/// their rows are zeros, and tokenform_error() is the last one's; or -1.
///
/// # Safety
/// `matchers` has `count` entries, each a matcher; `out` has room for `words` of them: `count` rows.
#[no_mangle]
pub unsafe extern "C" fn tokenform_fill_masks(
    matchers: *const *const tokenform_matcher,
    count: usize,
    out: *mut u32,
    words: usize,
    threads: usize,
) -> isize {
    call(-1, || {
        // SAFETY: the caller's promise
        let (matchers, out) = unsafe { (list(matchers, count)?, room(out, words)?) };
        // SAFETY: the caller's promise
        let matchers = matchers.iter().map(|&m| unsafe { held(m) }).collect::<Result<Vec<_>>>()?;
        let width = matchers.first().map_or(0, |m| m.0.automaton().vocabulary().mask_words());
        let fits = |m: &&tokenform_matcher| m.0.automaton().vocabulary().mask_words() == width;
        if !matchers.iter().all(fits) || Some(words) != width.checked_mul(count) {
            return Err(wrong("out must have a row of one width for each matcher"));
        }
        let rows = out.chunks_mut(width.max(1)).zip(&matchers);
        let mut rows: Vec<_> = rows.map(|(out, matcher)| matcher.0.row(out)).collect();
        batch::fill(&mut rows, batch::Asked::default(), threads);
        let failed = rows.into_iter().filter_map(|row| row.answer.err());
        Ok(failed.map(|error| call(1, || Err(error))).sum())
    })
}

/// Whether a token that ends the text was taken: 1 or 0, or -1 for NULL.
///
/// # Safety
/// `matcher` is a matcher.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_is_terminated(matcher: *const tokenform_matcher) -> i32 {
    // SAFETY: the caller's promise
    call(-1, || Ok(unsafe { held(matcher) }?.0.is_terminated().into()))
}

/// Whether the text may end here: 1 or 0, or -1: an error.
///
/// # Safety
/// `matcher` is a matcher.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_is_accepting(matcher: *const tokenform_matcher) -> i32 {
    // SAFETY: the caller's promise
    call(-1, || Ok(unsafe { held(matcher) }?.0.is_accepting()?.into()))
}

/// Writes the ids of the tokens that may come next, ascending, as far as there is room; returns how many they are, or
/// a negative number.
///
/// # Safety
/// `matcher` is a matcher, `out` has room for `capacity` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_allowed_tokens(
    matcher: *const tokenform_matcher,
    out: *mut u32,
    capacity: usize,
) -> isize {
    // SAFETY: the caller's promise
    call(-1, || unsafe { copy_out(&held(matcher)?.0.allowed_tokens()?, out, capacity) })
}

/// Writes the tokens taken; otherwise as tokenform_matcher_allowed_tokens.
///
/// # Safety
/// `matcher` is a matcher, `out` has room for `capacity` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_tokens(
    matcher: *const tokenform_matcher,
    out: *mut u32,
    capacity: usize,
) -> isize {
    // SAFETY: the caller's promise
    call(-1, || unsafe { copy_out(&plain(held(matcher)?.0.tokens()), out, capacity) })
}

/// Writes tokens that spell the text which every continuation begins with; otherwise as
/// tokenform_matcher_allowed_tokens.
///
/// # Safety
/// `matcher` is a matcher, `out` has room for `capacity` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_forced_tokens(
    matcher: *const tokenform_matcher,
    out: *mut u32,
    capacity: usize,
) -> isize {
    // SAFETY: the caller's promise
    call(-1, || unsafe { copy_out(&plain(&held(matcher)?.0.forced_tokens()?), out, capacity) })
}

/// Writes the text which every continuation begins with, without a zero at its end, as far as there is room; returns
/// how many bytes it has, or a negative number.
///
/// # Safety
/// `matcher` is a matcher, `out` has room for `capacity` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_forced_text(
    matcher: *const tokenform_matcher,
    out: *mut c_char,
    capacity: usize,
) -> isize {
    // SAFETY: the caller's promise
    call(-1, || unsafe { copy_out(held(matcher)?.0.forced_text()?.as_bytes(), out.cast(), capacity) })
}

/// Says as JSON what may come next: "expected" (a list of words) and "pointer" (where the schema says so, or null).
/// Writes as far as there is room; returns how many bytes it has, or a negative number.
///
/// # Safety
/// `matcher` is a matcher, `out` has room for `capacity` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_expected(
    matcher: *const tokenform_matcher,
    out: *mut c_char,
    capacity: usize,
) -> isize {
    call(-1, || {
        // SAFETY: the caller's promise
        let matcher = &unsafe { held(matcher) }?.0;
        let (expected, pointer) = matcher.automaton().describe(matcher.state())?;
        let said = json!({ "expected": expected, "pointer": pointer });
        // SAFETY: the caller's promise
        unsafe { copy_out(said.to_string().as_bytes(), out.cast(), capacity) }
    })
}

/// The least number of tokens to an end, the one that ends the text not counted; -2: none is known; -1: an error.
///
/// # Safety
/// `matcher` is a matcher.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_distance(matcher: *const tokenform_matcher) -> isize {
    call(-1, || {
        // SAFETY: the caller's promise
        let matcher = &unsafe { held(matcher) }?.0;
        Ok(match matcher.automaton().distance(matcher.state(), FAR)? {
            FAR => -2,
            distance => distance as isize,
        })
    })
}

/// Says as JSON what a drawing of the automaton from here on shows: "accepting" (for each of at most `most` states, the
/// first of which is the present one, whether a text may end there) and "edges" (lists of a state's number, the text that
/// leads on, and the next state's number, -1 for one that is not drawn). Writes as far as there is room; returns how many
/// bytes it has, or a negative number.
///
/// # Safety
/// `matcher` is a matcher, `out` has room for `capacity` entries.
#[no_mangle]
pub unsafe extern "C" fn tokenform_matcher_drawn(
    matcher: *const tokenform_matcher,
    most: usize,
    out: *mut c_char,
    capacity: usize,
) -> isize {
    call(-1, || {
        // SAFETY: the caller's promise
        let matcher = &unsafe { held(matcher) }?.0;
        let drawn = matcher.automaton().drawn(matcher.state(), most)?;
        let accepting = drawn.states.iter().map(|s| matcher.automaton().accepting(s));
        let accepting = accepting.collect::<Result<Vec<bool>>>()?;
        let number = |to: Option<usize>| to.map_or(-1, |to| to as i64);
        let edges: Vec<_> =
            drawn.edges.iter().map(|(from, text, to)| json!([from, text, number(*to)])).collect();
        let said = json!({ "accepting": accepting, "edges": edges });
        // SAFETY: the caller's promise
        unsafe { copy_out(said.to_string().as_bytes(), out.cast(), capacity) }
    })
}
