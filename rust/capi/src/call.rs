//! What stands around every entry: panics are caught, errors kept for the thread that asks.

use std::cell::RefCell;
use std::ffi::{c_char, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

use tokenform_core::{Error, Kind, Result};

thread_local! {
    /// The kind and the sentence of the last error.
    static LAST: RefCell<(CString, CString)> = RefCell::default();
}

/// A text without zeros within, as C wants it.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Runs an entry; `failed` is what it returns where something goes wrong.
pub fn call<T>(failed: T, entry: impl FnOnce() -> Result<T>) -> T {
    let answer = catch_unwind(AssertUnwindSafe(entry)).unwrap_or_else(|_| Err(mistake()));
    answer.unwrap_or_else(|error| {
        keep(error);
        failed
    })
}

fn mistake() -> Error {
    Error::new(Kind::EngineError, "the engine made a mistake; please report it")
}

/// Makes an error the last one.
fn keep(error: Error) {
    LAST.with(|last| last.replace((c_text(error.kind.name()), c_text(&error.to_string()))));
}

pub fn wrong(message: &str) -> Error {
    Error::new(Kind::OptionError, message)
}

/// What a handle points to.
///
/// # Safety
/// `handle` is null or a live handle.
pub unsafe fn held<'a, T>(handle: *const T) -> Result<&'a T> {
    // SAFETY: the caller's promise
    unsafe { handle.as_ref() }.ok_or_else(|| wrong("a handle is NULL"))
}

/// What a handle points to, to be changed.
///
/// # Safety
/// `handle` is null or a live handle that nobody else uses meanwhile.
pub unsafe fn held_mut<'a, T>(handle: *mut T) -> Result<&'a mut T> {
    // SAFETY: the caller's promise
    unsafe { handle.as_mut() }.ok_or_else(|| wrong("a handle is NULL"))
}

/// An array of the caller's; NULL is one without entries.
///
/// # Safety
/// `data` is null or points to `count` entries.
pub unsafe fn list<'a, T>(data: *const T, count: usize) -> Result<&'a [T]> {
    match (data.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(wrong("an array is NULL")),
        // SAFETY: the caller's promise
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(data, count) }),
    }
}

/// An array of the caller's that is written.
///
/// # Safety
/// `data` is null or points to `count` entries that nobody else uses meanwhile.
pub unsafe fn room<'a, T>(data: *mut T, count: usize) -> Result<&'a mut [T]> {
    match (data.is_null(), count) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(wrong("an array is NULL")),
        // SAFETY: the caller's promise
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(data, count) }),
    }
}

/// A text of the caller's.
///
/// # Safety
/// `text` is null or points to `length` bytes.
pub unsafe fn text<'a>(text: *const c_char, length: usize) -> Result<&'a str> {
    // SAFETY: the caller's promise
    let bytes = unsafe { list(text.cast::<u8>(), length) }?;
    std::str::from_utf8(bytes).map_err(|_| wrong("a text is not UTF-8"))
}

/// Writes as many entries as there is room for, and says how many there are.
///
/// # Safety
/// `out` is null or points to `capacity` entries that nobody else uses meanwhile.
pub unsafe fn copy_out<T: Copy>(entries: &[T], out: *mut T, capacity: usize) -> Result<isize> {
    let written = entries.len().min(capacity);
    // SAFETY: the caller's promise
    unsafe { room(out, written) }?.copy_from_slice(&entries[..written]);
    isize::try_from(entries.len()).map_err(|_| wrong("too many entries"))
}

/// Gives a value to the caller.
pub fn give<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Takes a value back from the caller and lets go of it.
///
/// # Safety
/// `handle` is null or was given by [`give`], and is not used again.
pub unsafe fn free<T>(handle: *mut T) {
    call((), || {
        if !handle.is_null() {
            // SAFETY: the caller's promise
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}

/// What went wrong in the last call of this thread that failed; valid until another of its calls fails.
#[no_mangle]
pub extern "C" fn tokenform_error() -> *const c_char {
    LAST.with(|last| last.borrow().1.as_ptr())
}

/// The kind of that error by its name: InvalidSchema, TokenRejected, LimitExceeded, ...
#[no_mangle]
pub extern "C" fn tokenform_error_kind() -> *const c_char {
    LAST.with(|last| last.borrow().0.as_ptr())
}

/// For a host without unwinding (WebAssembly), where a call that passes a limit never returns: makes the limit the last
/// error of this thread, for tokenform_error and tokenform_error_kind. 0, or -1: no limit was passed, so that what ended
/// the call is a mistake of the engine, which the last error then says. Call nothing else of this instance afterwards.
#[no_mangle]
pub extern "C" fn tokenform_ended() -> i32 {
    let cut = tokenform_core::work::last_cut();
    let answer = if cut.is_some() { 0 } else { -1 };
    keep(cut.unwrap_or_else(mistake));
    answer
}

/// The version of the library.
#[no_mangle]
pub extern "C" fn tokenform_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Memory for an array of the caller's, for hosts without an allocator of their own (WebAssembly); aligned to eight
/// bytes. Freed by tokenform_release with the same size.
#[no_mangle]
pub extern "C" fn tokenform_reserve(bytes: usize) -> *mut u8 {
    let words: Box<[u64]> = vec![0; bytes.div_ceil(8).max(1)].into();
    Box::into_raw(words).cast()
}

/// Frees what tokenform_reserve gave.
///
/// # Safety
/// `memory` is NULL or was given by tokenform_reserve for so many bytes, and is not used again.
#[no_mangle]
pub unsafe extern "C" fn tokenform_release(memory: *mut u8, bytes: usize) {
    if !memory.is_null() {
        let words = std::ptr::slice_from_raw_parts_mut(memory.cast::<u64>(), bytes.div_ceil(8).max(1));
        // SAFETY: the caller's promise
        drop(unsafe { Box::from_raw(words) });
    }
}

#[cfg(test)]
mod tests {
    use tokenform_core::{work, Limits, Matcher, Vocabulary};

    use super::*;

    fn last() -> (String, String) {
        let text = |at: *const c_char| {
            // SAFETY: both are texts of this thread that end in a zero
            unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
        };
        (text(tokenform_error_kind()), text(tokenform_error()))
    }

    /// What a host without unwinding asks for after a trap: the limit, by its own kind and in its own words.
    #[test]
    fn a_limit_is_told_where_the_call_did_not_return() {
        let fresh = std::thread::spawn(|| (tokenform_ended(), last().0));
        assert_eq!(fresh.join().expect("nothing unwinds"), (-1, "EngineError".into()));
        let tokens = (0..=255u8).map(|b| Box::from([b])).chain([Box::from(*b"</s>")]).collect();
        let vocabulary = Vocabulary::new(tokens, vec![256], &[256]).expect("a vocabulary").into();
        let grammar = tokenform_core::Grammar::regex("(?=.*a.{9}b)(?=.*c.{8}d).*").expect("a pattern");
        let limits = Limits { work: 2000, ..Limits::default() };
        let matcher = grammar.compile(vocabulary, limits).and_then(|automaton| Matcher::new(automaton, None));
        let error =
            matcher.and_then(|matcher| matcher.allowed_tokens()).expect_err("far more than 2000 steps");
        assert_eq!(tokenform_ended(), 0);
        assert_eq!(last(), ("LimitExceeded".into(), error.to_string()));
        // limits that searches come upon are told as well
        assert!(
            work::run(10, || work::refuse(Error::limit("too many states"))).is_err_and(|_: work::Cut| true)
        );
        assert_eq!((tokenform_ended(), last().1), (0, "too many states".into()));
    }
}
