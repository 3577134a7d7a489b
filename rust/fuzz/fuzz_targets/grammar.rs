//! Any grammar, in GBNF or in the neutral form that the frontends write (Lark is read in Python): an error or a working
//! automaton, never a crash, a hang or a dead end.
//!
//! An input is one byte (the form), the grammar up to a byte 0, and a text, which is walked (see `walk`).

#![no_main]

mod walk;

use libfuzzer_sys::fuzz_target;
use tokenform_core::cfg::{self, Machine};
use tokenform_core::gbnf;
use tokenform_core::limits::Limits;
use tokenform_core::{work, Error, Kind};

fuzz_target!(init: walk::bound(), |data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let Some((grammar, text)) = walk::parts(rest) else { return };
    let grammar = grammar.to_string();
    let read = move || match choice & 1 {
        0 => gbnf::read(&grammar, "root").and_then(cfg::machine),
        _ => cfg::machine_of_text(&grammar),
    };
    // the form of the machine is a property of the grammar
    let lexed = match work::run(Limits::default().work, &read) {
        Ok(Ok(Machine::Scanned(_))) => true,
        Ok(Ok(Machine::Scannerless(_))) => false,
        _ => return,
    };
    let wrong = || Error::new(Kind::EngineError, "read in another way");
    let made = match lexed {
        true => walk::automaton(move || match read()? {
            Machine::Scanned(machine) => Ok(*machine),
            Machine::Scannerless(_) => Err(wrong()),
        }),
        false => walk::automaton(move || match read()? {
            Machine::Scannerless(machine) => Ok(*machine),
            Machine::Scanned(_) => Err(wrong()),
        }),
    };
    if let Ok(automaton) = made {
        let _ = walk::walk(&automaton, text);
    }
});
