//! Counted work: what one call may do, the same on every machine.
//!
//! A unit is a term, an operand or a run that is looked at: about 20 ns. Whoever walks something that an input can
//! make large charges for it, so that no input costs more than the limit.

use super::term::Terms;
use crate::error::Error;

/// Units of work that one call may do unless the caller says otherwise.
pub const WORK: u64 = 50_000_000;

/// The work that is left for a call.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    pub limit: u64,
    left: u64,
    /// There was none left: why results since then are not to be used.
    exhausted: bool,
}

impl Default for Meter {
    fn default() -> Self {
        Meter { limit: WORK, left: WORK, exhausted: false }
    }
}

impl Terms {
    /// A call begins.
    pub fn begin(&mut self) {
        self.meter.left = self.meter.limit;
    }

    /// Does so much of the call's work; false when there is no more to do, from when on results are not to be used.
    #[inline]
    pub(crate) fn charge(&mut self, units: usize) -> bool {
        match self.meter.left.checked_sub(units as u64) {
            Some(left) => self.meter.left = left,
            None => {
                self.meter.left = 0;
                self.meter.exhausted = true;
                self.overflow = true;
            }
        }
        !self.overflow
    }

    /// The limit that was reached, in words.
    pub fn limit_error(&self) -> Option<Error> {
        self.overflow.then(|| {
            Error::limit(match self.meter.exhausted {
                true => format!(
                    "one call took more than {} steps: too many branches or patterns of the constraint overlap \
                     here; simplify or bound them",
                    self.meter.limit
                ),
                false => format!(
                    "the constraint's patterns need more than {} states; simplify or bound them",
                    self.max_terms
                ),
            })
        })
    }
}
