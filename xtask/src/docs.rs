//! Files that are generated from `wit/`, by a separate program. Its dependencies take a third as long to build as
//! `xtask`.

use std::process::Command;

use crate::components::{Profile, program_build};
use crate::run::{root, run};

/// Writes the generated files that are kept in the repository.
pub(crate) fn write() -> anyhow::Result<()> {
    run(generated()?.arg("docs").arg(root()))
}

/// Builds the program that generates the files.
pub(crate) fn generated() -> anyhow::Result<Command> {
    run(&mut program_build(Profile::Dev, "generated"))?;
    Ok(Command::new(Profile::Dev.folder().join("generated")))
}
