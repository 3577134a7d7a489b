//! A choice between constraints that each begin with a text of their own: one of many tools, chosen by its name.
//!
//! In: branches, each read by itself ([`Branch::read`]) and shared by every list that contains it. A list is
//! sorted by the branches' texts, so a node of their trie is a range of the list: nothing is built for it.
//! What follows a branch's text is made when a text first reaches it: of ten thousand tools a text calls one
//! or two.
//! Invariant: a branch was read without an error, under the limits of any other constraint, so that to make
//! it later raises no error that to make it at once would not; it counts as much work in each list as it took
//! to read.
//! Complexity: a list costs its sort, once for all grammars that contain it; a byte costs two binary
//! searches.
//! Memory: a branch holds its texts.
//! Rejected: rules of a grammar, one for each branch (tables of all symbols for each list); shared machines
//! (their languages are ids in an arena for each constraint).

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use serde_json::{json, Value};

pub use super::rest::Rest;
use super::rest::ARENA;
use super::{machines, CompositeAutomaton, Part, Thread, ThreadRun};
use crate::error::{Error, Kind, Result};
use crate::hash::{Keyed, KeyedMap};
use crate::lexical::spell::ByteSet;
use crate::lexical::Lexicon;
use crate::limits::Limits;
use crate::schema::Options;
use crate::text_memo::TextMemo;
use crate::work;

/// The shortest texts of so many branches are compared: those with the least estimates.
const TRIED: usize = 4;
/// Most memory of known branches: bytes of their forms, times four.
const MOST: usize = 32 << 20;
/// A part that is not made yet.
const NONE: u32 = u32::MAX;

/// Branches by their forms.
static KNOWN: TextMemo<KeyedMap<Box<str>, Arc<Branch>>> = TextMemo::new(MOST);

/// A text, and what follows it.
pub struct Branch {
    head: Box<str>,
    rest: Arc<Rest>,
    schema: Option<Box<str>>,
    report: Vec<String>,
    work: u64,
    /// An estimate of the bytes of its shortest text.
    least: usize,
    hash: u64,
}

/// Equality and hash of a type with a stored hash; values with the same hash are compared.
macro_rules! by_hash {
    ($thing:ty, |$a:ident, $b:ident| $same:expr) => {
        impl PartialEq for $thing {
            fn eq(&self, other: &Self) -> bool {
                let ($a, $b) = (self, other);
                std::ptr::eq($a, $b) || $a.hash == $b.hash && $same
            }
        }

        impl Eq for $thing {}

        impl Hash for $thing {
            fn hash<H: Hasher>(&self, state: &mut H) {
                state.write_u64(self.hash);
            }
        }
    };
}

by_hash!(Branch, |a, b| a.head == b.head
    && a.schema == b.schema
    && (Arc::ptr_eq(&a.rest, &b.rest) || a.rest == b.rest));

by_hash!(Branches, |a, b| a.all == b.all);

impl std::fmt::Debug for Branch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?}", self.head, self.schema)
    }
}

impl Branch {
    /// Reads branches with the same rest: (text, schema in the slot) each.
    ///
    /// # Errors
    /// Those of the first schema that can't be read; a text that is empty.
    pub fn read(rest: &Arc<Rest>, all: Vec<(String, Option<String>)>) -> Result<Vec<Arc<Branch>>> {
        let of_rest = keys().hash_one(rest);
        let mut lexicon = None;
        let mut out = Vec::with_capacity(all.len());
        for (head, schema) in all {
            if head.is_empty() || schema.is_some() != rest.options.is_some() {
                return Err(Error::new(
                    Kind::InvalidGrammar,
                    "a branch begins with a text, and fills its slot",
                ));
            }
            let (mut report, mut work, mut least) = (rest.report.clone(), rest.work, head.len());
            if let (Some(text), Some(options)) = (&schema, &rest.options) {
                let read = read_schema(text, options, &mut lexicon)?;
                (report, work, least) = (read.report, work + read.work, least + read.least);
            }
            let hash = keys().hash_one((&head, of_rest, &schema));
            let (head, schema) = (head.into(), schema.map(String::into_boxed_str));
            out.push(Arc::new(Branch { head, rest: rest.clone(), schema, report, work, least, hash }));
        }
        Ok(out)
    }

