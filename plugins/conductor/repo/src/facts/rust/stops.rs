//! Where a reader of Rust has to look again: most of a source is passed over sixteen bytes at a time.

/// Bytes looked at together.
const LANES: usize = 16;

/// Bytes that are asked for it: one before them, and two behind.
type Window = [u8; LANES + 3];

/// Keywords that are looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keywords {
    /// Those that name other files.
    Imports,
    /// Those of all items.
    Items,
}

/// The next place from `start` on that holds a brace, `#`, quote, comment, `::`, `!` or what one of the
/// keywords begins with.
pub(super) fn next(bytes: &[u8], start: usize, keywords: Keywords) -> usize {
    match keywords {
        Keywords::Imports => search::<false>(bytes, start),
        Keywords::Items => search::<true>(bytes, start),
    }
}

fn search<const ITEMS: bool>(bytes: &[u8], start: usize) -> usize {
    let mut place = start;
    while place < bytes.len() {
        let around = place.checked_sub(1).and_then(|before| bytes.get(before..));
        let hits = match around.and_then(|rest| rest.first_chunk()) {
            Some(window) => hits::<ITEMS>(window),
            None => hits::<ITEMS>(&at_an_end(bytes, place)),
        };
        let hits = u128::from_le_bytes(hits);
        if hits != 0 {
            return place + hits.trailing_zeros() as usize / 8;
        }
        place += LANES;
    }
    bytes.len()
}

/// The bytes around a place, with zeros where there are none.
#[cold]
fn at_an_end(bytes: &[u8], place: usize) -> Window {
    let mut window = [0; LANES + 3];
    let from = place.saturating_sub(1);
    let rest = bytes.get(from..).unwrap_or_default();
    for (to, byte) in window.iter_mut().skip(1 + from - place).zip(rest) {
        *to = *byte;
    }
    window
}

/// Which bytes are looked for, as ones. Every byte is asked everything, without a branch, so that compilers
/// make vector instructions of it.
fn hits<const ITEMS: bool>(window: &Window) -> [u8; LANES] {
    let mut hits = [0; LANES];
    for (hit, [before, byte, second, third]) in hits.iter_mut().zip(window.array_windows()) {
        let is = |byte: &u8, wanted: u8| u8::from(*byte == wanted);
        let begins = |word: &[u8; 3]| is(byte, word[0]) & is(second, word[1]) & is(third, word[2]);
        let mark = is(byte, b'{')
            | is(byte, b'}')
            | is(byte, b'#')
            | is(byte, b'"')
            | is(byte, b'\'')
            | (is(byte, b'/') & (is(second, b'/') | is(second, b'*')))
            | (is(byte, b':') & is(second, b':'))
            | (is(byte, b'!') & (is(second, b'=') ^ 1));
        let mut keyword = begins(b"mod") | begins(b"use") | begins(b"ext");
        if ITEMS {
            keyword |= begins(b"str") | begins(b"sta") | begins(b"con") | begins(b"enu");
            keyword |= begins(b"tra") | begins(b"typ") | begins(b"uni") | (is(byte, b'f') & is(second, b'n'));
        }
        let is_inside = u8::from((*before | 0x20).wrapping_sub(b'a') < 26);
        *hit = mark | (keyword & (is_inside ^ 1));
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, keywords: Keywords) -> Vec<(usize, &str)> {
        let (mut found, mut place) = (Vec::new(), 0);
        while place < text.len() {
            place = next(text.as_bytes(), place, keywords);
            if let Some(rest) = text.get(place..).filter(|rest| !rest.is_empty()) {
                found.push((place, rest.get(..3).unwrap_or(rest)));
            }
            place += 1;
        }
        found
    }

    #[test]
    fn stops_are_found_wherever_they_stand() {
        let marks = [
            "{", "}", "#", "\"", "'", "//", "/*", "::", "!", "!a", "use", "mod", "extern",
        ];
        let items = [
            "fn", "struct", "static", "const", "enum", "trait", "type", "union",
        ];
        for (stop, only_items) in marks
            .map(|stop| (stop, false))
            .iter()
            .chain(&items.map(|stop| (stop, true)))
        {
            for before in 0..40 {
                for behind in [0, 1, 40] {
                    let text = format!("{}{stop}{}", " ".repeat(before), " ".repeat(behind));
                    let found = |keywords| next(text.as_bytes(), 0, keywords);
                    assert_eq!(found(Keywords::Items), before, "{text:?}");
                    let passed = text.len();
                    assert_eq!(
                        found(Keywords::Imports),
                        if *only_items { passed } else { before },
                        "{text:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_only_looks_like_a_stop_is_passed() {
        let text =
            "a: b / c != d because refuse xfn amode(1 + 2) ; [x] <y> & z . w, q = -5 % ~ | ^ @ $ ? \\ `";
        assert_eq!(all(text, Keywords::Items), []);
        assert_eq!(
            all("pub fn f() { use a; }", Keywords::Items),
            [(4, "fn "), (11, "{ u"), (13, "use"), (20, "}")]
        );
    }
}
