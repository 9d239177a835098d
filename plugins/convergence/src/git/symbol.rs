//! The name of what a line of code begins, in whichever language.

use crate::text;

/// Maximum length of a name, in characters.
const MAX_NAME: usize = 120;

/// The word behind one of these is the name.
const KEYWORDS: &[&str] = &[
    "fn",
    "def",
    "class",
    "func",
    "function",
    "struct",
    "enum",
    "trait",
    "mod",
    "interface",
    "type",
    "module",
    "namespace",
    "sub",
    "object",
    "record",
    "union",
    "protocol",
    "const",
    "let",
    "var",
    "static",
    "macro_rules!",
];

/// The name in a line such as `pub(crate) async fn divide<T>(a: T) -> T {`, or as much of the line as
/// tells what it is.
pub(super) fn name(line: &str) -> Option<String> {
    let line = line.trim();
    let whole = line.trim_end_matches(['{', ':', ' ', '(']);
    let found = match line.starts_with("impl") || line.starts_with("unsafe impl") {
        true => None,
        false => after_keyword(line).map(str::to_owned).or_else(|| called(line)),
    };
    let name = found.unwrap_or_else(|| whole.to_owned());
    let (name, _) = text::head(name.trim(), MAX_NAME);
    (!name.is_empty()).then(|| name.to_owned())
}

fn is_identifier(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '!' | '?')
}

fn after_keyword(line: &str) -> Option<&str> {
    let mut rest = line;
    loop {
        let (word, after) = first_word(rest);
        if KEYWORDS.contains(&word) {
            let (name, behind) = first_word(receiver(after.trim_start()));
            // Of `static int total(void)` the word behind is a type, of `const fn new()` a keyword.
            let may_be_type = matches!(word, "static" | "const") && !behind.contains('=');
            let is_type = may_be_type && behind.starts_with(' ') && behind.contains('(');
            if !name.is_empty() && !KEYWORDS.contains(&name) && !is_type {
                return Some(name);
            }
        }
        // Behind the parameters there is no head any more.
        let visibility = ["(crate)", "(super)", "(in "]
            .iter()
            .any(|start| after.starts_with(start));
        if after.starts_with('(') && !visibility {
            return None;
        }
        rest = after.get(after.find(is_identifier)?..)?;
    }
}

/// The identifier a text starts with, and the rest.
fn first_word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !is_identifier(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Text after the receiver of a method of Go: `(s *Server) Start()`.
fn receiver(line: &str) -> &str {
    line.strip_prefix('(')
        .and_then(|line| line.split_once(')'))
        .map_or(line, |(_, line)| line.trim_start())
}

/// The word before the parentheses: `int divide(int a, int b)`; with the text of `test('adds', …)`,
/// since every test in a file is a call of the same function.
fn called(line: &str) -> Option<String> {
    let (before, arguments) = line.split_once('(')?;
    let in_word = |c: char| is_identifier(c) || matches!(c, ':' | '.' | '~');
    let word = before
        .trim_end()
        .rsplit(|c| !in_word(c))
        .next()
        .filter(|word| !word.is_empty())?;
    let quote = arguments.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'));
    let text = quote.and_then(|quote| arguments.strip_prefix(quote)?.split_once(quote));
    Some(match (quote, text) {
        (Some(quote), Some((text, _))) => format!("{word}({quote}{text}{quote})"),
        _ => word.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named() {
        for (line, expected) in [
            ("fn foo", "foo"),
            ("pub(crate) async fn divide<T>(a: T) -> T {", "divide"),
            ("    pub const fn new() -> Self {", "new"),
            ("impl<T> Foo<T> for Bar {", "impl<T> Foo<T> for Bar"),
            ("def read(text):", "read"),
            ("class CalcTest(unittest.TestCase):", "CalcTest"),
            ("func (s *Server) Start(ctx context.Context) error {", "Start"),
            ("func Add(a, b int) int {", "Add"),
            ("export default async function load(path) {", "load"),
            ("const add = (a, b) => a + b;", "add"),
            ("test('adds', () => {", "test('adds')"),
            ("describe(\"doubling\", () => {", "describe(\"doubling\")"),
            ("static int divide(int a, int b)", "divide"),
            ("std::string Calc::name(int x) const", "Calc::name"),
            ("public class Calc extends Base {", "Calc"),
            ("## A heading", "## A heading"),
            ("[package]", "[package]"),
            ("größe(", "größe"),
        ] {
            assert_eq!(name(line).as_deref(), Some(expected), "{line}");
        }
        assert_eq!(name("  {"), None);
    }
}