    /// Reads branches with different rests: the text of each, and the rule of the table with which its rest
    /// begins ([`Rest::read_each`]). None for those whose rest may be empty.
    ///
    /// # Errors
    /// Those of the first that can't be read; a text that is empty.
    pub fn read_each(table: &str, all: Vec<(String, String)>) -> Result<Vec<Option<Arc<Branch>>>> {
        let (heads, starts): (Vec<String>, Vec<String>) = all.into_iter().unzip();
        let rests = Rest::read_each(table, &starts)?;
        let branch = |(head, rest): (String, Option<Arc<Rest>>)| {
            let Some(rest) = rest else { return Ok(None) };
            Branch::read(&rest, vec![(head, None)]).map(|mut all| all.pop())
        };
        heads.into_iter().zip(rests).map(branch).collect()
    }

    /// The branch of a form in plain data; recent ones are not read again.
    pub(crate) fn of_form(form: &Value) -> Result<Arc<Branch>> {
        let text = form.to_string();
        if let Some(branch) = KNOWN.find(|known| known.get(&*text).cloned()) {
            return Ok(branch);
        }
        let head = form["head"].as_str().unwrap_or_default().to_string();
        let branch =
            Branch::read(&Rest::read(&form["rest"].to_string(), None)?, vec![(head, None)])?.remove(0);
        KNOWN.add(4 * text.len(), |known| drop(known.insert(text.into(), branch.clone())));
        Ok(branch)
    }

    /// What was ignored or loosened.
    pub fn report(&self) -> &[String] {
        &self.report
    }

    /// The special tokens in what follows.
    pub fn specials(&self) -> &[Box<str>] {
        &self.rest.specials
    }

    /// Whether its rest has a schema of the branch's own.
    pub fn has_schema(&self) -> bool {
        self.schema.is_some()
    }

    /// As plain data.
    fn to_form(&self) -> Value {
        json!({ "head": self.head, "rest": self.form() })
    }

    /// Bytes of its texts.
    fn bytes(&self) -> usize {
        self.head.len() + self.schema.as_ref().map_or(0, |text| text.len()) + std::mem::size_of::<Branch>()
    }

    fn form(&self) -> Value {
        self.rest.form(self.schema.as_deref())
    }
}

/// A list of branches, sorted by their texts, and what every grammar that contains it needs.
pub struct Branches {
    all: Box<[Arc<Branch>]>,
    /// Each once, sorted.
    specials: Vec<Box<str>>,
    report: Vec<String>,
    work: u64,
    bytes: usize,
    hash: u64,
}

impl Branches {
    /// The order of `all` makes no difference.
    pub fn new(mut all: Vec<Arc<Branch>>) -> Arc<Branches> {
        all.sort_by(|a, b| a.head.cmp(&b.head));
        let mut rests: Vec<&Arc<Rest>> = all.iter().map(|branch| &branch.rest).collect();
        rests.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let mut specials: Vec<Box<str>> =
            rests.iter().flat_map(|rest| rest.specials.iter().cloned()).collect();
        crate::lists::sort_unique(&mut specials);
        let report = all.iter().flat_map(|branch| branch.report.iter().cloned()).collect();
        let work = all.iter().map(|branch| branch.work).sum();
        let bytes = all.iter().map(|branch| branch.bytes()).sum();
        let mut hasher = keys().build_hasher();
        all.iter().for_each(|branch| hasher.write_u64(branch.hash));
        Arc::new(Branches { hash: hasher.finish(), all: all.into(), specials, report, work, bytes })
    }

    /// The special tokens in what follows their texts.
    pub fn specials(&self) -> &[Box<str>] {
        &self.specials
    }

