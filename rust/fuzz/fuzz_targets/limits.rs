//! Several texts in turns on one automaton whose limits are met all the time, with and without budgets, over tokens of
//! several bytes: what it answers is what an automaton answers that meets no limit.
//!
//! An input is one byte of options, one that says how small the limit is, the schema's text up to a byte 0, and the
//! choices of texts, tokens and budgets.

#![no_main]

mod options;
mod walk;

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use tokenform_core::error::Kind;
use tokenform_core::limits::Limits;
use tokenform_core::vocab::{TokenId, Vocabulary};
use tokenform_core::{Grammar, Result, State};

const TEXTS: usize = 4;
const TURNS: usize = 48;
const PIECES: [&[u8]; 14] = [
    b"{\"", b"\":", b"\": ", b"\",\"", b"\", ", b"}}", b"]]", b"\"}", b"true", b"null", b"12", b"[[", b"aab", b"\\u00",
];

fn vocabulary() -> Arc<Vocabulary> {
    static TOKENS: OnceLock<Arc<Vocabulary>> = OnceLock::new();
    let make = || {
        let mut tokens: Vec<Box<[u8]>> = (0..=255u8).map(|b| Box::from([b])).collect();
        tokens.extend(PIECES.iter().map(|&piece| Box::from(piece)));
        let eos = tokens.len() as u32;
        tokens.push(Box::from(*b"\xFF</s>"));
        Arc::new(Vocabulary::new(tokens, vec![eos], &[eos]).expect("a vocabulary of all bytes"))
    };
    TOKENS.get_or_init(make).clone()
}

/// The answer, or nothing where a limit ended the call.
fn answered<T>(answer: Result<T>) -> Option<T> {
    answer.map_err(|e| assert!(e.kind == Kind::LimitExceeded || e.kind == Kind::BudgetTooSmall, "{e}")).ok()
}

fuzz_target!(init: walk::bound(), |data: &[u8]| {
    let [choice, size, rest @ ..] = data else { return };
    let Some((text, moves)) = walk::parts(rest) else { return };
    let Ok(grammar) = Grammar::json_schema(text, options::options(*choice)) else { return };
    let small = Limits { work: 300 << (size % 10), ..Limits::default() };
    let (Ok(judge), Ok(own)) =
        (grammar.compile(vocabulary(), Limits::default()), grammar.compile(vocabulary(), small))
    else {
        return;
    };
    let words = vocabulary().mask_words();
    let mut texts: Vec<(State, State)> = vec![(judge.start(), own.start()); TEXTS];
    for step in moves.chunks_exact(2).take(TURNS) {
        let at = step[0] as usize % TEXTS;
        let (right, mine) = texts[at].clone();
        let Some(mask) = answered(judge.mask(&right)) else { return };
        if let Some(found) = answered(own.mask(&mine)) {
            assert_eq!(found.ids(words), mask.ids(words), "a limit made a difference");
        }
        if step[0] & 64 != 0 {
            let budget = u32::from(step[0] >> 2 & 15);
            let (found, expected) = (own.mask_within(&mine, budget), judge.mask_within(&right, budget));
            if let (Some(found), Some(expected)) = (answered(found), answered(expected)) {
                assert_eq!(found, expected, "a limit made a difference to a budget");
            }
        }
        let ids: Vec<u32> = mask.ids(words).into_iter().filter(|&id| !vocabulary().is_eos(TokenId(id))).collect();
        if ids.is_empty() {
            texts[at] = (judge.start(), own.start());
            continue;
        }
        let token = TokenId(ids[step[1] as usize % ids.len()]);
        if let (Some(right), Some(mine)) = (answered(judge.advance(&right, token)), answered(own.advance(&mine, token))) {
            texts[at] = (right, mine);
        }
    }
});
