//! Repetitions of a body with assertions.

use super::{plain, Fail, Lowering};
use crate::regex::lang::Lang;
use crate::regex::syntax::Node;

impl Lowering {
    /// The language of a body whose assertions are all lookaheads decided within the rest of the body: a
    /// lookahead X before R with max |X| <= min |R| only says that R starts (or does not start) with X.
    pub(super) fn local(&mut self, body: &Node) -> Result<Option<Lang>, Fail> {
        if body.is_plain() {
            return Ok(Some(plain(body)));
        }
        match body {
            Node::Concat(parts) => {
                let mut rest = Lang::Epsilon;
                for part in parts.iter().rev() {
                    rest = match part {
                        Node::Look(look) if !look.behind && look.body.is_plain() => {
                            let seen = plain(&look.body);
                            let longest = seen.length_bounds().1;
                            let least = rest.length_bounds().0;
                            if longest.is_none_or(|longest| longest > least) {
                                return Ok(None);
                            }
                            let starts = Lang::concat([seen, Lang::any()]);
                            Lang::and([if look.negative { starts.not() } else { starts }, rest])
                        }
                        other => match self.local(other)? {
                            Some(lang) => Lang::concat([lang, rest]),
                            None => return Ok(None),
                        },
                    };
                }
                Ok(Some(rest))
            }
            Node::Alt(parts) => {
                let parts: Option<Vec<Lang>> = parts
                    .iter()
                    .map(|part| self.local(part))
                    .collect::<Result<Vec<_>, _>>()?
                    .into_iter()
                    .collect();
                Ok(parts.map(Lang::or))
            }
            Node::Repeat(inner, low, high) => Ok(self.local(inner)?.map(|lang| lang.repeat(*low, *high))),
            Node::Lazy(inner) => self.local(inner),
            _ => Ok(None),
        }
    }

    /// A body of lookaheads X and one character C, repeated up to the end of the string: every position but
    /// the end is the start of a round, so no suffix but the empty one may break an X:
    /// C{low,high} without any·(N and not empty), N the strings that break an X.
    pub(super) fn tempered(
        &mut self,
        body: &Node,
        low: u32,
        high: Option<u32>,
    ) -> Result<Option<Lang>, Fail> {
        let Node::Concat(parts) = body else {
            return Ok(None);
        };
        let Some((Node::Set(set), looks)) = parts.split_last() else {
            return Ok(None);
        };
        let mut out = vec![Lang::class(set.clone()).repeat(low, high)];
        for look in looks {
            let Node::Look(look) = look else {
                return Ok(None);
            };
            let mut past = look.behind;
            look.body.each_look(&mut |inner| past |= inner.behind);
            if past {
                return Ok(None);
            }
            let ends = vec![Lang::any(); self.pasts.len()];
            let seen = self.then(&look.body, &ends)?.swap_remove(0);
            let breaking = if look.negative { seen } else { seen.not() };
            let breaking = Lang::and([breaking, Lang::any_char().plus()]);
            out.push(Lang::concat([Lang::any(), without_plus(breaking)]).not());
        }
        Ok(Some(Lang::and(out)))
    }

    /// A body that asserts only about the past is linear in what follows: `then(body, K)[p]` is the union over q of
    /// `T[p][q] K[q]`. Its repetition is that of the matrix T (Kleene's construction over pasts).
    pub(super) fn rounds_over_pasts(
        &mut self,
        body: &Node,
        low: u32,
        high: Option<u32>,
        k: &[Lang],
    ) -> Result<Vec<Lang>, Fail> {
        let n = k.len();
        let mut columns = Vec::with_capacity(n);
        for q in 0..n {
            let unit: Vec<Lang> = (0..n).map(|p| if p == q { Lang::Epsilon } else { Lang::Empty }).collect();
            columns.push(self.then(body, &unit)?);
        }
        let matrix: Vec<Vec<Lang>> =
            (0..n).map(|p| columns.iter().map(|column| column[p].clone()).collect()).collect();
        if let [start, later] = &matrix[..] {
            return Ok(rounds_from_start(start, &later[1], low, high, k));
        }
        let mut total = match high {
            None => {
                let star = self.star(matrix.clone())?;
                apply(&star, k)
            }
            Some(high) => {
                let mut total = k.to_vec();
                for _ in low..high {
                    self.charge(&total)?;
                    let more = apply(&matrix, &total);
                    total = more.into_iter().zip(k).map(|(more, k)| Lang::or([more, k.clone()])).collect();
                }
                total
            }
        };
        for _ in 0..low {
            self.charge(&total)?;
            total = apply(&matrix, &total);
        }
        Ok(total)
    }

    /// The union of all powers of a matrix of languages.
    fn star(&mut self, mut m: Vec<Vec<Lang>>) -> Result<Vec<Vec<Lang>>, Fail> {
        for r in 0..m.len() {
            let around = m[r][r].clone().star();
            let row = m[r].clone();
            for p in 0..m.len() {
                let entry = m[p][r].clone();
                self.charge(&m[p])?;
                self.charge(&row)?;
                for q in 0..m.len() {
                    let through = Lang::concat([entry.clone(), around.clone(), row[q].clone()]);
                    m[p][q] = Lang::or([m[p][q].clone(), through]);
                }
            }
        }
        for (p, row) in m.iter_mut().enumerate() {
            row[p] = Lang::or([row[p].clone(), Lang::Epsilon]);
        }
        Ok(m)
    }
}

/// The same where only "nothing before" and "something before" are distinguished. At the start a round reads
/// nothing (`start[0]`, the empty string or no string) or leaves the start (`start[1]`); later each round is
/// `later`.
fn rounds_from_start(start: &[Lang], later: &Lang, low: u32, high: Option<u32>, k: &[Lang]) -> Vec<Lang> {
    let less = |count: Option<u32>| count.map(|count| count.saturating_sub(1));
    let stays = start[0].nullable();
    // Empty rounds at the start count as any number of the required ones.
    let needed = if stays { 0 } else { low.saturating_sub(1) };
    let leaves = if high == Some(0) {
        Lang::Empty
    } else {
        Lang::concat([start[1].clone(), later.clone().repeat(needed, less(high)), k[1].clone()])
    };
    let none = if low == 0 || stays { k[0].clone() } else { Lang::Empty };
    vec![Lang::or([none, leaves]), Lang::concat([later.clone().repeat(low, high), k[1].clone()])]
}

fn apply(matrix: &[Vec<Lang>], k: &[Lang]) -> Vec<Lang> {
    let times = |(entry, k): (&Lang, &Lang)| Lang::concat([entry.clone(), k.clone()]);
    matrix.iter().map(|row| Lang::or(row.iter().zip(k).map(times))).collect()
}

/// `x & any+` where x has no empty string anyway is x.
fn without_plus(breaking: Lang) -> Lang {
    match breaking {
        Lang::And(mut parts) => {
            let plus = Lang::any_char().plus();
            if parts.iter().any(|part| *part != plus && !part.nullable()) {
                parts.retain(|part| *part != plus);
            }
            Lang::and(parts)
        }
        other => other,
    }
}
