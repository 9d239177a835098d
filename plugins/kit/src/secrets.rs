//! Detection and removal of secrets in text, by their form or by the name before them.

use std::borrow::Cow;

use regex_lite::Regex;

/// A kind of secret that is detected by its form.
struct Kind {
    name: &'static str,
    /// Prefixes, so that only text after one of them is matched. All prefixes have the same first letter.
    begins: &'static [&'static str],
    /// True if a prefix matches only at the start of a word.
    is_word: bool,
    /// Pattern that matches from the prefix. The group `keep` is not part of the secret.
    pattern: &'static str,
    /// Length from which a secret needs no digit. Shorter text without a digit is taken for a word.
    plain: usize,
}

/// Kinds that are detected by their form, most certain first.
const KINDS: &[Kind] = &[
    Kind {
        name: "private key",
        begins: &["-----BEGIN "],
        is_word: false,
        // Matches a whole key, even if its end is missing.
        pattern: r"^(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\z)",
        plain: 0,
    },
    Kind {
        name: "GitHub token",
        begins: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        is_word: true,
        pattern: r"^(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})",
        plain: 0,
    },
    Kind {
        name: "AWS access key",
        begins: &["AKIA", "ASIA"],
        is_word: true,
        pattern: r"^(?:AKIA|ASIA)[0-9A-Z]{12,}",
        plain: 0,
    },
    Kind {
        name: "API key",
        begins: &["sk-"],
        is_word: true,
        pattern: r"^sk-[A-Za-z0-9_-]{12,}",
        plain: 20,
    },
    Kind {
        name: "Slack token",
        begins: &["xox"],
        is_word: true,
        pattern: r"^xox[abprs]-[A-Za-z0-9-]{10,}",
        plain: 0,
    },
    Kind {
        name: "bearer token",
        begins: &["bearer"],
        is_word: true,
        pattern: r"^(?P<keep>(?i:bearer)\s+)[A-Za-z0-9._~+/=-]{8,}",
        plain: 20,
    },
];

/// Kind that is detected by the name before it.
const NAMED_KIND: &str = "password or token";

/// Names of values that are secrets. Further letters, digits, `_` and `-` may surround a name.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "access-key",
    "accesskey",
    "private_key",
    "private-key",
    "privatekey",
    "token",
    "credential",
];

/// Maximum characters after a name that still belong to it.
const NAME_LIMIT: usize = 64;

/// Minimum bytes of a named value that counts as a secret.
const VALUE_MIN: usize = 4;

/// Detector of secrets.
#[derive(Debug)]
pub struct Secrets {
    /// Patterns, one for each of [`KINDS`].
    patterns: Vec<Regex>,
    named: bool,
}

/// Text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clean {
    /// Text with a mark in place of each secret.
    pub text: String,
    /// Kind that was found first.
    pub kind: &'static str,
    /// Number of secrets.
    pub count: usize,
}

impl Secrets {
    /// Creates a detector of all kinds.
    pub fn new() -> Result<Secrets, regex_lite::Error> {
        let patterns: Result<_, _> = KINDS.iter().map(|kind| Regex::new(kind.pattern)).collect();
        Ok(Secrets {
            patterns: patterns?,
            named: true,
        })
    }

    /// Sets whether values after names such as `password=` are detected as well.
    #[must_use]
    pub fn named(mut self, named: bool) -> Secrets {
        self.named = named;
        self
    }

    /// Replaces each secret in a text with a mark. `None` if the text has no secret.
    #[must_use]
    pub fn cut_out(&self, text: &str, mark: &str) -> Option<Clean> {
        let mut text = Cow::Borrowed(text);
        let (mut first, mut count) = (None, 0);
        for (kind, pattern) in KINDS.iter().zip(&self.patterns) {
            let find = |rest: &str| kind.find(pattern, rest);
            let found = replace(&mut text, kind.begins, kind.is_word, mark, find);
            first = first.or((found > 0).then_some(kind.name));
            count += found;
        }
        if self.named {
            let find =
                |rest: &str| named_value(rest).filter(|(start, end)| rest.get(*start..*end) != Some(mark));
            let found = replace(&mut text, SECRET_NAMES, false, mark, find);
            first = first.or((found > 0).then_some(NAMED_KIND));
            count += found;
        }
        first.map(|kind| Clean {
            text: text.into_owned(),
            kind,
            count,
        })
    }
}

