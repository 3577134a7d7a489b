//! Errors of patterns, with their column.

use crate::error::{Error, Kind};

/// Why a pattern was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegexErrorKind {
    /// Not a pattern of its dialect.
    Invalid,
    /// A pattern of its dialect whose language is not regular, or that is not covered.
    Unsupported,
    /// Over a limit on length, nesting, counts or size.
    Limit,
}

/// A refused pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexError {
    pub kind: RegexErrorKind,
    pub message: String,
    /// Where in the pattern, in characters from 1.
    pub column: usize,
}

impl RegexError {
    pub fn invalid(column: usize, message: impl Into<String>) -> Self {
        Self { kind: RegexErrorKind::Invalid, message: message.into(), column }
    }

    pub fn unsupported(column: usize, message: impl Into<String>) -> Self {
        Self { kind: RegexErrorKind::Unsupported, message: message.into(), column }
    }

    pub fn limit(column: usize, message: impl Into<String>) -> Self {
        Self { kind: RegexErrorKind::Limit, message: message.into(), column }
    }

    /// The error of a constraint that is this pattern.
    pub fn of_pattern(&self, pattern: &str) -> Error {
        let kind = match self.kind {
            RegexErrorKind::Invalid => Kind::InvalidRegex,
            RegexErrorKind::Unsupported => Kind::UnsupportedRegex,
            RegexErrorKind::Limit => Kind::LimitExceeded,
        };
        Error::new(kind, format!("the pattern {pattern:?}: {}", self.message)).column(self.column)
    }
}

impl std::fmt::Display for RegexError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (column {} of the pattern)", self.message, self.column)
    }
}

impl std::error::Error for RegexError {}
