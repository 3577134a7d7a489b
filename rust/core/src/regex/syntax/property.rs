//! `\p{..}`: properties of characters, by their names in ECMA-262 and in Rust's `regex`.
//!
//! The tables are `regex-syntax`'s, which finds a property however it is spelled; ECMA-262 has one spelling, and its own
//! list of names (§22.2.1.9, tables 67 to 69).

use super::dialect::RUST;
use super::reader::Reader;
use crate::regex::charset::CharSet;
use crate::regex::error::RegexError;

/// Short names of the general categories of ECMA-262, and the long ones.
const CATEGORIES: &str = "C Cc Cf Cn Co Cs L LC Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs \
    Other Control cntrl Format Unassigned Private_Use Surrogate Letter Cased_Letter Lowercase_Letter Modifier_Letter Other_Letter \
    Titlecase_Letter Uppercase_Letter Mark Combining_Mark Spacing_Mark Enclosing_Mark Nonspacing_Mark Number Decimal_Number digit \
    Letter_Number Other_Number Punctuation punct Connector_Punctuation Dash_Punctuation Close_Punctuation Final_Punctuation \
    Initial_Punctuation Other_Punctuation Open_Punctuation Symbol Currency_Symbol Modifier_Symbol Math_Symbol Other_Symbol \
    Separator Line_Separator Paragraph_Separator Space_Separator";

/// Binary properties of ECMA-262, with their short names.
const BINARY: &str = "ASCII ASCII_Hex_Digit AHex Alphabetic Alpha Any Assigned Bidi_Control Bidi_C Bidi_Mirrored Bidi_M Case_Ignorable \
    CI Cased Changes_When_Casefolded CWCF Changes_When_Casemapped CWCM Changes_When_Lowercased CWL Changes_When_NFKC_Casefolded \
    CWKCF Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash Default_Ignorable_Code_Point DI Deprecated Dep Diacritic \
    Dia Emoji Emoji_Component EComp Emoji_Modifier EMod Emoji_Modifier_Base EBase Emoji_Presentation EPres Extended_Pictographic \
    ExtPict Extender Ext Grapheme_Base Gr_Base Grapheme_Extend Gr_Ext Hex_Digit Hex IDS_Binary_Operator IDSB \
    IDS_Trinary_Operator IDST ID_Continue IDC ID_Start IDS Ideographic Ideo Join_Control Join_C Logical_Order_Exception LOE \
    Lowercase Lower Math Noncharacter_Code_Point NChar Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark QMark \
    Radical Regional_Indicator RI Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation Term Unified_Ideograph UIdeo \
    Uppercase Upper Variation_Selector VS White_Space space XID_Continue XIDC XID_Start XIDS";

impl Reader {
    /// After `\p` or `\P` (`negative`), which stand at `column`.
    pub(super) fn property(&mut self, column: usize, negative: bool) -> Result<CharSet, RegexError> {
        let mark = if negative { 'P' } else { 'p' };
        let mut name = String::new();
        let braced = self.text.eat("{");
        if braced {
            loop {
                match self.text.next() {
                    Some('}') => break,
                    Some(c) if c.is_ascii_alphanumeric() || "_= -:!".contains(c) => name.push(c),
                    _ => return Err(unknown(column, mark, &name)),
                }
            }
        } else {
            name.extend(self.text.next().filter(char::is_ascii_alphabetic));
        }
        let found = if braced { of_ecma(&name) } else { None };
        let set = match found {
            Some(set) => set,
            None => {
                let spelled =
                    if braced { format!("`\\{mark}{{{name}}}`") } else { format!("`\\{mark}{name}`") };
                let written = if braced { format!("\\p{{{name}}}") } else { format!("\\p{name}") };
                let set = CharSet::from_syntax(&written).ok_or_else(|| unknown(column, mark, &name))?;
                self.allow(RUST, column, &spelled, "that property")?;
                set
            }
        };
        Ok(if negative { set.negate() } else { set })
    }
}

fn unknown(column: usize, mark: char, name: &str) -> RegexError {
    RegexError::invalid(column, format!("`\\{mark}{{{name}}}` is no property of characters that is known"))
}

/// The property of ECMA-262 that has this name, in its one spelling.
fn of_ecma(name: &str) -> Option<CharSet> {
    let lookup = |text: &str| CharSet::from_syntax(&format!(r"\p{{{text}}}"));
    let listed = |list: &str, name: &str| list.split_whitespace().any(|one| one == name);
    match name.split_once('=') {
        Some(("Script" | "sc", value)) if is_script(value) => lookup(&format!("sc={value}")),
        Some(("Script_Extensions" | "scx", value)) if is_script(value) => lookup(&format!("scx={value}")),
        Some(("General_Category" | "gc", value)) if listed(CATEGORIES, value) => {
            lookup(&format!("gc={value}"))
        }
        Some(_) => None,
        None if listed(CATEGORIES, name) => lookup(&format!("gc={name}")),
        None if listed(BINARY, name) => lookup(name),
        None => None,
    }
}

/// Whether the name of a script is spelled as in Unicode's own table: words with a capital.
fn is_script(name: &str) -> bool {
    let capital = |word: &str| {
        let mut chars = word.chars();
        chars.next().is_some_and(|c| c.is_ascii_uppercase()) && chars.all(|c| c.is_ascii_lowercase())
    };
    name == "SignWriting" || name.split('_').all(capital)
}