impl Kind {
    /// Byte range of the secret at the start of a text.
    fn find(&self, pattern: &Regex, text: &str) -> Option<(usize, usize)> {
        let captures = pattern.captures(text)?;
        let whole = captures.get(0)?;
        let start = captures.name("keep").map_or(0, |keep| keep.end());
        let secret = text.get(start..whole.end())?;
        let is_plain = secret.len() < self.plain && !secret.bytes().any(|byte| byte.is_ascii_digit());
        let is_word = is_plain && !secret.trim_end_matches('.').contains(['.', '_', '~', '+', '=']);
        (!is_word).then_some((start, whole.end()))
    }
}

/// Replaces everything that `find` finds after a prefix with the mark. Returns the number of replaced parts.
fn replace(
    text: &mut Cow<'_, str>,
    begins: &[&str],
    is_word: bool,
    mark: &str,
    find: impl Fn(&str) -> Option<(usize, usize)>,
) -> usize {
    let begins = Begins::of(begins);
    let mut clean = String::new();
    let (mut copied, mut from, mut count) = (0, 0, 0);
    while let Some(begin) = begins.next(text, from) {
        from = begin + 1;
        let is_inside = is_word && text.as_bytes().get(..begin).is_some_and(ends_in_word);
        let rest = text.get(begin..).filter(|_| !is_inside);
        if let Some((start, end)) = rest.and_then(&find) {
            clean.push_str(text.get(copied..begin + start).unwrap_or_default());
            clean.push_str(mark);
            copied = begin + end;
            from = copied;
            count += 1;
        }
    }
    if count > 0 {
        clean.push_str(text.get(copied..).unwrap_or_default());
        *text = Cow::Owned(clean);
    }
    count
}

/// Index of prefixes by their first two bytes, so that few positions of a text are compared.
struct Begins<'a> {
    all: &'a [&'a str],
    /// For each byte, whether it is the first or the second byte of a prefix, in either case.
    bytes: [(bool, bool); 256],
}

impl<'a> Begins<'a> {
    fn of(all: &'a [&'a str]) -> Begins<'a> {
        let mut bytes = [(false, false); 256];
        for begin in all {
            let mut letters = begin.bytes();
            for (first, byte) in [(true, letters.next()), (false, letters.next())] {
                let byte = byte.unwrap_or_default();
                for byte in [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()] {
                    if let Some(seen) = bytes.get_mut(usize::from(byte)) {
                        *seen = (seen.0 || first, seen.1 || !first);
                    }
                }
            }
        }
        Begins { all, bytes }
    }

    fn seen(&self, byte: u8) -> (bool, bool) {
        self.bytes.get(usize::from(byte)).copied().unwrap_or_default()
    }

    /// Next position with a prefix.
    fn next(&self, text: &str, mut from: usize) -> Option<usize> {
        loop {
            let rest = text.as_bytes().get(from..)?;
            let place = rest.iter().position(|byte| self.seen(*byte).0)?;
            let rest = rest.get(place..)?;
            let is_second = rest.get(1).is_some_and(|byte| self.seen(*byte).1);
            if is_second && self.all.iter().any(|begin| starts_with(rest, begin.as_bytes())) {
                return Some(from + place);
            }
            from += place + 1;
        }
    }
}

/// Returns whether bytes start with some ASCII text, ignoring case.
fn starts_with(bytes: &[u8], ascii: &[u8]) -> bool {
    bytes
        .get(..ascii.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(ascii))
}

fn ends_in_word(before: &[u8]) -> bool {
    before
        .last()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Byte range of the value after a name at the start of a text: `password = '…'`, `"api_key": "…"`, `TOKEN=…`, also
/// inside JSON text with escaped quotes.
fn named_value(text: &str) -> Option<(usize, usize)> {
    let mut rest = Rest { text, at: 0 };
    let name = rest.skip(NAME_LIMIT, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
    });
    rest.skip(usize::MAX, |byte| byte == b'\\');
    rest.skip(1, |byte| matches!(byte, b'"' | b'\''));
    rest.skip(usize::MAX, |byte| byte.is_ascii_whitespace());
    let separators = rest.skip(2, |byte| matches!(byte, b':' | b'='));
    if name == 0 || separators == 0 {
        return None;
    }
    rest.skip(1, |byte| byte == b'>');
    rest.skip(usize::MAX, |byte| byte.is_ascii_whitespace());
    rest.skip(usize::MAX, |byte| byte == b'\\');
    let quote = rest.peek().filter(|byte| matches!(byte, b'"' | b'\''));
    rest.skip(usize::from(quote.is_some()), |_| true);
    let start = rest.at;
    let length = rest.skip(usize::MAX, |byte| match quote {
        Some(quote) => byte != quote && byte != b'\n',
        None => !byte.is_ascii_whitespace() && !b"\"',;}[\\".contains(&byte),
    });
    (length >= VALUE_MIN).then_some((start, rest.at))
}

