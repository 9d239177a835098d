//! Target for configurations.

use std::path::Path;

use tollgate::config::Config;

/// Checks that a refusal names the file, and a line for each problem.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Err(err) = Config::parse(text, Path::new("/etc/tollgate.toml")) {
        let said = err.to_string();
        assert!(said.contains("/etc/tollgate.toml:"), "{said}");
    }
}
