//! Source of assertions that failed: two assertions with the same values are told apart by it, and it shows which of two
//! values the code under test made.

use crate::fingerprint::detail::values;

/// Longest assertion, in characters.
const MAX_TEXT: usize = 1_000;
/// Words of literals. All other names in small letters are made by code.
const LITERALS: &[&str] = &[
    "true",
    "false",
    "null",
    "undefined",
    "nil",
    "vec",
    "u8",
    "u16",
    "u32",
    "u64",
    "i8",
    "i16",
    "i32",
    "i64",
    "f32",
    "f64",
    "usize",
    "isize",
    "new",
];
/// Beginnings of names of values that somebody expects.
const EXPECTED_PREFIXES: &[&str] = &["expect", "want"];

/// Position in a source file, as a tool prints it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Path, absolute or relative.
    pub path: String,
    line: usize,
    column: Option<usize>,
    /// The line, if the tool prints it.
    pub(crate) printed: Option<String>,
}

impl Place {
    /// `src/lib.rs:25:9`, `test_calc.py:3`.
    pub(crate) fn read(text: &str) -> Option<Place> {
        let (before, last) = text.rsplit_once(':')?;
        let last: usize = last.parse().ok()?;
        let whole = before
            .rsplit_once(':')
            .and_then(|(path, line)| Some((path, line.parse::<usize>().ok()?)));
        let (path, line, column) = match whole {
            Some((path, line)) => (path, line, Some(last)),
            None => (before, last, None),
        };
        Some(Place {
            path: path.strip_prefix("file://").unwrap_or(path).to_owned(),
            line,
            column,
            printed: None,
        })
    }

    /// Beginning of comments in the file.
    fn comment(&self) -> &'static str {
        const BY_HASH: [&str; 7] = [".py", ".rb", ".sh", ".ex", ".exs", ".pl", ".php"];
        match BY_HASH.iter().any(|extension| self.path.ends_with(extension)) {
            true => "#",
            false => "//",
        }
    }

    /// The assertion at this place: the line that it begins in, and the call.
    pub(crate) fn assertion(&self, source: Option<&str>) -> Option<Assertion> {
        let Some(source) = source else {
            let line = self.printed.as_deref().filter(|line| is_balanced(line))?;
            let line = statement(line, self.comment(), false);
            return Some(Assertion {
                call: line.clone(),
                line,
            });
        };
        let mut at = 0;
        for _ in 1..self.line {
            at += source.get(at..)?.find('\n')? + 1;
        }
        let rest = source.get(at..)?;
        let comment = self.comment();
        let line = statement(rest, comment, false);
        let call = match self.column.and_then(|column| column.checked_sub(1)) {
            Some(column) => {
                let start = rest.char_indices().nth(column).map(|(start, _)| start)?;
                statement(rest.get(start..)?, comment, true)
            }
            None => line.clone(),
        };
        (!line.is_empty()).then_some(Assertion { line, call })
    }
}

/// Source of an assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assertion {
    pub(crate) line: String,
    call: String,
}

impl Assertion {
    /// Both parts, for comparison: without the blanks that a formatter moves.
    pub(crate) fn text(&self) -> String {
        format!("{}\n{}", bare(&self.line), bare(&self.call))
    }
}

/// A text without blanks but those between words, and without a comma before a bracket.
fn bare(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut bare = String::new();
    let mut is_apart = false;
    for c in text.chars() {
        if c.is_whitespace() {
            is_apart = true;
            continue;
        }
        if is_apart && is_word(c) && bare.ends_with(is_word) {
            bare.push(' ');
        }
        if matches!(c, ')' | ']' | '}') && bare.ends_with(',') {
            bare.pop();
        }
        is_apart = false;
        bare.push(c);
    }
    bare
}