/// A text that is consumed from its beginning.
struct Rest<'a> {
    text: &'a str,
    at: usize,
}

impl Rest<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips at most `most` bytes, and returns how many.
    fn skip(&mut self, most: usize, is_part: impl Fn(u8) -> bool) -> usize {
        let start = self.at;
        while self.at - start < most && self.peek().is_some_and(&is_part) {
            self.at += 1;
        }
        self.at - start
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    fn cleaned(texts: &[&str]) -> String {
        let secrets = Secrets::new().unwrap();
        let mut log = String::new();
        for text in texts {
            let _ = match secrets.cut_out(text, "[]") {
                Some(clean) => writeln!(log, "{} {}: {:?}", clean.count, clean.kind, clean.text),
                None => writeln!(log, "none: {text:?}"),
            };
        }
        log
    }

    #[test]
    fn secrets_are_cut_out_and_the_rest_stays() {
        expect![[r#"
            1 GitHub token: "token [] here"
            2 GitHub token: "é[],[]"
            1 API key: "[]"
            1 API key: "[]"
            1 AWS access key: "key []."
            1 Slack token: "[]"
            1 bearer token: "Authorization: Bearer []"
            1 bearer token: "BEARER []"
            1 private key: "[]\nafter"
            1 private key: "[]"
            1 password or token: "DB_PASSWORD=[] next"
            1 password or token: "{\"api_key\": \"[]\", \"name\": \"x\"}"
            1 password or token: "password = \"[]\" next"
            1 password or token: "secret: '[]' next"
            1 password or token: "{\\\"token\\\": \\\"[]\", \\\"n\\\": 1}"
            1 password or token: "API_TOKEN := []"
            1 GitHub token: "{\"token\": \"[]\"}"
            1 password or token: "TOKEN => []"
        "#]]
        .assert_eq(&cleaned(&[
            "token ghp_abcdefghijklmnopqrstuvwxyz0123456789 here",
            "éghp_0123456789abcdefghij,gho_0123456789abcdefghij",
            "sk-proj-abcdefghijklmnop",
            "sk-abcdefgh1234",
            "key AKIAIOSFODNN7EXAMPLE.",
            "xoxb-1234567890-abcdef",
            "Authorization: Bearer abc.def-ghi_jkl",
            "BEARER abcdefghijklmnopqrst",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nafter",
            "-----BEGIN PRIVATE KEY-----\nMIIE cut off",
            "DB_PASSWORD=hunter22 next",
            r#"{"api_key": "value-1234", "name": "x"}"#,
            r#"password = "two words, a comma" next"#,
            "secret: 'it is; long' next",
            r#"{\"token\": \"abcd-1234\", \"n\": 1}"#,
            "API_TOKEN := abcd1234",
            r#"{"token": "ghp_abcdefghijklmnopqrstuvwxyz0123456789"}"#,
            "TOKEN => größer",
        ]));
    }

    #[test]
    fn words_are_no_secrets() {
        for text in [
            "nothing secret: the password field is checked; task-sk- and a ghp_short",
            "risk-free, sk-short, sk-translation-file",
            "the bearer of news, the bearer presents. A bearer certificate",
            "desk-lamp-with-a-very-long-name-indeed",
            "AKIA",
            "password=abc",
            "tokens are counted",
        ] {
            assert_eq!(cleaned(&[text]), format!("none: {text:?}\n"));
        }
    }

    #[test]
    fn names_count_only_if_wanted() {
        let secrets = Secrets::new().unwrap().named(false);
        assert_eq!(secrets.cut_out("password=hunter22", "[]"), None);
        assert!(secrets.cut_out("sk-abcdefgh1234", "[]").is_some());
    }

    /// Text with many prefixes takes about as long as any other.
    #[test]
    fn beginnings_without_secrets_are_passed_over() {
        for begin in ["token_", "password", "-----BEGIN ", "sk-", "bearer "] {
            let text = begin.repeat(100_000);
            let _ = Secrets::new().unwrap().cut_out(&text, "[]");
        }
    }
}