    /// As plain data.
    pub(crate) fn to_form(&self) -> Value {
        self.all.iter().map(|branch| branch.to_form()).collect()
    }

    /// Bytes of their texts.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl std::fmt::Debug for Branches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.all.fmt(f)
    }
}

/// The hash keys of this process, by which branches are compared.
fn keys() -> &'static Keyed {
    static KEYS: OnceLock<Keyed> = OnceLock::new();
    KEYS.get_or_init(Keyed::default)
}

/// The report of reading a schema, and its work.
struct SchemaReport {
    report: Vec<String>,
    work: u64,
    /// An estimate of the bytes of its shortest object.
    least: usize,
}

/// Reads a schema; `arena`: the one in which others were read.
fn read_schema(text: &str, options: &Options, arena: &mut Option<Box<Lexicon>>) -> Result<SchemaReport> {
    let lexicon = arena.take().and_then(|arena| (arena.bytes() < ARENA).then_some(arena)).unwrap_or_default();
    let read = work::run(Limits::default().work, || {
        machines::read(text, options.clone(), lexicon, &[]).map(|machine| (machine.schema, work::spent()))
    });
    let (schema, work) = read.map_err(Error::from).and_then(|read| read)?;
    let doc = &schema.doc;
    let needed = doc.key(schema.resolver.root(), "required").map_or(&[][..], |all| doc.items(all));
    let least = 2 + needed.iter().map(|&key| doc.str(key).map_or(8, str::len) + 8).sum::<usize>();
    *arena = Some(schema.lexicon);
    Ok(SchemaReport { report: schema.report, work, least })
}

/// A list of branches, and the parts of those that are made.
pub(super) struct BranchList {
    of: Arc<Branches>,
    made: Box<[u32]>,
}

/// A node of the trie of a list's texts: those from `low` to `high` begin with the same `depth` bytes, which
/// were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct BranchRange {
    list: u32,
    low: u32,
    high: u32,
    depth: u32,
}

impl BranchList {
    pub(super) fn len(&self) -> u32 {
        self.of.all.len() as u32
    }

    /// The byte of a text at a depth.
    fn byte_at(&self, at: u32, depth: u32) -> Option<u8> {
        self.of.all[at as usize].head.as_bytes().get(depth as usize).copied()
    }

    /// The part of the range whose texts have a byte at the depth.
    fn with_byte(&self, place: BranchRange, byte: u8) -> (u32, u32) {
        let range = &self.of.all[place.low as usize..place.high as usize];
        let at = |branch: &Arc<Branch>| branch.head.as_bytes().get(place.depth as usize).copied();
        let low = range.partition_point(|branch| at(branch) < Some(byte));
        let high = range.partition_point(|branch| at(branch) <= Some(byte));
        (place.low + low as u32, place.low + high as u32)
    }
}

impl CompositeAutomaton {
    /// The part of a list of branches.
    pub(super) fn branches(&mut self, of: Arc<Branches>) -> Result<u32> {
        if of.all.is_empty() {
            return Err(Error::new(
                Kind::UnsatisfiableGrammar,
                "a list without branches matches no text at all",
            ));
        }
        work::spend(of.work);
        self.report.extend(of.report.iter().cloned());
        let made = vec![NONE; of.all.len()].into();
        self.lists.push(BranchList { of, made });
        let list = self.lists.len() as u32 - 1;
        Ok(self.add(Part::Branches(list)))
    }

    pub(super) fn first_place(&self, list: u32) -> BranchRange {
        BranchRange { list, low: 0, high: self.lists[list as usize].len(), depth: 0 }
    }

