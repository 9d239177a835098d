//! Paths: `s:0.s:1` is the second step under the first, `s:0.t:1` the second node of the first step.

use std::fmt;

use thiserror::Error;

/// Deepest nesting of steps.
pub(crate) const MAX_DEPTH: usize = 8;

/// Position of a step or node, with indexes from zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    pub steps: Vec<u32>,
    pub node: Option<u32>,
}

/// Reason why text is not a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum PathError {
    #[error("is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node")]
    Malformed,
    #[error("has an index beyond 4294967295")]
    Overflow,
    #[error("is deeper than {MAX_DEPTH} steps")]
    TooDeep,
}

impl Path {
    /// The path above all steps.
    pub(crate) const TOP: Path = Path {
        steps: Vec::new(),
        node: None,
    };

    /// The path of a step below this one.
    pub(crate) fn child(&self, ordinal: i64) -> Path {
        let mut steps = self.steps.clone();
        steps.push(u32::try_from(ordinal).unwrap_or(u32::MAX));
        Path { steps, node: None }
    }

    /// Reads a path. A node can only come last, below a step.
    pub(crate) fn parse(text: &str) -> Result<Path, PathError> {
        let mut path = Path {
            steps: Vec::new(),
            node: None,
        };
        for part in text.split('.') {
            let (kind, digits) = part.split_once(':').ok_or(PathError::Malformed)?;
            let index = index(digits)?;
            match kind {
                _ if path.node.is_some() => return Err(PathError::Malformed),
                "s" => path.steps.push(index),
                "t" if !path.steps.is_empty() => path.node = Some(index),
                _ => return Err(PathError::Malformed),
            }
            if path.steps.len() > MAX_DEPTH {
                return Err(PathError::TooDeep);
            }
        }
        Ok(path)
    }
}

/// Parses a number without sign and leading zeros, so that each position has exactly one path.
fn index(digits: &str) -> Result<u32, PathError> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || (digits.len() > 1 && digits.starts_with('0')) {
        return Err(PathError::Malformed);
    }
    digits.parse().map_err(|_| PathError::Overflow)
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.steps.iter().enumerate() {
            let dot = if depth == 0 { "" } else { "." };
            write!(f, "{dot}s:{step}")?;
        }
        self.node.map_or(Ok(()), |node| write!(f, ".t:{node}"))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn what_is_a_path() {
        let mut table = String::new();
        for text in [
            "s:0",
            "s:10.s:2",
            "s:0.t:1",
            "",
            "s",
            "s:",
            "s:x",
            "s:-1",
            "s:+1",
            "s:01",
            "t:0",
            "s:0.t:1.s:0",
            "s:0..s:1",
            "S:0",
            "s:0.",
            "s:4294967295",
            "s:4294967296",
            "s:99999999999999999999",
            "s:0 ",
            "s:٣",
            "s:0.s:0.s:0.s:0.s:0.s:0.s:0.s:0.s:0",
        ] {
            let outcome = match Path::parse(text) {
                Ok(path) => {
                    assert_eq!(path.to_string(), text);
                    "a path".to_owned()
                }
                Err(err) => err.to_string(),
            };
            table += &format!("{text:?} {outcome}\n");
        }
        expect![[r#"
            "s:0" a path
            "s:10.s:2" a path
            "s:0.t:1" a path
            "" is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "s" is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "s:" is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "s:x" is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "s:-1" is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "s:+1" is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "s:01" is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "t:0" is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "s:0.t:1.s:0" is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "s:0..s:1" is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "S:0" is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "s:0." is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "s:4294967295" a path
            "s:4294967296" has an index beyond 4294967295
            "s:99999999999999999999" has an index beyond 4294967295
            "s:0 " is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "s:٣" is not a path, for example s:0.s:1 for a step or s:0.t:1 for a node
            "s:0.s:0.s:0.s:0.s:0.s:0.s:0.s:0.s:0" is deeper than 8 steps
        "#]]
        .assert_eq(&table);
    }
}