/// Text up to the end of its line, with the lines that its brackets take, without comments. `is_call` ends it with the
/// first bracket.
fn statement(text: &str, comment: &str, is_call: bool) -> String {
    let (mut depth, mut kept) = (0usize, String::new());
    let (mut quote, mut is_escaped, mut is_comment): (Option<char>, bool, bool) = (None, false, false);
    for (at, c) in text.char_indices().take(MAX_TEXT) {
        if is_comment && c != '\n' {
            continue;
        }
        is_comment = false;
        if let Some(open) = quote {
            // A text ends with its line, in case that the sign was none of a text.
            let ends = (c == open && !is_escaped) || c == '\n';
            is_escaped = c == '\\' && !is_escaped;
            if !ends {
                kept.push(c);
                continue;
            }
            quote = None;
            if c != '\n' {
                kept.push(c);
                continue;
            }
        }
        let is_after_blank =
            kept.is_empty() || kept.ends_with(char::is_whitespace) || kept.ends_with([';', ',']);
        if is_after_blank && text.get(at..).is_some_and(|rest| rest.starts_with(comment)) {
            is_comment = true;
            continue;
        }
        if matches!(c, '"' | '`') || (c == '\'' && comment == "#") {
            quote = Some(c);
        }
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '\n' if depth == 0 => break,
            _ => {}
        }
        kept.push(c);
        if is_call && depth == 0 && matches!(c, ')' | ']' | '}') {
            break;
        }
    }
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn is_balanced(text: &str) -> bool {
    let count = |all: [char; 3]| text.chars().filter(|c| all.contains(c)).count();
    count(['(', '[', '{']) <= count([')', ']', '}'])
}

/// Value of an assertion that the code under test made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Made {
    /// Nobody knows. It is taken to be the left one, as is the custom of most tools.
    #[default]
    Unknown,
    Left,
    Right,
    Both,
}

/// Operators that Python's `assert` compares with.
const OPERATORS: &[&str] = &[
    " == ", " != ", " is not ", " is ", " not in ", " in ", " <= ", " >= ", " < ", " > ",
];

/// Says which value of an assertion was made: `assertEqual(2, f(1))`, `assert 2 == r`.
pub(crate) fn made(assertion: &Assertion) -> Made {
    let call = assertion.call.trim();
    let (name, left, right) = match call.strip_prefix("assert ") {
        Some(compared) => match values::split(compared, OPERATORS) {
            Some((left, operator, right)) => (operator, left, right),
            None => return Made::Unknown,
        },
        None => {
            let Some((name, arguments)) = call.split_once('(') else {
                return Made::Unknown;
            };
            let arguments = arguments.strip_suffix(')').unwrap_or(arguments);
            let end = values::end(arguments, &[',']);
            let Some(rest) = arguments.get(end..).and_then(|rest| rest.strip_prefix(',')) else {
                return Made::Unknown;
            };
            let right = rest.get(..values::end(rest, &[','])).unwrap_or(rest);
            (name, arguments.get(..end).unwrap_or_default(), right)
        }
    };
    let differs = [
        "NotEqual",
        "notEqual",
        "notStrictEqual",
        "notDeep",
        "assert_ne",
        " != ",
    ]
    .iter()
    .any(|word| name.contains(word));
    match (is_expected(left), is_expected(right)) {
        (false, true) => Made::Left,
        (true, false) => Made::Right,
        (false, false) if differs => Made::Both,
        _ => Made::Unknown,
    }
}

