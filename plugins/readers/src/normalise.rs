//! Removes from names, messages and stacks what differs between two runs of the same failure.
//!
//! Every rule leaves a mark such as `<time>` that no rule matches. The rules are applied until nothing
//! changes, so that normalisation is idempotent.

mod paths;

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex_lite::Regex;
use sha2::{Digest as _, Sha256};

use crate::text;

/// Longest normalised name, in characters.
const MAX_NAME: usize = 300;
/// Characters of one text that are normalised.
const MAX_TEXT: usize = 8_000;
/// Most passes over a text. Only adversarial text needs more.
const MAX_PASSES: usize = 16;

/// Replacement rule.
struct Rule {
    /// Literals of which every match contains one. Searching for them first is much cheaper.
    needs: &'static [&'static str],
    pattern: &'static str,
    mark: &'static str,
}

const fn rule(needs: &'static [&'static str], pattern: &'static str, mark: &'static str) -> Rule {
    Rule { needs, pattern, mark }
}

const UUID: Rule = rule(
    &["-"],
    r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
    "<uuid>",
);
const ADDRESS: Rule = rule(&["0x"], r"0x[0-9a-fA-F]{5,}", "<address>");
/// Temporary file below a relative folder.
const TEMPORARY: Rule = rule(
    &["tmp", "rustdoctest"],
    r"\b(?:tmp[a-z0-9_]{8}|rustdoctest\w{6})\b|\.tmp[A-Za-z0-9]{6}\b",
    "<tmp>",
);

/// Rules for messages, in order.
const RULES: &[Rule] = &[
    UUID,
    // Points in time: RFC 3339, RFC 2822 and the like, a clock, seconds or milliseconds since 1970.
    rule(
        &["-"],
        r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?",
        "<time>",
    ),
    rule(
        &["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
        r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?:\d{1,2} \w{3}|\w{3} +\d{1,2})(?:,? \d{4})?",
        "<time>",
    ),
    rule(&[":"], r"\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b", "<time>"),
    rule(&["1"], r"\b1[4-9]\d{8}(?:\d{3})?(?:\.\d+)?\b", "<time>"),
    // Durations.
    rule(
        &["s", "h"],
        r"\b(?:\d+h ?)?(?:\d+m ?)?\d+(?:\.\d+)?(?:e-?\d+)?(?:ns|us|µs|μs|ms|s|h)\b",
        "<duration>",
    ),
    rule(
        &["s", "min", "hour", "CPU"],
        r"\b\d+(?:\.\d+)? (?:ns|us|µs|μs|ms|s|(?:milli)?sec(?:ond)?s?|min(?:ute)?s?|hours?|wallclock secs|c?usr|c?sys|CPU)\b",
        "<duration>",
    ),
    // Addresses, and the hashes that compilers put into symbols and files.
    ADDRESS,
    rule(&["::h"], r"::h[0-9a-f]{16}\b", ""),
    rule(&["-"], r"-[0-9a-f]{16}\b", "-<hash>"),
    // Random seeds.
    rule(
        &["seed", "SEED", "Seed"],
        r#"((?:seed|SEED|Seed)['"]?(?: ?[:=]| is| was| with)? ?)(?:0x[0-9a-f]+|\d+)\b"#,
        "${1}<seed>",
    ),
    // Processes and threads.
    rule(
        &["pid", "tid", "PID", "TID"],
        r"\b(p?pid|P?PID|tid|TID)\b( ?[:=]? ?)\d+",
        "${1}${2}<n>",
    ),
    rule(&["rocess "], r"\b([Pp]rocess) (?:id )?\d+", "${1} <n>"),
    rule(&["=="], r"==\d+==", "==<n>=="),
    rule(
        &["thread '"],
        r"\bthread '[^'\n]*'(?: \(\d+\))?",
        "thread '<thread>'",
    ),
    rule(&["ThreadId("], r"\bThreadId\(\d+\)", "ThreadId(<n>)"),
    rule(&["Thread-"], r"\bThread-\d+(?: \([^)\n]*\))?", "<thread>"),
    rule(
        &["ForkPoolWorker-", "ThreadPoolExecutor-", "-thread-", "[gw"],
        r"\b(?:ForkPoolWorker-\d+|ThreadPoolExecutor-\d+_\d+|pool-\d+-thread-\d+)|\[gw\d+\]",
        "<thread>",
    ),
    rule(
        &["started ", "goroutine "],
        r"\b(started|goroutine) \d+",
        "${1} <n>",
    ),
    // Lines and columns.
    rule(
        &[":"],
        r"((?:[\w.+@~-]+/)*[\w.+@~-]*\.[A-Za-z]\w{0,9}|<[a-z]+>):\d+(?::\d+)?",
        "${1}",
    ),
    rule(&["("], r"(\.[A-Za-z]\w{0,5})\(\d+(?:[,:]\d+)?\)", "${1}"),
    rule(&[" ("], r" \(\d+:\d+\)", ""),
    rule(&["line ", "col"], r"\b(line|column|col) \d+\b", "${1} <n>"),
    // A port that the system picked.
    rule(
        &[":3", ":4", ":5", ":6"],
        r"\b(localhost|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1?\]):[3-6]\d{4}\b",
        "${1}:<port>",
    ),
    TEMPORARY,
];

