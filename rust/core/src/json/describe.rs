//! What may come at a position, in words, and the schema that says so.
//!
//! Invariant: nothing that is named is refused; the lists are shortened, and say so.
//! Complexity: the schema's parts at one position, at a refusal or when asked.  Memory: none is kept.

use super::frames::{GoalsId, ObjectFrameId};
use super::pointer::{path_match, path_to_end};
use super::{Context, JsonMachine, LexemeKind, ParserPhase};
use crate::automaton::byte_automaton::Seen;
use crate::automaton::Pos;
use crate::lexical::in_words::{quoted, shortened, SHOWN};
use crate::lexical::number::piece::Bound;
use crate::lexical::number::set::NumSet;
use crate::lexical::number::Decimal;
use crate::lexical::{LexId, Lexicon};
use crate::lists::dedup;
use crate::schema::object::Obj;
use crate::schema::{NameId, ObjId, ShapeId, ValId};

impl JsonMachine {
    pub(super) fn in_words(&mut self, pos: Pos, seen: Seen) -> (Vec<String>, Option<String>) {
        let context = self.context(pos.ctx);
        match context.phase {
            ParserPhase::Scalar => return self.scalar_in_words(context, pos, seen),
            ParserPhase::Key => {
                return (self.rest_of_key_in_words(context, pos.lex), self.place_of_object(context.object()));
            }
            _ => {}
        }
        let left = self.whitespace_leads_to(pos);
        let (words, place) = self.place_in_words(context, left, seen);
        // whitespace that must stand here
        if self.lexicon().outcome(pos.lex) == Lexicon::NONE {
            return (self.lexicon().in_words(pos.lex), place);
        }
        (words, place)
    }

    fn place_in_words(
        &mut self,
        context: Context,
        (go, close): (bool, bool),
        seen: Seen,
    ) -> (Vec<String>, Option<String>) {
        match context.phase {
            ParserPhase::Done => (vec!["the end of the text".into()], None),
            ParserPhase::Root | ParserPhase::Value | ParserPhase::Item => {
                (self.values_in_words(context.goals()), self.place_of_goals(context.goals(), seen))
            }
            ParserPhase::ObjectStart | ParserPhase::ObjectNext | ParserPhase::ObjectAfter => {
                let mut words = if go { self.keys_in_words(context) } else { Vec::new() };
                if close
                    && context.phase != ParserPhase::ObjectNext
                    && !self.object_goals(context.object()).is_empty()
                {
                    words.push(quoted("}"));
                }
                (words, self.place_of_object(context.object()))
            }
            ParserPhase::Colon => (vec![quoted(":")], None),
            ParserPhase::ArrayStart | ParserPhase::ArrayAfter => {
                let (mut words, mut place) = (Vec::new(), None);
                if let Some((goals, ..)) = self.item(context).filter(|_| go) {
                    let items = self.values_in_words(goals);
                    match context.phase {
                        ParserPhase::ArrayStart => words.extend(items),
                        _ => words.push(format!("{} and {}", quoted(","), listed(&items))),
                    }
                    place = self.place_of_goals(goals, seen);
                }
                if close && !self.array_goals(context.array()).is_empty() {
                    words.push(quoted("]"));
                }
                (words, place)
            }
            _ => (Vec::new(), None),
        }
    }

    /// What a value may be.
    fn values_in_words(&mut self, goals: GoalsId) -> Vec<String> {
        let mut words = Vec::new();
        if let Some((_, lex)) = self.scalar(goals, LexemeKind::String) {
            match self.few_words(lex) {
                Some(texts) => words.extend(texts.iter().map(|t| quoted(t))),
                None => words.push("a string".to_string()),
            }
        }
        if let Some((_, lex)) = self.scalar(goals, LexemeKind::Bare) {
            for v in self.frames[goals].clone() {
                let value = self.schema.value(v);
                words.extend(numbers_in_words(&self.schema.numbers(value)));
            }
            let set = self.lexicon().first_bytes(lex);
            for (byte, word) in [(b't', "true"), (b'f', "false"), (b'n', "null")] {
                if set.has(byte) {
                    words.push(word.into());
                }
            }
        }
        if self.open_object(goals).is_some() {
            words.push("an object".into());
        }
        if self.open_array(goals).is_some() {
            words.push("an array".into());
        }
        shortened(distinct(words), "other values")
    }

    fn few_words(&mut self, lex: LexId) -> Option<Vec<Box<str>>> {
        let (_, term) = self.lexicon().term(lex)?;
        self.lexicon().terms.few_words(term)
    }

