//! Files that are made of `wit/`, and are kept beside those that are written.

use anyhow::Context as _;

use crate::run::{root, say};

/// Paths of the files, and their contents as the build script made them.
const MADE: [(&str, &str); 3] = [
    ("docs/wit.md", include_str!(concat!(env!("OUT_DIR"), "/wit.md"))),
    (
        "sdk/src/guest/bindings.rs",
        include_str!(concat!(env!("OUT_DIR"), "/tool-pack.rs")),
    ),
    (
        "sdk/src/guest/policy/bindings.rs",
        include_str!(concat!(env!("OUT_DIR"), "/policy.rs")),
    ),
];

/// Writes them.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(crate) fn write() -> anyhow::Result<()> {
    for (path, content) in MADE {
        std::fs::write(root().join(path), content).with_context(|| format!("{path} cannot be written"))?;
        say(&format!("wrote {path}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test looks at files")]
    fn made_files_are_what_wit_says() {
        for (path, content) in MADE {
            let found = std::fs::read_to_string(root().join(path)).unwrap_or_default();
            assert!(
                found == content,
                "{path} is not what wit/ says; run `cargo xtask docs`"
            );
        }
    }
}
