//! Any constraint made of others, in the form that the frontends write: an error or a working automaton, never a crash,
//! a hang or a dead end.
//!
//! An input is the form up to a byte 0, and a text, which is walked (see `walk`).

#![no_main]

mod walk;

use libfuzzer_sys::fuzz_target;
use tokenform_core::compose::form::{read, Composite};
use tokenform_core::limits::Limits;
use tokenform_core::{work, Error, Kind};

fuzz_target!(init: walk::bound(), |data: &[u8]| {
    let Some((form, text)) = walk::parts(data) else { return };
    let form = form.to_string();
    let read = move || read(&form, "the constraint", &[]);
    // the form of the machine is a property of the constraint
    let single = match work::run(Limits::default().work, &read) {
        Ok(Ok(Composite::Pattern(_))) => true,
        Ok(Ok(Composite::CompositeAutomaton(_))) => false,
        _ => return,
    };
    let wrong = || Error::new(Kind::EngineError, "read in another way");
    let made = match single {
        true => walk::automaton(move || match read()? {
            Composite::Pattern(pattern) => Ok(*pattern),
            Composite::CompositeAutomaton(_) => Err(wrong()),
        }),
        false => walk::automaton(move || match read()? {
            Composite::CompositeAutomaton(joint) => Ok(*joint),
            Composite::Pattern(_) => Err(wrong()),
        }),
    };
    if let Ok(automaton) = made {
        let _ = walk::walk(&automaton, text);
    }
});
