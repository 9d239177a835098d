//! Messages of assertions without the values that the code under test made.
//!
//! A second wrong value at the same assertion is no progress, and another assertion is. So what was expected stays.

use std::sync::LazyLock;

use regex_lite::Regex;

/// Patterns of a line, and what takes their place.
const RULES: &[(&str, &str)] = &[
    // Rust: `left: 6`, with `right: 5` below it.
    (r"^(\s*left: ).*$", "${1}<actual>"),
    // pytest: `assert 6 == 5`, `+  where 6 = add(2, 3)`.
    (
        r"^(assert )\S.*? (==|!=|is not|is|not in|in|<=|>=|<|>) ",
        "${1}<actual> ${2} ",
    ),
    (r"(\bwhere )\S.*? = ", "${1}<actual> = "),
    // unittest and Node: `6 != 5`, `6 !== 5`.
    (r"^\S.*? (!==|===|!=|==) ", "<actual> ${1} "),
    // Jest: `Received: 6`. Test::More: `got: 6`.
    (r"(?i)^(\s*(?:received|actual|got)[^:]*: ).*$", "${1}<actual>"),
    // Vitest and Chai: `expected 6 to be 5`. Lines of a diff.
    (r"^(.*\bexpected ).*?( to | not to )", "${1}<actual>${2}"),
    (r"^\+ (?:[^R ].*|R[^e].*)$", "+ <actual>"),
    // Go: `Add(2, 3) = 6; want 5`, `got 6, want 5`.
    (r"( = )[^=;,]*([;,] (?:want|expected) )", "${1}<actual>${2}"),
    (r"(?i)(\bgot:? )[^,;)]*", "${1}<actual>"),
];

static COMPILED: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let compiled = RULES
        .iter()
        .map(|(pattern, mark)| Some((Regex::new(pattern).ok()?, *mark)));
    compiled.flatten().collect()
});

/// A message without the values that the code under test made.
pub(super) fn without_actual_values(message: &str) -> String {
    let lines = message.lines().map(|line| {
        COMPILED.iter().fold(line.to_owned(), |line, (pattern, mark)| {
            pattern.replace(&line, *mark).into_owned()
        })
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_a_pattern() {
        assert_eq!(COMPILED.len(), RULES.len());
    }

    #[test]
    fn another_wrong_value_is_the_same_and_another_expectation_is_not() {
        for (one, same, other) in [
            (
                "assertion `left == right` failed\nleft: 6\nright: 5",
                "assertion `left == right` failed\nleft: -1\nright: 5",
                "assertion `left == right` failed\nleft: 6\nright: 8",
            ),
            (
                "assert 6 == 5\n+  where 6 = add(2, 3)",
                "assert 1.5 == 5\n+  where 1.5 = add(2, 3)",
                "assert 6 == 5\n+  where 6 = add(0, 5)",
            ),
            ("2 != 3", "-1 != 3", "2 != 4"),
            (
                "Expected values to be strictly equal:\n6 !== 5",
                "Expected values to be strictly equal:\n'six' !== 5",
                "Expected values to be strictly equal:\n6 !== 7",
            ),
            (
                "Expected: 5\nReceived: 6",
                "Expected: 5\nReceived: 7",
                "Expected: 9\nReceived: 6",
            ),
            (
                "expected 6 to be 5 // Object.is equality\n- Expected\n+ Received\n- 5\n+ 6",
                "expected 7 to be 5 // Object.is equality\n- Expected\n+ Received\n- 5\n+ 7",
                "expected 6 to be 4 // Object.is equality\n- Expected\n+ Received\n- 4\n+ 6",
            ),
            (
                "Add(2, 3) = 6; want 5",
                "Add(2, 3) = 7; want 5",
                "Add(1, 3) = 6; want 4",
            ),
            ("got 6, want 5", "got 7, want 5", "got 6, want 8"),
            ("division by zero", "division by zero", "no such key"),
        ] {
            let masked = without_actual_values;
            assert_eq!(masked(one), masked(same), "{one} | {same}");
            assert_ne!(masked(one), masked(other), "{one} | {other}");
        }
    }
}