    /// One byte of a branch's text; where the text ends, its rest begins.
    pub(super) fn step_branches(
        &mut self,
        return_id: super::ReturnId,
        place: BranchRange,
        byte: u8,
        out: &mut Vec<Thread>,
    ) {
        let list = &self.lists[place.list as usize];
        let (mut low, high) = list.with_byte(place, byte);
        let depth = place.depth + 1;
        while low < high && list_ends(&self.lists[place.list as usize], low, depth) {
            let part = self.branch(place.list, low);
            self.begin_part(part, return_id, out);
            low += 1;
        }
        if low < high {
            out.push(Thread {
                return_id,
                run: ThreadRun::Branches(BranchRange { low, high, depth, ..place }),
            });
        }
    }

    pub(super) fn branch_bytes(&self, place: BranchRange) -> ByteSet {
        let (list, mut set) = (&self.lists[place.list as usize], ByteSet::default());
        let mut low = place.low;
        while low < place.high {
            let byte = list.byte_at(low, place.depth).expect("texts that have ended are not in the range");
            set.insert(byte);
            low = list.with_byte(BranchRange { low, ..place }, byte).1;
        }
        set
    }

    /// The part of a branch's rest, made at its first use.
    pub(super) fn branch(&mut self, list: u32, at: u32) -> u32 {
        let known = self.lists[list as usize].made[at as usize];
        if known != NONE {
            return known;
        }
        let branch = self.lists[list as usize].of.all[at as usize].clone();
        let (parts, hosts, lines) = (self.parts.len(), self.hosts.len(), self.report.len());
        let part = self.part(&branch.form(), &branch.head).unwrap_or_else(|e| work::refuse(e));
        self.report.truncate(lines); // reported when the list was read
        if self.bound.is_some() {
            self.bind_specials(parts);
            self.measure_from(parts, hosts);
        }
        self.lists[list as usize].made[at as usize] = part;
        part
    }

    /// The special tokens that branches may have.
    pub(super) fn special_texts(&self) -> Vec<Box<str>> {
        let mut texts: Vec<Box<str>> =
            self.lists.iter().flat_map(|list| list.of.specials.iter().cloned()).collect();
        crate::lists::sort_unique(&mut texts);
        texts
    }

    /// A short completion from a place to the end of a branch: first, those with the least estimates are
    /// tried.
    pub(super) fn branch_completion(&mut self, place: BranchRange) -> Option<Vec<super::Piece>> {
        let all = &self.lists[place.list as usize].of.all;
        let mut order: Vec<u32> = (place.low..place.high).collect();
        let key = |at: &u32| (all[*at as usize].least, *at);
        if order.len() > TRIED {
            order.select_nth_unstable_by_key(TRIED, key);
        }
        let (first, others) = order.split_at(order.len().min(TRIED));
        let (first, others) = (first.to_vec(), others.to_vec());
        let best = first
            .iter()
            .filter_map(|&at| self.completion_through(place, at))
            .min_by_key(|way| super::completion::length(way));
        best.or_else(|| others.iter().find_map(|&at| self.completion_through(place, at)))
    }

    fn completion_through(&mut self, place: BranchRange, at: u32) -> Option<Vec<super::Piece>> {
        let part = self.branch(place.list, at);
        let head = self.lists[place.list as usize].of.all[at as usize].head.as_bytes()
            [place.depth as usize..]
            .to_vec();
        Some(crate::cfg::completion::joined(vec![super::Piece::Bytes(head)], self.word_of(part)?))
    }

    /// What may be read at a place, at most `most` texts of it.
    pub(super) fn branches_in_words(&self, place: BranchRange, most: usize) -> Vec<String> {
        let all = &self.lists[place.list as usize].of.all[place.low as usize..place.high as usize];
        let rest = |branch: &Arc<Branch>| {
            String::from_utf8_lossy(&branch.head.as_bytes()[place.depth as usize..]).into_owned()
        };
        let mut out: Vec<String> =
            all.iter().take(most).map(|branch| crate::lexical::in_words::quoted(&rest(branch))).collect();
        if all.len() > most {
            out.push(format!("{} other texts", all.len() - most));
        }
        out
    }
}

fn list_ends(list: &BranchList, at: u32, depth: u32) -> bool {
    list.of.all[at as usize].head.len() == depth as usize
}
