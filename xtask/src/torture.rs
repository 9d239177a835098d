//! Killing hosts under load.

use std::process::Command;

use crate::components::{self, Profile};
use crate::run::run;

/// Builds the host and its torture, and runs it with flags such as `--rounds 1000 --seed 7`.
pub(crate) fn all(flags: &[String]) -> anyhow::Result<()> {
    let tollgate = components::build_host_and(Profile::Dev, &["torture"])?;
    let torture = Profile::Dev.folder().join("torture");
    run(Command::new(torture).arg("--server").arg(tollgate).args(flags))
}
