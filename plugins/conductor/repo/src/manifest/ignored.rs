//! `.gitignore`, as far as it tells what is made rather than kept.

use serde::{Deserialize, Serialize};

/// Maximum size of the rules kept of one file.
const MAX_BYTES: usize = 64 << 10;

/// Content of a `.gitignore`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignored {
    /// Rules without comments and blank lines.
    pub rules: String,
}

pub(super) fn read(text: &str) -> Ignored {
    let mut rules = String::new();
    for line in text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
    {
        if rules.len() + line.len() > MAX_BYTES {
            break;
        }
        rules.push_str(line);
        rules.push('\n');
    }
    Ignored { rules }
}
