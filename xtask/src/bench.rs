//! Measuring the release build.

use std::process::Command;

use crate::components::{self, Profile};
use crate::run::{cargo, run};

/// Builds what is measured and the bench, and runs it.
pub(crate) fn all(flags: &[String]) -> anyhow::Result<()> {
    let tollgate = components::build_host(Profile::Release)?;
    run(cargo().args(["build", "--quiet", "--release", "--package", "bench"]))?;
    let bench = Profile::Release.folder().join("bench");
    run(Command::new(bench).arg("--server").arg(tollgate).args(flags))
}
