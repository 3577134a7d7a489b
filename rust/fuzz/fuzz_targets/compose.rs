//! Any constraint made of others, in the form that the frontends write: an error or a working automaton, never a crash,
//! a hang or a dead end.
//!
//! An input is the form up to a byte 0, and a text, which is walked (see `walk`).

#![no_main]

mod walk;

use libfuzzer_sys::fuzz_target;
use tokenform_core::{Grammar, Limits, Source};

fuzz_target!(init: walk::bound(), |data: &[u8]| {
    let Some((form, text)) = walk::parts(data) else { return };
    let source = Source::Composite(form.into(), "the constraint".into());
    if let Ok(automaton) = Grammar::new(source).and_then(|grammar| grammar.compile(walk::vocabulary(), Limits::default())) {
        let _ = walk::walk(&automaton, text);
    }
});
