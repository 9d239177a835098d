//! Programs from the crate registry, installed in the target folder.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{cargo, run, say, target};

/// A program: its crate, version, features and name.
pub(crate) struct Tool {
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
    /// Features instead of the default ones.
    pub(crate) features: Option<&'static str>,
    pub(crate) program: &'static str,
}

impl Tool {
    /// Path of the program in this version. Installs it if it is missing.
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    pub(crate) fn installed(&self) -> anyhow::Result<PathBuf> {
        let folder = target().join("tools");
        let program = folder.join("bin").join(self.program);
        if self.is(&program) {
            return Ok(program);
        }
        say(&format!(
            "installing {} {}, which takes some minutes",
            self.package, self.version
        ));
        let build = folder.join("build");
        let mut install = cargo();
        // An unoptimised build is much quicker, and fast enough for tests.
        install
            .args(["install", self.package, "--version", self.version])
            .args(["--quiet", "--locked", "--debug", "--force", "--root"])
            .arg(&folder)
            .arg("--target-dir")
            .arg(&build)
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        if let Some(features) = self.features {
            install.args(["--no-default-features", "--features", features]);
        }
        run(&mut install)?;
        std::fs::remove_dir_all(&build)?;
        Ok(program)
    }

    fn is(&self, program: &PathBuf) -> bool {
        let said = Command::new(program).arg("--version").output();
        said.is_ok_and(|said| {
            String::from_utf8_lossy(&said.stdout)
                .split_whitespace()
                .any(|word| word == self.version)
        })
    }
}
