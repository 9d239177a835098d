//! Makefiles: targets for `make`.

use serde::{Deserialize, Serialize};

/// Maximum number of targets kept of one file.
const MAX_TARGETS: usize = 100;

/// Content of a Makefile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Make {
    /// Targets without variables or patterns, in the order written.
    pub targets: Vec<String>,
}

pub(super) fn read(text: &str) -> Make {
    let mut targets: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some((names, rest)) = line.split_once(':') else {
            continue;
        };
        // A variable, a line of a recipe, or a rule for special targets.
        if rest.starts_with('=') || rest.starts_with(":=") || names.starts_with(['\t', ' ', '#', '.']) {
            continue;
        }
        for name in names.split_whitespace() {
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
            if name.chars().all(plain)
                && targets.len() < MAX_TARGETS
                && !targets.iter().any(|known| known == name)
            {
                targets.push(name.to_owned());
            }
        }
    }
    Make { targets }
}
