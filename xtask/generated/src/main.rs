//! Writes the output of the build script: files that are kept in the repository, or components for tests.

mod docs;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

/// Names and bytes of the test components written in WebAssembly text.
const COMPONENTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/components.rs"));

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let written = match arguments[..] {
        ["docs", project] => docs::write(Path::new(project)),
        ["components", folder] => components(Path::new(folder)),
        _ => usage(),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            say(&format!("generated: {err:#}"));
            ExitCode::FAILURE
        }
    }
}

fn usage() -> anyhow::Result<()> {
    bail!("call it as `generated docs PROJECT` or `generated components FOLDER`")
}

/// Writes the components into a folder.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn components(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, bytes) in COMPONENTS {
        std::fs::write(folder.join(name), bytes).with_context(|| format!("{name} cannot be written"))?;
    }
    Ok(())
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
