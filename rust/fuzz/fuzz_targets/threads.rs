//! Texts on threads of their own, on one automaton over a real vocabulary whose limits are met, some of them with a budget
//! of tokens: each mask is that of an automaton that serves this text alone and meets no limit, and a budget that was
//! granted is kept.
//!
//! An input is one byte of options, one that says how small the limit is, the schema's text up to a byte 0, and the
//! choices of tokens, cut into a part for each thread.

#![no_main]

mod options;
mod vocabulary;
mod walk;

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tokenform_core::error::Kind;
use tokenform_core::limits::Limits;
use tokenform_core::vocab::TokenId;
use tokenform_core::{Grammar, Matcher, Result, TokenAutomaton};

const THREADS: usize = 3;
/// Tokens of a text.
const LONGEST: usize = 40;

/// The answer, or nothing where a limit ended the call.
fn answered<T>(answer: Result<T>) -> Option<T> {
    let limits = [Kind::LimitExceeded, Kind::BudgetTooSmall];
    answer.map_err(|e| assert!(limits.contains(&e.kind), "{e}")).ok()
}

/// The masks along the tokens that the choices pick, as far as no limit is met.
fn masks(automaton: &Arc<TokenAutomaton>, choices: &[u8]) -> Option<Vec<(Vec<u32>, u32)>> {
    let mut matcher = answered(Matcher::new(automaton.clone(), None))?;
    let mut found = Vec::new();
    for &choice in choices.iter().take(LONGEST) {
        let Some(allowed) = answered(matcher.allowed_tokens()) else { break };
        assert!(!allowed.is_empty(), "a dead end");
        let token = allowed[choice as usize * 31 % allowed.len()];
        found.push((allowed, token));
        if answered(matcher.accept_tokens(&[TokenId(token)])).is_none() || matcher.is_terminated() {
            break;
        }
    }
    Some(found)
}

/// A text under a budget, by the choices: it ends within it.
fn kept(automaton: &Arc<TokenAutomaton>, choices: &[u8]) -> Option<()> {
    let budget = 4 + u32::from(*choices.first()?) % 40;
    let mut matcher = answered(Matcher::new(automaton.clone(), Some(budget)))?;
    for step in 0..budget as usize {
        let allowed = answered(matcher.allowed_tokens())?;
        assert!(!allowed.is_empty(), "a budget of {budget} that was granted ends after {step} tokens");
        let choice = choices[step % choices.len()] as usize;
        answered(matcher.accept_tokens(&[TokenId(allowed[choice * 31 % allowed.len()])]))?;
        if matcher.is_terminated() {
            return Some(());
        }
    }
    assert!(answered(matcher.is_accepting())?, "a budget of {budget} that was granted is not enough");
    Some(())
}

fuzz_target!(init: walk::bound(), |data: &[u8]| {
    let [choice, size, rest @ ..] = data else { return };
    let Some((text, choices)) = walk::parts(rest) else { return };
    let Ok(grammar) = Grammar::json_schema(text, options::options(*choice)) else { return };
    let small = Limits { work: 20_000 << (size % 6), ..Limits::default() };
    let Ok(shared) = grammar.compile(vocabulary::real(), small) else { return };
    let parts: Vec<&[u8]> = choices.chunks((choices.len() / THREADS).max(1)).take(THREADS).collect();
    let found: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = parts
            .iter()
            .map(|part| {
                scope.spawn(|| {
                    kept(&shared, part);
                    masks(&shared, part)
                })
            })
            .collect();
        started.into_iter().map(|thread| thread.join().expect("a thread that panics not")).collect()
    });
    for (part, found) in parts.iter().zip(found) {
        let Ok(own) = grammar.compile(vocabulary::real(), Limits::default()) else { return };
        let (Some(found), Some(right)) = (found, masks(&own, part)) else { continue };
        for (found, right) in found.iter().zip(&right) {
            assert_eq!(found, right, "another thread or a limit made a difference");
        }
    }
});
