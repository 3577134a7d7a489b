//! Any constraint made of others, in the form that the frontends write: an error or a working automaton, never a crash,
//! a hang or a dead end.
//!
//! An input is the form up to a byte 0, and a text, which is walked (see `walk`).

#![no_main]

mod walk;

use libfuzzer_sys::fuzz_target;
use tokenform_core::compose::form::{read, Composite};
use tokenform_core::mask::TokenAutomaton;

fuzz_target!(|data: &[u8]| {
    let Some((form, text)) = walk::parts(data) else { return };
    let automaton = read(form, "the constraint").and_then(|made| match made {
        Composite::Pattern(pattern) => TokenAutomaton::new(*pattern, walk::vocabulary()),
        Composite::Joint(joint) => TokenAutomaton::new(*joint, walk::vocabulary()),
    });
    if let Ok(automaton) = automaton {
        let _ = walk::walk(&automaton, text);
    }
});
