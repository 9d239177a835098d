//! Pages that are made of other files, and are kept beside those that are written.

use anyhow::Context as _;

use crate::run::{root, say};

/// The interfaces of components, as the build script read them.
const WIT: &str = include_str!(concat!(env!("OUT_DIR"), "/wit.md"));

/// Path of the page.
const PAGE: &str = "docs/wit.md";

/// Writes them.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(crate) fn write() -> anyhow::Result<()> {
    let page = root().join(PAGE);
    std::fs::write(&page, WIT).with_context(|| format!("{} cannot be written", page.display()))?;
    say(&format!("wrote {PAGE}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test looks at a page")]
    fn pages_are_what_they_are_made_of() {
        let page = std::fs::read_to_string(root().join(PAGE)).unwrap_or_default();
        assert!(
            page == WIT,
            "{PAGE} is not what wit/ says; run `cargo xtask docs`"
        );
    }
}
