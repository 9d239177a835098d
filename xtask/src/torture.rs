//! Killing hosts under load.

use std::process::Command;

use crate::components::{self, Profile};
use crate::run::last_line;

/// Builds the host and its torture, runs it with flags such as `--rounds 1000 --seed 7`, and returns what it came to.
pub(crate) fn all(flags: &[String]) -> anyhow::Result<String> {
    let tollgate = components::build_host_and(Profile::Dev, &["torture"])?;
    let torture = Profile::Dev.folder().join("torture");
    last_line(Command::new(torture).arg("--server").arg(tollgate).args(flags))
}
