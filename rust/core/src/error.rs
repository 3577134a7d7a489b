//! One error type for the engine: a kind, a sentence, and a place.
//!
//! The kind's name is the name of the Python class that the boundary raises, so the list here and the
//! table in `src/tokenform/errors.py` are compared by a test.

use std::fmt;

macro_rules! kinds {
    ($($name:ident),* $(,)?) => {
        /// What went wrong; the variant's name is the name of the Python exception.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind { $($name),* }
        impl Kind {
            /// Every kind, for the test that compares them with the Python table.
            pub const ALL: &'static [Kind] = &[$(Kind::$name),*];
            /// The name of the Python exception.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$name => stringify!($name)),* }
            }
        }
    };
}

kinds!(
    InvalidSchema,
    UnsupportedSchema,
    UnsatisfiableSchema,
    InvalidRegex,
    UnsupportedRegex,
    InvalidGrammar,
    UnsatisfiableGrammar,
    LimitExceeded,
    VocabularyError,
    TokenRejected,
    InvalidState,
    BudgetTooSmall,
    OptionError,
    Interrupted,
    EngineError,
);

/// An error with its place: a JSON Pointer into the schema, or a line and column of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub kind: Kind,
    pub message: String,
    pub pointer: Option<String>,
    pub keyword: Option<String>,
    pub line: Option<usize>,
    pub column: Option<usize>,
    /// Of a budget that is too small: the tokens of the shortest text that is known, where one is.
    pub least: Option<u32>,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error {
            kind,
            message: message.into(),
            pointer: None,
            keyword: None,
            line: None,
            column: None,
            least: None,
        }
    }

    /// The same error with its place in the schema, unless a nearer one is known already.
    pub fn at(mut self, pointer: &str) -> Self {
        self.pointer.get_or_insert_with(|| pointer.to_string());
        self
    }

    pub fn keyword(mut self, keyword: &str) -> Self {
        self.keyword.get_or_insert_with(|| keyword.to_string());
        self
    }

    pub fn column(mut self, column: usize) -> Self {
        self.column = Some(column);
        self
    }

    /// Whether what was being built when it came about may be half done, so that it must not be used any more.
    pub fn spoils(&self) -> bool {
        matches!(self.kind, Kind::LimitExceeded | Kind::Interrupted | Kind::EngineError)
    }

    pub fn limit(message: impl Into<String>) -> Self {
        Error::new(Kind::LimitExceeded, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(pointer) = &self.pointer {
            let place = if pointer.is_empty() { "the root" } else { pointer };
            write!(f, " (at {place})")?;
        } else if let (None, Some(column)) = (self.line, self.column) {
            write!(f, " (at column {column})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
