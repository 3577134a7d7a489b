//! Which of several equal schemas is meant in a message: the one whose JSON pointer fits the path to the end of a text.
//!
//! Equal schemas are one formula with one number, so the keys and items that were read decide.
//! Complexity: linear in the text, and in the pointers of one formula.

/// The keys on the way to the end of a text, as they are written; `None` stands for an item.
pub(super) fn path_to_end(read: &[u8]) -> Vec<Option<&[u8]>> {
    let (mut way, mut text, mut at): (Vec<Option<&[u8]>>, &[u8], usize) = (Vec::new(), &[], 0);
    while at < read.len() {
        match read[at] {
            b'"' => {
                let start = at + 1;
                at = start;
                while at < read.len() && read[at] != b'"' {
                    at += 1 + (read[at] == b'\\') as usize;
                }
                text = &read[start..at.min(read.len())];
            }
            b'{' => way.push(Some(&[])),
            b'[' => way.push(None),
            b'}' | b']' => {
                way.pop();
            }
            b':' => {
                if let Some(Some(key)) = way.last_mut() {
                    *key = text;
                }
            }
            _ => {}
        }
        at += 1;
    }
    way
}

/// How well the place of a schema fits a way: the steps that it names, from the last one back.
pub(super) fn path_match(pointer: &str, way: &[Option<&[u8]>]) -> i32 {
    let parts: Vec<String> =
        pointer.split('/').skip(1).map(|p| p.replace("~1", "/").replace("~0", "~")).collect();
    let (mut left, mut fits) = (&parts[..], 0);
    let number = |part: &String| part.bytes().all(|b| b.is_ascii_digit());
    let skip = |mut left: &[String]| -> usize {
        loop {
            left = match left {
                [rest @ .., word, n] if number(n) && ["allOf", "anyOf", "oneOf"].contains(&word.as_str()) => {
                    rest
                }
                [rest @ .., word] if ["then", "else", "if", "not"].contains(&word.as_str()) => rest,
                _ => return left.len(),
            };
        }
    };
    for step in way.iter().rev() {
        left = &left[..skip(left)];
        left = match (left, step) {
            ([rest @ .., word, name], Some(key)) if word == "properties" && name.as_bytes() == *key => {
                fits += 2;
                rest
            }
            ([rest @ .., word, _], Some(_)) if word == "patternProperties" => rest,
            ([rest @ .., word], Some(_)) if word.ends_with("Properties") => rest,
            ([rest @ .., word, n], None) if number(n) && word.to_lowercase().ends_with("items") => rest,
            ([rest @ .., word], None) if word.to_lowercase().ends_with("items") || word == "contains" => rest,
            _ => return fits,
        };
        fits += 1;
    }
    fits - !left[..skip(left)].is_empty() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_the_keys_and_items_that_are_open() {
        let way = |text: &'static str| -> Vec<Option<&str>> {
            path_to_end(text.as_bytes()).iter().map(|s| s.map(|k| std::str::from_utf8(k).unwrap())).collect()
        };
        assert_eq!(way(r#"{"a": {"b\"": 1, "c": "#), [Some("a"), Some("c")]);
        assert_eq!(way(r#"{"a": [1, {"}": "]"}, "#), [Some("a"), None]);
        assert!(way("12").is_empty());
    }

    #[test]
    fn the_place_on_the_way_fits_best() {
        let way = path_to_end(br#"{"c": {"a": "#);
        let best = |places: &[&'static str]| *places.iter().max_by_key(|p| path_match(p, &way)).unwrap();
        assert_eq!(
            best(&["/properties/a", "/properties/b", "/properties/c/properties/a"]),
            "/properties/c/properties/a"
        );
        assert_eq!(
            best(&["/properties/b", "/properties/c/allOf/0/properties/a"]),
            "/properties/c/allOf/0/properties/a"
        );
        assert!(
            path_match("/properties/a", &path_to_end(br#"{"a": "#))
                > path_match("/properties/c/properties/a", &path_to_end(br#"{"a": "#))
        );
        assert!(
            path_match("/items", &path_to_end(b"[1, ")) > path_match("/properties/a", &path_to_end(b"[1, "))
        );
    }
}
