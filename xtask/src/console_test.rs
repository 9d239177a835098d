//! The console in a real browser: every page, live rows, killed servers, hostile text, accessibility.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::components::{self, Profile};
use crate::run::{npm_packages, root, run, target};

/// Folder with the script and its manifests.
const FOLDER: &str = "tests/console";
const FILES: [&str; 3] = ["package.json", "package-lock.json", "console.mjs"];
/// Debian's browser.
const BROWSER: &str = "/usr/bin/chromium";
/// Folder of the pictures of the documentation.
const IMAGES: &str = "docs/images";

#[derive(Debug, Args)]
pub(crate) struct ConsoleTest {
    /// Make the pictures of the documentation anew, too
    #[arg(long)]
    images: bool,
    /// Rows of the ledger whose pages are timed
    #[arg(long, default_value_t = 20_000)]
    rows: u32,
    /// The browser
    #[arg(long, default_value = BROWSER, env = "CHROMIUM")]
    chromium: PathBuf,
}

impl ConsoleTest {
    /// As CI runs it.
    pub(crate) fn usual() -> ConsoleTest {
        ConsoleTest {
            images: false,
            rows: 20_000,
            chromium: BROWSER.into(),
        }
    }

    /// Runs the script, and says what came of it.
    pub(crate) fn all(&self) -> anyhow::Result<String> {
        ensure!(
            self.chromium.exists(),
            "there is no {}; install chromium, or name another with --chromium",
            self.chromium.display()
        );
        let tollgate = components::build_host(Profile::Dev)?;
        let build = [
            "build",
            "--workspace",
            "--exclude",
            "guests",
            "--example",
            "sample",
        ];
        run(Command::new("cargo").args(build).current_dir(root()))?;
        let tools = npm_packages(FOLDER, &FILES)?;
        let mut script = Command::new("node");
        script.current_dir(&tools).arg("console.mjs");
        script.arg("--tollgate").arg(tollgate);
        script.arg("--sample").arg(target().join("debug/examples/sample"));
        script.arg("--work").arg(tools.join("work"));
        script.arg("--chromium").arg(&self.chromium);
        script.args(["--rows", &self.rows.to_string()]);
        if self.images {
            script.arg("--images").arg(root().join(IMAGES));
        }
        run(&mut script).context("the console does not do in a browser what it should")?;
        Ok("every case passed in a browser".to_owned())
    }
}