/// True for a literal, a constant, a value that is built of such, and a name that says so.
fn is_expected(value: &str) -> bool {
    let value = value.trim().trim_start_matches(['&', '*', '-']);
    if EXPECTED_PREFIXES.iter().any(|name| value.starts_with(name)) {
        return true;
    }
    let (mut quote, mut is_escaped, mut bare) = (None, false, String::new());
    for c in value.chars() {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if c == '\\' => is_escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '\'' | '"' | '`') => {
                quote = Some(c);
                // `b'…'`.
                let start = bare.trim_end_matches(['b', 'r', 'f', 'u']).len();
                if !bare
                    .get(..start)
                    .is_some_and(|bare| bare.ends_with(char::is_alphanumeric))
                {
                    bare.truncate(start);
                }
            }
            None => bare.push(c),
        }
    }
    let words = bare.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mut words = words.filter(|word| !word.is_empty());
    words.all(|word| {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        is_number || word.starts_with(char::is_uppercase) || LITERALS.contains(&word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_says_which_value_was_made() {
        let made = |call: &str| {
            made(&Assertion {
                line: String::new(),
                call: call.to_owned(),
            })
        };
        for (call, expected) in [
            ("self.assertEqual(2, f(1))", Made::Right),
            ("self.assertEqual(f(1), 2)", Made::Left),
            ("self.assertEqual(f(i), i)", Made::Unknown),
            ("self.assertEqual(Decimal(\"2, 3\"), f(1), 'total')", Made::Right),
            ("self.assertEqual(expected, f(1))", Made::Right),
            ("self.assertEqual(b'x', f(b'x'))", Made::Right),
            ("self.assertGreater(2, f(1))", Made::Right),
            ("self.assertIn(f(1), [1, 2])", Made::Left),
            ("self.assertIn('a', f(1))", Made::Right),
            ("self.assertNotEqual(f(1), f(1))", Made::Both),
            ("self.assertTrue(f(1))", Made::Unknown),
            ("assert 2 == r", Made::Right),
            ("assert r == 2", Made::Left),
            ("assert r == [f(1), 2]", Made::Unknown),
            ("assert 2 > r", Made::Right),
            ("assert_eq!(2, f(1))", Made::Right),
            ("assert_eq!(f(1), Some(2), \"f({})\", 1)", Made::Left),
            ("equal(-2, f(1))", Made::Right),
            ("notEqual(f(1), f(1))", Made::Both),
            ("deepEqual({}, f(1))", Made::Right),
        ] {
            assert_eq!(made(call), expected, "{call}");
        }
    }

    #[test]
    fn an_assertion_is_read_at_its_place() {
        let source = "fn a() {\n    assert_eq!(f(1), 0); assert_eq!(f(2), 0);\n    assert_eq!(\n        f(3),\n        0\n    );\n}\n";
        let call = |place: &str| {
            let found = Place::read(place).unwrap().assertion(Some(source)).unwrap();
            found.call
        };
        assert_eq!(call("src/lib.rs:2:5"), "assert_eq!(f(1), 0)");
        assert_eq!(call("src/lib.rs:2:26"), "assert_eq!(f(2), 0)");
        assert_eq!(call("src/lib.rs:3:5"), "assert_eq!( f(3), 0 )");
        assert_eq!(call("src/lib.rs:2"), "assert_eq!(f(1), 0); assert_eq!(f(2), 0);");
        assert_eq!(
            Place::read("src/lib.rs:99:1").unwrap().assertion(Some(source)),
            None
        );
        assert_eq!(Place::read("src/lib.rs:2:1").unwrap().assertion(None), None);
        assert_eq!(Place::read("file:///x/a.mjs:2:5").unwrap().path, "/x/a.mjs");
    }

    #[test]
    fn comments_and_blanks_are_no_edit_of_an_assertion() {
        let text = |place: &str, source: &str| {
            let found = Place::read(place).unwrap().assertion(Some(source)).unwrap();
            found.text()
        };
        for (place, sources) in [
            (
                "test_a.py:1",
                [
                    "self.assertEqual(f(1), 0)  # try 1\n",
                    "self.assertEqual( f(1),0 )\n",
                    "self.assertEqual(\n  f(1),  # one\n  0,\n)\n",
                ],
            ),
            (
                "a.mjs:1:1",
                [
                    "assert.equal(f(1), 0); // try 1\n",
                    "assert.equal( f(1),0 );\n",
                    "assert.equal(\n  f(1),\n  0,\n);\n",
                ],
            ),
        ] {
            let call = |source: &&str| {
                text(place, source)
                    .split('\n')
                    .next_back()
                    .unwrap()
                    .trim_end_matches(';')
                    .to_owned()
            };
            let [first, second, third] = sources.each_ref().map(call);
            assert_eq!(first, second);
            assert_eq!(second, third);
        }
        assert_ne!(
            text("a.py:1", "assert f('a # b') == 1\n"),
            text("a.py:1", "assert f('a # c') == 1\n")
        );
        assert_ne!(
            text("a.rs:1:1", "assert!(f(\"//a\"))\n"),
            text("a.rs:1:1", "assert!(f(\"//b\"))\n")
        );
    }

    proptest::proptest! {
        #[test]
        fn any_source_is_read(source in "(\\PC|[(\n,'\")]){0,40}", place in "\\PC{0,5}:[0-9]{1,3}(:[0-9]{1,3})?") {
            if let Some(found) = Place::read(&place).and_then(|place| place.assertion(Some(&source))) {
                made(&found);
            }
        }
    }
}
