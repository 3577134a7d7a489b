//! Why a text is refused: the byte that can't follow, what was expected there, and the place in the schema that says so.

use super::automaton::TokenAutomaton;
use super::engine::StateId;
use super::state::State;
use crate::automaton::byte_automaton::Seen;
use crate::error::{Error, Kind, Result};
use crate::vocab::TokenId;
use crate::work;

/// Offset of the first refused byte, what was expected there, and the JSON Pointer of the schema that says so.
pub type Refusal = (usize, Vec<String>, Option<String>);

impl TokenAutomaton {
    /// Offset of the first byte that is refused, what was expected there, and where the schema says so;
    /// `None` when the text is accepted. At the end of the text the offset is its length.
    pub fn check(&self, text: &[u8]) -> Result<Option<Refusal>> {
        self.with(None, |builder| {
            let (read, id) = builder.engine.walk(StateId(0), text);
            if read == text.len() && builder.engine.accepting(id) {
                return Ok(None);
            }
            let (expected, pointer) =
                builder.engine.describe(id, Seen { read: &text[..read], refused: text.get(read).copied() });
            Ok(Some((read, expected, pointer)))
        })
    }

    /// What may come next, in words, and where the schema says so.
    pub fn describe(&self, s: &State) -> Result<(Vec<String>, Option<String>)> {
        self.check_state(s)?;
        if self.is_finished(s) {
            return Ok((vec!["nothing: the text has ended".into()], None));
        }
        self.with(Some(s), |builder| {
            let here = builder.here(s)?;
            Ok(builder.engine.describe(here.0.id, Seen::default()))
        })
    }

    pub(super) fn rejection(&self, s: &State, token: TokenId) -> Error {
        if self.is_finished(s) {
            return Error::new(Kind::TokenRejected, "the text has ended: no token may follow");
        }
        let bytes = self.vocabulary().tokens().get(token.0 as usize);
        let mut shown = match bytes {
            Some(bytes) => {
                format!("token {} ({:?}) is not allowed here;", token.0, String::from_utf8_lossy(bytes))
            }
            None => format!("token {}, which the vocabulary does not have, is not allowed here;", token.0),
        };
        let text = bytes.filter(|_| !self.vocabulary().is_special(token)).map_or(&[][..], |bytes| bytes);
        let (read, expected, pointer) = match self.refusal(s, text) {
            Ok(said) => said,
            Err(error) => return error,
        };
        if read > 0 {
            shown += &format!(" after {:?}", String::from_utf8_lossy(&text[..read]));
        }
        let mut error =
            Error::new(Kind::TokenRejected, format!("{shown} expected {}", expected.join(" or ")));
        error.pointer = pointer;
        error
    }

    /// How many bytes of a text that is refused can be read, what was expected then, and where the schema
    /// says so.
    fn refusal(&self, s: &State, text: &[u8]) -> Result<Refusal> {
        self.with(Some(s), |builder| {
            let here = builder.here(s)?.0.id;
            let (read, id) = builder.engine.walk(here, text);
            let (Some(&refused), Some(mut before)) = (text.get(read), s.text(self.vocabulary())) else {
                let (expected, pointer) = builder.engine.describe(here, Seen::default());
                return Ok((0, expected, pointer));
            };
            before.extend_from_slice(&text[..read]);
            work::spend(before.len() as u64);
            let seen = Seen { read: &before, refused: Some(refused) };
            let (expected, pointer) = builder.engine.describe(id, seen);
            Ok((read, expected, pointer))
        })
    }
}