    /// What may follow inside a string, a number or a word, and after it where it may end.
    fn scalar_in_words(&mut self, context: Context, pos: Pos, seen: Seen) -> (Vec<String>, Option<String>) {
        let goals = self.goals_of_scalar(context);
        let place = self.place_of(goals.as_deref().unwrap_or_default(), seen);
        let outcome = self.lexicon().outcome(pos.lex);
        if self.lexicon().is_string(pos.lex) {
            let mut words = self.lexicon().in_words(pos.lex);
            if outcome != Lexicon::NONE {
                words.insert(0, "the closing quote".into());
            }
            if seen.refused.is_some_and(|b| b < 0x20) {
                words.push("control characters as escapes only: \\n, \\t, \\u0000".into());
            }
            return (shortened(words, "other characters"), place);
        }
        let rest = self.lexicon().in_words(pos.lex);
        let rest = self.rest_of_bare(rest, goals.as_deref().unwrap_or_default());
        if outcome == Lexicon::NONE {
            return (shortened(rest, "other characters"), place);
        }
        // which item this was is not known here where the array compares its items
        let plain = !context.record.holds_text();
        let (after, behind) = match plain.then(|| self.end_scalar(pos.ctx, outcome, &[], false)).flatten() {
            Some(next) if self.context(next.ctx).phase == ParserPhase::ObjectAfter => {
                self.in_words(next, seen)
            }
            Some(next) => (self.in_words(next, seen).0, place.clone()),
            None => (vec!["the end of the value".into()], place.clone()),
        };
        // what would go on with the value is said of it, all else of what lies behind it
        let numeric = |b: u8| b.is_ascii_digit() || b".eE+-".contains(&b);
        let inside = !rest.is_empty() && seen.refused.is_some_and(numeric);
        let words = if inside { [rest, after] } else { [after, rest] }.concat();
        (shortened(words, "other characters"), if inside { place } else { behind })
    }

    /// How a number goes on; where not every digit may follow, with what it may be.
    fn rest_of_bare(&mut self, rest: Vec<String>, goals: &[ValId]) -> Vec<String> {
        let exponent = rest.contains(&quoted("E"));
        let told = |word: String| match word.as_bytes() {
            [b'"', byte @ b'0'..=b'9', b'"'] => format!("the digit {}", *byte as char),
            [b'"', b'e' | b'E', b'"'] if exponent => "an exponent".into(),
            _ => word,
        };
        let mut rest = distinct(rest.into_iter().map(told).collect());
        let few = |word: &String| word.starts_with("the digit") || word.starts_with("a digit from");
        let Some(at) = rest.iter().position(few) else { return rest };
        let mut may_be = Vec::new();
        for &v in goals {
            may_be.extend(numbers_in_words(&self.schema.numbers(self.schema.value(v))));
        }
        rest[at] = format!("{} (of {})", rest[at], listed(&shortened(distinct(may_be), "others")));
        rest
    }

    /// The keys that may come, those that must come first; after a property with the comma before them.
    fn keys_in_words(&mut self, context: Context) -> Vec<String> {
        let term = self.key_term(context.object());
        let missing = self.missing(context.object());
        let all = self.terms().finite_words(term);
        let open = all.is_none();
        let mut keys: Vec<Box<str>> = missing;
        let required = !keys.is_empty();
        match all {
            Some(words) => keys.extend(words),
            None if !required => keys.extend(self.named_keys(context.object())),
            None => {}
        }
        keys.retain(|key| self.schema.lexicon.terms.accepts(term, key));
        let keys = distinct(keys);
        let mut names: Vec<String> = keys.iter().map(|key| quoted(key)).collect();
        names = shortened(names, OTHER_KEYS);
        if context.phase != ParserPhase::ObjectAfter {
            let mut words: Vec<String> = names.iter().map(|n| key_in_words(n)).collect();
            match (open, required, words.is_empty()) {
                (true, _, true) => words.push("a key that is allowed and was not used".into()),
                (true, _, false) => words.push("another key".into()),
                _ => {}
            }
            return words;
        }
        if open && !required {
            return vec![quoted(",")];
        }
        match &names[..] {
            [] => Vec::new(),
            names => vec![format!("{} and the key {}", quoted(","), listed(names))],
        }
    }

    /// What is left of a key that was begun.
    fn rest_of_key_in_words(&mut self, context: Context, lex: LexId) -> Vec<String> {
        let left = self.lexicon().term(lex).and_then(|(_, term)| self.lexicon().terms.finite_words(term));
        let term = self.key_term(context.object());
        let (Some(left), Some(keys)) = (left, self.terms().finite_words(term)) else {
            let mut words = self.lexicon().in_words(lex);
            if self.lexicon().outcome(lex) != Lexicon::NONE {
                words.insert(0, "the closing quote".into());
            }
            return words;
        };
        let begun = |key: &str| left.iter().any(|rest| key.ends_with(&**rest));
        let words =
            keys.iter().filter(|key| begun(key)).map(|key| format!("the key {}", quoted(key))).collect();
        shortened(words, OTHER_KEYS)
    }

    /// The keys without which no way to go on with an object can end, in the order of the schema where it has one.
    fn missing(&self, frame: ObjectFrameId) -> Vec<Box<str>> {
        let alternatives = &self.frames[frame].alternatives;
        let each: Vec<Vec<NameId>> = alternatives.iter().map(|a| self.missing_of(a.formula)).collect();
        if each.iter().any(Vec::is_empty) {
            return Vec::new();
        }
        let mut order = Vec::new();
        alternatives.iter().for_each(|a| self.schema.names_in_order(a.formula, &mut order));
        let mut names: Vec<NameId> = each.concat();
        dedup(&mut names);
        names.sort_by_key(|name| (order.iter().position(|n| n == name).unwrap_or(usize::MAX), *name));
        names.iter().map(|&n| self.schema.name_text(n).into()).collect()
    }

