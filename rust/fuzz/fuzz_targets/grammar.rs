//! Any grammar, in GBNF or in the neutral form that the frontends write (Lark is read in Python): an error or a working
//! automaton, never a crash, a hang or a dead end.
//!
//! An input is one byte (the form), the grammar up to a byte 0, and a text, which is walked (see `walk`).

#![no_main]

mod walk;

use libfuzzer_sys::fuzz_target;
use tokenform_core::cfg::{self, Machine};
use tokenform_core::gbnf;
use tokenform_core::mask::TokenAutomaton;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let Some((grammar, text)) = walk::parts(rest) else { return };
    let made = match choice & 1 {
        0 => gbnf::read(grammar, "root").and_then(cfg::machine),
        _ => cfg::machine_of_text(grammar),
    };
    let automaton = made.and_then(|machine| match machine {
        Machine::Scanned(machine) => TokenAutomaton::new(*machine, walk::vocabulary()),
        Machine::Segmented(machine) => TokenAutomaton::new(*machine, walk::vocabulary()),
    });
    if let Ok(automaton) = automaton {
        let _ = walk::walk(&automaton, text);
    }
});
