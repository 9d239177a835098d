//! Positions at which a reader of Rust must look: most of a source is skipped 64 bytes at a time.

/// Bytes tested together: the number of bits in a word of stops.
const LANES: usize = 64;

/// Bytes needed for that: one before them, and two after.
type Window = [u8; LANES + 3];

/// Stops of a reader of import keywords, and stops of a reader of items only.
const IMPORT_BIT: u8 = 1;
const ITEM_BIT: u8 = 2;

/// Keywords to search for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keywords {
    /// Keywords that name other files.
    Imports,
    /// Keywords of all items.
    Items,
}

/// Stops of a text. The stops around the last one are cached, because the next is usually among them.
pub(super) struct Stops<'a> {
    bytes: &'a [u8],
    /// Position of the first cached byte.
    from: usize,
    /// One bit for each cached byte.
    imports: u64,
    items: u64,
}

impl<'a> Stops<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Stops<'a> {
        let mut stops = Stops {
            bytes,
            from: 0,
            imports: 0,
            items: 0,
        };
        stops.look(0);
        stops
    }

    /// Next position from `start` with a brace, `#`, quote, comment, `::`, `!` or the beginning of a keyword.
    /// Other words may be among the positions.
    pub(super) fn next(&mut self, start: usize, keywords: Keywords) -> usize {
        let mut place = start;
        while place < self.bytes.len() {
            if place.wrapping_sub(self.from) >= LANES {
                self.look(place);
            }
            let stops = match keywords {
                Keywords::Imports => self.imports,
                Keywords::Items => self.imports | self.items,
            };
            let left = stops >> (place - self.from);
            if left != 0 {
                return place + left.trailing_zeros() as usize;
            }
            place = self.from + LANES;
        }
        self.bytes.len()
    }

    fn look(&mut self, place: usize) {
        let around = place.checked_sub(1).and_then(|before| self.bytes.get(before..));
        let stops = match around.and_then(|rest| rest.first_chunk()) {
            Some(window) => stops(window),
            None => stops(&at_an_end(self.bytes, place)),
        };
        self.from = place;
        self.imports = bits(&stops, IMPORT_BIT);
        self.items = bits(&stops, ITEM_BIT);
    }
}

/// Bytes around a position, with zeros outside of the text.
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

/// One bit for each byte: whether the byte is marked.
fn bits(marked: &[u8; LANES], mark: u8) -> u64 {
    /// Moves the lowest bit of each byte to the highest byte, the first byte lowest.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (bytes, _) = marked.as_chunks::<8>();
    let mut bits = 0;
    for eight in bytes.iter().rev() {
        let lowest = (u64::from_le_bytes(*eight) / u64::from(mark)) & 0x0101_0101_0101_0101;
        bits = (bits << 8) | (lowest.wrapping_mul(GATHER) >> 56);
    }
    bits
}

/// Three letters in one byte. Different words may share a value, but few do, and each keyword takes one
/// comparison instead of three.
const fn sum(letters: &[u8; 3]) -> u8 {
    let [first, second, third] = *letters;
    let last = third.wrapping_add(third);
    first
        .wrapping_add(second.wrapping_add(second))
        .wrapping_add(last.wrapping_add(last))
}

/// Stop marks of each byte. Every byte is tested for everything without a branch, so that compilers can
/// vectorise the loop.
fn stops(window: &Window) -> [u8; LANES] {
    let mut stops = [0; LANES];
    for (stop, [before, byte, second, third]) in stops.iter_mut().zip(window.array_windows()) {
        let is = |byte: &u8, wanted: u8| u8::from(*byte == wanted);
        let mark = is(byte, b'{')
            | is(byte, b'}')
            | is(byte, b'#')
            | is(byte, b'"')
            | is(byte, b'\'')
            | (is(byte, b'/') & (is(second, b'/') | is(second, b'*')))
            | (is(byte, b':') & is(second, b':'))
            | (is(byte, b'!') & (is(second, b'=') ^ 1));
        let letters = sum(&[*byte, *second, *third]);
        let begins = |word: &[u8; 3]| is(&letters, sum(word));
        let import = begins(b"mod") | begins(b"use") | begins(b"ext");
        let item = begins(b"str") | begins(b"sta") | begins(b"con") | begins(b"enu");
        let item = item | begins(b"tra") | begins(b"typ") | begins(b"uni");
        let item = item | (is(byte, b'f') & is(second, b'n'));
        let is_letter = |byte: u8| u8::from(byte.wrapping_sub(b'a') < 26);
        let is_first = is_letter(*byte) & (is_letter(*before | 0x20) ^ 1);
        *stop = (IMPORT_BIT * (mark | (import & is_first))) | (ITEM_BIT * (item & is_first));
    }
    stops
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, keywords: Keywords) -> Vec<(usize, &str)> {
        let (mut found, mut place) = (Vec::new(), 0);
        let mut stops = Stops::new(text.as_bytes());
        while place < text.len() {
            place = stops.next(place, keywords);
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
            for before in (0..4).chain(60..70).chain([130]) {
                for behind in [0, 1, 100] {
                    let text = format!("{}{stop}{}", " ".repeat(before), " ".repeat(behind));
                    let found = |keywords| Stops::new(text.as_bytes()).next(0, keywords);
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