    fn missing_of(&self, o: ObjId) -> Vec<NameId> {
        match self.schema.object(o) {
            Obj::Required(names) => names.to_vec(),
            Obj::And(list) => list.iter().flat_map(|&x| self.missing_of(x)).collect(),
            Obj::Or(list) => {
                let each: Vec<Vec<NameId>> = list.iter().map(|&x| self.missing_of(x)).collect();
                if each.iter().any(Vec::is_empty) {
                    return Vec::new();
                }
                each.concat()
            }
            _ => Vec::new(),
        }
    }

    /// Keys that the schema names.
    fn named_keys(&self, frame: ObjectFrameId) -> Vec<Box<str>> {
        let mut names = Vec::new();
        for a in self.frames[frame].alternatives.iter() {
            self.schema.names_in_order(a.formula, &mut names);
        }
        names.truncate(SHOWN);
        names.iter().map(|&n| self.schema.name_text(n).into()).collect()
    }

    pub(super) fn goals_of_scalar(&self, context: Context) -> Option<Box<[ValId]>> {
        let parent = self.context(context.parent);
        match parent.phase {
            ParserPhase::ReturnRoot => Some([self.root].into()),
            _ => Some(self.frames[parent.return_frame()].goals.clone()),
        }
    }

    fn place_of_goals(&self, goals: GoalsId, seen: Seen) -> Option<String> {
        self.place_of(&self.frames[goals], seen)
    }

    /// Where a value is said to be so: of several places, the one on the way that was read.
    pub(super) fn place_of(&self, goals: &[ValId], seen: Seen) -> Option<String> {
        let said = *goals.first()?;
        let first = self.schema.doc.pointer(*self.schema.compiled.origin.get(&said)?);
        let more = self.schema.compiled.more_origins.iter().filter(|o| o.0 == said);
        let more = more.map(|&(_, context)| self.schema.doc.pointer(context));
        let way = path_to_end(seen.read);
        more.fold((path_match(&first, &way), first), |best, pointer| match path_match(&pointer, &way) {
            fits if fits > best.0 => (fits, pointer),
            _ => best,
        })
        .1
        .into()
    }

    fn place_of_object(&self, frame: ObjectFrameId) -> Option<String> {
        let a = self.frames[frame].alternatives.first()?;
        let shape = self.first_shape(a.formula)?;
        Some(self.schema.doc.pointer(self.schema.shape(shape).node))
    }

    fn first_shape(&self, o: ObjId) -> Option<ShapeId> {
        match self.schema.object(o) {
            Obj::Shape(s) | Obj::NotShape(s) => Some(*s),
            Obj::And(list) | Obj::Or(list) => list.iter().find_map(|&x| self.first_shape(x)),
            _ => None,
        }
    }
}

/// What stands for keys that are not shown.
const OTHER_KEYS: &str = "other keys";

/// A key of a list that may say how many others there are.
fn key_in_words(name: &str) -> String {
    if name.ends_with(OTHER_KEYS) && !name.starts_with('"') {
        return name.into();
    }
    format!("the key {name}")
}

/// The entries without repetitions, in their order.
fn distinct<T: Clone + Eq + std::hash::Hash>(mut list: Vec<T>) -> Vec<T> {
    let mut seen = rustc_hash::FxHashSet::default();
    list.retain(|entry| seen.insert(entry.clone()));
    list
}

/// A list as a sentence has it.
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// The numbers of a set: each where they are few, else their kind and bounds.
fn numbers_in_words(set: &NumSet) -> Vec<String> {
    if let Some(points) = set.finite(SHOWN) {
        return points.iter().map(Decimal::short).collect();
    }
    let kind = |unit: &Option<Decimal>| match unit {
        None => "a number".to_string(),
        Some(unit) if *unit == Decimal::one() => "an integer".to_string(),
        Some(unit) => format!("a multiple of {}", unit.short()),
    };
    match &set.pieces[..] {
        [only] => {
            let bound = |b: &Option<Bound>, closed: &str, open: &str| {
                b.as_ref().map(|b| format!(" {} {}", if b.open { open } else { closed }, b.at.short()))
            };
            let lo = bound(&only.lo, "from", "above").unwrap_or_default();
            let to = if only.lo.is_some() { "to" } else { "up to" };
            let hi = bound(&only.hi, to, "below").unwrap_or_default();
            let on = if hi.is_empty() && lo.starts_with(" from") { " on" } else { "" };
            vec![format!("{}{lo}{hi}{on}", kind(&only.unit))]
        }
        [first, rest @ ..] if rest.iter().all(|p| p.unit == first.unit) => vec![kind(&first.unit)],
        _ => vec!["a number".into()],
    }
}
