//! One error type for the engine: a kind, a sentence, and a place.
//!
//! The kind's name is the name of the Python class that the boundary raises, so the list here and the
//! table in `src/tokenform/errors.py` are compared by a test.

use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What went wrong; the variant's name is the name of the Python exception.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind { $($(#[$doc])* $name),* }
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
    /// The schema is not a JSON Schema.
    InvalidSchema,
    /// The schema asks for what can't be enforced exactly.
    UnsupportedSchema,
    /// No document satisfies the schema.
    UnsatisfiableSchema,
    /// The pattern is not a regular expression of its dialect.
    InvalidRegex,
    /// The pattern asks for what is not regular.
    UnsupportedRegex,
    /// The grammar can't be read.
    InvalidGrammar,
    /// No text satisfies the grammar.
    UnsatisfiableGrammar,
    /// The call needs more work or memory than it may take.
    LimitExceeded,
    /// The tokens are no vocabulary, or spell no text of the constraint.
    VocabularyError,
    /// The token is not allowed where it stands.
    TokenRejected,
    /// The state is another automaton's, or there is nothing to go back to.
    InvalidState,
    /// No text ends within the budget.
    BudgetTooSmall,
    /// An argument is not one that the call takes.
    OptionError,
    /// The host ended the call.
    Interrupted,
    /// A mistake in the engine.
    EngineError,
);

/// An error with its place: a JSON Pointer into the schema, or a line and column of a text.
///
/// ```
/// use tokenform_core::{Grammar, Kind, Options};
///
/// let schema = r#"{"properties": {"age": {"type": "int"}}}"#;
/// let error = Grammar::json_schema(schema, Options::default()).err().expect("no such type");
/// assert_eq!((error.kind, error.pointer.as_deref()), (Kind::InvalidSchema, Some("/properties/age/type")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What went wrong.
    pub kind: Kind,
    /// A sentence: what is wrong, and what to do.
    pub message: String,
    /// Where in a schema: a JSON Pointer.
    pub pointer: Option<String>,
    /// The keyword of a schema that it is about.
    pub keyword: Option<String>,
    /// Where in a text: the line, from 1 on.
    pub line: Option<usize>,
    /// Where in a line: the column in characters, from 1 on.
    pub column: Option<usize>,
    /// Of a budget that is too small: the tokens of the shortest text that is known, where one is.
    pub least: Option<u32>,
}

/// The engine's answer, or what went wrong.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error without a place.
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

    /// The same error with its keyword, unless one is known already.
    pub fn keyword(mut self, keyword: &str) -> Self {
        self.keyword.get_or_insert_with(|| keyword.to_string());
        self
    }

    /// The same error with its column.
    pub fn column(mut self, column: usize) -> Self {
        self.column = Some(column);
        self
    }

    /// Whether what was being built when it came about may be half done, so that it must not be used any more.
    pub fn spoils(&self) -> bool {
        matches!(self.kind, Kind::LimitExceeded | Kind::Interrupted | Kind::EngineError)
    }

    /// A limit that was passed.
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
