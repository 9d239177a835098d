//! Tests of the console in a real browser: every page, live rows, killed servers, hostile text, accessibility.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::components::{self, Profile};
use crate::run::{cargo, npm_packages, root, run, say, target};

/// Folder with the script and its manifests.
const FOLDER: &str = "tests/console";
const FILES: [&str; 5] = [
    "package.json",
    "package-lock.json",
    "browser.mjs",
    "console.mjs",
    "story.mjs",
];
/// Variable with which a CI without a browser may skip these tests.
const WITHOUT: &str = "TOLLGATE_WITHOUT_BROWSER";
/// Number of ledger rows for timing pages, and the number for a long ledger.
const ROWS: u32 = 20_000;
const ROWS_IN_FULL: u32 = 200_000;
/// Path of Debian's browser.
const BROWSER: &str = "/usr/bin/chromium";
/// Folder of the documentation's images.
const IMAGES: &str = "docs/images";

#[derive(Debug, Args)]
pub(crate) struct ConsoleTest {
    /// Also take the documentation's screenshots again
    #[arg(long)]
    images: bool,
    /// Number of ledger rows for timing pages
    #[arg(long, default_value_t = ROWS)]
    rows: u32,
    /// Only cases whose name contains this text
    #[arg(long)]
    only: Option<String>,
    /// The browser
    #[arg(long, default_value = BROWSER, env = "CHROMIUM")]
    chromium: PathBuf,
}

impl ConsoleTest {
    /// Runs the tests in CI. Without a browser they fail, unless the environment permits skipping them.
    pub(crate) fn in_ci(full: bool) -> anyhow::Result<String> {
        let tests = ConsoleTest {
            images: false,
            rows: if full { ROWS_IN_FULL } else { ROWS },
            only: None,
            chromium: std::env::var_os("CHROMIUM").map_or_else(|| BROWSER.into(), PathBuf::from),
        };
        if !tests.chromium.exists() && std::env::var_os(WITHOUT).is_some() {
            let why = format!(
                "left out: there is no {}, and {WITHOUT} is set",
                tests.chromium.display()
            );
            say(&format!("the tests in a browser are {why}"));
            return Ok(why);
        }
        tests.all()
    }

    /// Runs the scripts, and returns their summary.
    pub(crate) fn all(&self) -> anyhow::Result<String> {
        ensure!(
            self.chromium.exists(),
            "there is no {}; install chromium, or name another with --chromium or CHROMIUM. A CI that cannot have a browser sets \
             {WITHOUT}",
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
        run(cargo().args(build))?;
        let tools = npm_packages(FOLDER, &FILES)?;
        for script in ["console.mjs", "story.mjs"] {
            let mut node = self.script(script, &tools, &tollgate);
            run(&mut node).context("console tests failed in the browser")?;
        }
        Ok("every case passed in a browser".to_owned())
    }

    fn script(&self, name: &str, tools: &Path, tollgate: &Path) -> Command {
        let mut script = Command::new("node");
        script.current_dir(tools).arg(name);
        script.arg("--tollgate").arg(tollgate);
        script.arg("--sample").arg(target().join("debug/examples/sample"));
        script.arg("--work").arg(tools.join("work"));
        script.arg("--chromium").arg(&self.chromium);
        script.args(["--rows", &self.rows.to_string()]);
        if let Some(only) = &self.only {
            script.args(["--only", only]);
        }
        if self.images {
            script.arg("--images").arg(root().join(IMAGES));
        }
        script
    }
}
