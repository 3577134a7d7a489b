//! Automata that nobody asks let go of what they can compute again.
//!
//! Purpose: thousands of compiled schemas in one process. What an automaton has made (masks, edges, derivatives)
//! is several times what it needs in order to go on, and most of those that are kept are not in use.
//! Invariant: numbers of states keep their meaning; an automaton that is asked again is as right as before, and
//! slower only where it makes again what it had (the lexical masks come from the shared store).
//! Complexity: a few automata are looked at for each that is made, on a thread of its own, so that compiling does
//! not wait.
//! Rejected: a limit on bytes over all automata (each would have to count its own all the time); eviction by each
//! automaton alone (it does not know that it is one of thousands).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::TokenAutomaton;

/// Automata that stay as they are: the ones that were made or asked lately.
const AWAKE: u64 = 32;

/// Automata that are looked at for each new one.
const LOOKS: usize = 4;

static MADE: AtomicU64 = AtomicU64::new(0);

/// How many automata were enrolled so far.
#[inline]
pub fn made() -> u64 {
    MADE.load(Ordering::Relaxed)
}

/// Automata that are handed over at a time: waking the thread costs more than making a small automaton.
const BATCH: usize = 16;

type Batch = Vec<Weak<TokenAutomaton>>;

/// From now on the automaton rests whenever `AWAKE` others were made since it was last asked.
pub fn enroll(automaton: &Arc<TokenAutomaton>) {
    static WAITING: Mutex<Batch> = Mutex::new(Vec::new());
    static KEEPER: OnceLock<Option<Mutex<Sender<Batch>>>> = OnceLock::new();
    MADE.fetch_add(1, Ordering::Relaxed);
    let batch = {
        let mut waiting = WAITING.lock();
        waiting.push(Arc::downgrade(automaton));
        if waiting.len() < BATCH {
            return;
        }
        std::mem::take(&mut *waiting)
    };
    let keeper = KEEPER.get_or_init(|| {
        let (send, receive) = channel::<Batch>();
        let keep = move || {
            let mut keeper = Keeper::default();
            while let Ok(batch) = receive.recv() {
                batch.into_iter().for_each(|automaton| keeper.add(automaton));
            }
        };
        // without a thread nothing rests, and all goes on
        let started = std::thread::Builder::new().name("tokenform-idle".into()).spawn(keep);
        started.ok().map(|_| Mutex::new(send))
    });
    if let Some(send) = keeper {
        // fails only when the keeper has ended with the process
        let _ = send.lock().send(batch);
    }
}

/// Who is awake, and who rests since when.
#[derive(Default)]
struct Keeper {
    awake: VecDeque<Weak<TokenAutomaton>>,
    resting: VecDeque<(Weak<TokenAutomaton>, u64)>,
}

impl Keeper {
    fn add(&mut self, automaton: Weak<TokenAutomaton>) {
        self.awake.push_back(automaton);
        for _ in 0..LOOKS {
            if self.awake.len() as u64 > AWAKE {
                self.look_at_eldest();
            }
        }
        for _ in 0..LOOKS.min(self.resting.len()) {
            self.look_at_resting();
        }
    }

    fn look_at_eldest(&mut self) {
        let Some(weak) = self.awake.pop_front() else { return };
        let Some(automaton) = weak.upgrade() else { return };
        let now = made();
        if automaton.last_used() + AWAKE <= now && automaton.rest() {
            self.resting.push_back((weak, now));
        } else {
            self.awake.push_back(weak);
        }
    }

    fn look_at_resting(&mut self) {
        let Some((weak, since)) = self.resting.pop_front() else { return };
        match weak.upgrade() {
            None => {}
            Some(automaton) if automaton.last_used() > since => self.awake.push_back(weak),
            Some(_) => self.resting.push_back((weak, since)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::JsonMachine;
    use crate::schema::options::Options;
    use crate::schema::Schema;
    use crate::vocab::{TokenId, Vocabulary};

    fn automaton(vocab: &Arc<Vocabulary>) -> Arc<TokenAutomaton> {
        let schema =
            r#"{"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}, "b": {}}}"#;
        let machine = JsonMachine::new(Schema::new(schema, Options::default()).unwrap()).unwrap();
        Arc::new(TokenAutomaton::new(machine, vocab.clone()).unwrap())
    }

    #[test]
    fn an_automaton_that_has_rested_is_as_before() {
        let mut tokens: Vec<Box<[u8]>> = (0..=255u8).map(|b| Box::from([b])).collect();
        tokens.extend(["\", \"", "é\"", "日本", "</s>"].map(|t| Box::from(t.as_bytes())));
        let end = tokens.len() as u32 - 1;
        let vocab = Arc::new(Vocabulary::new(tokens, vec![end], &[end]).unwrap());
        let automaton = automaton(&vocab);
        let text = "{\"a\": \"日本é\\n\", \"b\": [1.5, null]}".as_bytes();
        let walk = || {
            let mut states = vec![automaton.start()];
            for byte in text {
                states.push(automaton.advance(*states.last().unwrap(), TokenId(*byte as u32)).unwrap());
            }
            let masks: Vec<_> =
                states.iter().map(|s| automaton.mask(*s).unwrap().ids(vocab.mask_words())).collect();
            (states, masks)
        };
        let before = walk();
        assert!(automaton.rest());
        assert_eq!(walk(), before);
    }

    #[test]
    fn who_is_asked_stays_awake() {
        let vocab: Vec<Box<[u8]>> =
            (0..=255u8).map(|b| Box::from([b])).chain([Box::from(*b"</s>")]).collect();
        let vocab = Arc::new(Vocabulary::new(vocab, vec![256], &[256]).unwrap());
        let (asked, unasked) = (automaton(&vocab), automaton(&vocab));
        let mut keeper = Keeper::default();
        keeper.add(Arc::downgrade(&asked));
        keeper.add(Arc::downgrade(&unasked));
        for a in [&asked, &unasked] {
            a.mask(a.start()).unwrap();
        }
        let mut others = Vec::new();
        for _ in 0..2 * AWAKE {
            MADE.fetch_add(1, Ordering::Relaxed);
            asked.mask(asked.start()).unwrap();
            let other = automaton(&vocab);
            keeper.add(Arc::downgrade(&other));
            others.push(other);
        }
        assert!(asked.finished_mask(asked.start()).is_some());
        assert!(unasked.finished_mask(unasked.start()).is_none());
        // it was asked just now, so it is watched again
        for _ in 0..2 * AWAKE {
            keeper.look_at_resting();
        }
        assert!(keeper.awake.iter().any(|w| w.ptr_eq(&Arc::downgrade(&unasked))));
    }
}