/// Rules for names of tests, which may contain text such as `waits 5 ms` or `line 3`.
const NAME_RULES: &[Rule] = &[
    UUID,
    ADDRESS,
    TEMPORARY,
    // Position of a doctest.
    rule(&[" (line "], r" \(line \d+\)", ""),
];

type Rules = Vec<(&'static Rule, Regex)>;

static COMPILED_RULES: LazyLock<Rules> = LazyLock::new(|| compile(RULES));
static COMPILED_NAME: LazyLock<Rules> = LazyLock::new(|| compile(NAME_RULES));

fn compile(rules: &'static [Rule]) -> Rules {
    rules
        .iter()
        .filter_map(|rule| Some((rule, Regex::new(rule.pattern).ok()?)))
        .collect()
}

/// Normaliser for the output of one run.
#[derive(Debug, Clone, Default)]
pub struct Normaliser {
    /// Folders that paths are made relative to, longest first, without trailing slash.
    roots: Vec<String>,
}

impl Normaliser {
    /// Makes a normaliser. Paths below one of `roots` become relative: pass the folder of the tests and the
    /// top of the workspace. Other absolute paths keep the part after a known library folder, or their last
    /// component, so that two checkouts agree without a known root.
    #[must_use]
    pub fn new<'a>(roots: impl IntoIterator<Item = &'a str>) -> Normaliser {
        let mut roots: Vec<String> = roots
            .into_iter()
            .map(|root| root.trim().trim_end_matches(['/', '\\']).to_owned())
            .filter(|root| root.chars().count() > 1 && !root.ends_with(':'))
            .collect();
        roots.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        roots.dedup();
        Normaliser { roots }
    }

    /// Normalises a message: removes colours, paths, positions, times, addresses and other values of one run.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let (bounded, _) = text::head(text, MAX_TEXT);
        self.until_stable(text::strip_ansi(bounded), &COMPILED_RULES)
    }

    /// Normalises the name of a test. Long names that differ only at the end stay different.
    #[must_use]
    pub fn name(&self, name: &str) -> String {
        let (bounded, _) = text::head(name.trim(), MAX_TEXT);
        let line = text::strip_ansi(bounded).replace('\n', " ");
        let name = self.until_stable(line, &COMPILED_NAME);
        match text::head(name.trim(), MAX_NAME) {
            (whole, true) => whole.to_owned(),
            (start, false) => cut_name(start, &name),
        }
    }

    /// Normalises the file of a frame: `./src/lib.rs:25:9` becomes `src/lib.rs`.
    #[must_use]
    pub fn path(&self, path: &str) -> String {
        let (bounded, _) = text::head(path.trim(), MAX_TEXT);
        let path = paths::without_place(bounded).replace('\\', "/");
        let path = path.strip_prefix("file://").unwrap_or(&path);
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        let path = paths::shorten(path, &self.roots).unwrap_or_else(|| path.to_owned());
        path.strip_prefix("./").map_or(path.clone(), str::to_owned)
    }

    /// Normalises the type of an exception: removes its module.
    #[must_use]
    pub fn kind(&self, kind: &str) -> String {
        let kind = self.text(kind);
        let kind = kind.trim_matches([' ', '\n', ':']);
        let dotted = kind
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '$'));
        match kind.rsplit('.').next() {
            Some(last) if dotted && !last.is_empty() => last.to_owned(),
            _ => kind.to_owned(),
        }
    }

    fn until_stable(&self, mut text: String, rules: &Rules) -> String {
        for _ in 0..MAX_PASSES {
            let next = self.pass(&text, rules);
            if next == text {
                break;
            }
            text = next;
        }
        text
    }

    fn pass(&self, text: &str, rules: &Rules) -> String {
        let mut text = paths::replace(text, &self.roots);
        for (rule, pattern) in rules {
            if rule.needs.iter().any(|needed| text.contains(needed)) && pattern.is_match(&text) {
                text = pattern.replace_all(&text, rule.mark).into_owned();
            }
        }
        text
    }
}

fn cut_name(start: &str, name: &str) -> String {
    let mut cut = format!("{start}…");
    for byte in Sha256::digest(name).iter().take(4) {
        let _ = write!(cut, "{byte:02x}");
    }
    cut
}

#[cfg(test)]
mod tests;
