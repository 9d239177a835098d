//! Generated files that are kept in the repository.

use std::path::Path;

use anyhow::Context as _;

use crate::say;

/// Paths of the files, and the contents that the build script generated.
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

/// Writes the files below the project's folder.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(crate) fn write(project: &Path) -> anyhow::Result<()> {
    for (path, content) in MADE {
        std::fs::write(project.join(path), content).with_context(|| format!("{path} cannot be written"))?;
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
        let project = Path::new("../..");
        for (path, content) in MADE {
            let found = std::fs::read_to_string(project.join(path)).unwrap_or_default();
            assert!(
                found == content,
                "{path} is not what wit/ says; run `cargo xtask docs`"
            );
        }
    }
}
