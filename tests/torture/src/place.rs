//! The directory of one run: the hosts' data, their database, their configuration, and two workspaces.
#![allow(clippy::disallowed_methods, reason = "the torture's own directory")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};

use crate::look::Database;
use crate::server::Server;

/// Workspace for files of packs, and workspace with a repository and tests.
pub(crate) const PROJECT: &str = "project";
pub(crate) const REPOSITORY: &str = "repository";

/// A test tool that adds a line to a file outside of the repository on each run.
const TESTS: &str = "echo run >> ../ran\necho \"$$ survived\"\n";
/// Name of a test that takes so long that its call becomes a task, and its tool.
pub(crate) const LONG: &str = "long";
const LONG_TESTS: &str = "echo run >> ../ran\nsleep 0.4\necho \"$$ survived\"\n";

/// Lease in seconds, after which hosts of other data directories consider a host gone. A busy machine delays hosts,
/// too.
const LEASE_SEC: u64 = 10;
/// Time after which other hosts have noticed a dead host and closed what it left open.
pub(crate) const BEYOND_LEASE: Duration = Duration::from_secs(LEASE_SEC + 4);

/// Longest outage of a server without any host being considered gone. The server's locks are lost in an outage, so 6 s
/// without renewal are enough, and hosts renew every 2 s.
pub(crate) const SHORT_OUTAGE: Duration = Duration::from_secs(2);

/// Time for which hosts let calls wait for a server, including the delay of their clocks. Afterwards they refuse calls.
pub(crate) const CALL_WAIT_LIMIT: Duration = Duration::from_secs(4);
/// Time in which a host that refuses calls notices that its server is back, because it retries once a second.
pub(crate) const NOTICE_TIMEOUT: Duration = Duration::from_secs(3);
/// Duration of an outage after which all hosts refuse calls.
pub(crate) const BEYOND_CALL_WAIT: Duration = Duration::from_secs(7);

/// Paths of one run.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Data directories. With a database in a file there is one.
    pub(crate) data: Vec<PathBuf>,
    pub(crate) database: Database,
    pub(crate) config: PathBuf,
    project: PathBuf,
    /// File with one line for each run of the tests.
    ran: PathBuf,
}

impl Place {
    /// Creates a place in an empty directory, with a number of data directories if the database is on a server.
    pub(crate) fn new(dir: &Path, server: Option<(Server, u32)>) -> anyhow::Result<Place> {
        let first = dir.join("data");
        let (database, data) = match server {
            None => (Database::File(first.join("tollgate.db")), vec![first]),
            Some((server, number)) => {
                let others = (1..number).map(|number| dir.join(format!("data-{number}")));
                (
                    Database::Server(server),
                    std::iter::once(first).chain(others).collect(),
                )
            }
        };
        let place = Place {
            data,
            database,
            config: dir.join("tollgate.toml"),
            project: dir.join(PROJECT),
            ran: dir.join("ran"),
        };
        let repository = dir.join(REPOSITORY);
        for workspace in [&place.project, &repository] {
            std::fs::create_dir(workspace).context("the directory cannot be used")?;
        }
        // Every row is checked again, so none may be pruned in the meantime.
        let config = format!(
            "[cluster]\nlease_sec = {LEASE_SEC}\n[ledger]\nretention_envelopes = 1000000\n[artifacts]\nenabled = true\narguments = true\n\
             [workspaces.{PROJECT}]\npath = {:?}\nwrite = [\".gsd/\"]\n\
             [workspaces.{REPOSITORY}]\npath = {repository:?}\ngit = \"read\"\n\
             tests.default = [\"sh\", \"tests.sh\"]\ntests.{LONG} = [\"sh\", \"{LONG}.sh\"]\n",
            place.project
        );
        std::fs::write(&place.config, config)?;
        std::fs::write(repository.join("tests.sh"), TESTS)?;
        std::fs::write(repository.join(format!("{LONG}.sh")), LONG_TESTS)?;
        for arguments in [
            &["init", "--quiet"][..],
            &["add", "."],
            &[
                "-c",
                "user.name=Torture",
                "-c",
                "user.email=torture@example.org",
                "commit",
                "--quiet",
                "--message=first",
            ],
        ] {
            let mut git = Command::new("git");
            let status = git.args(arguments).current_dir(&repository).stdout(Stdio::null());
            ensure!(status.status()?.success(), "git {arguments:?} failed");
        }
        Ok(place)
    }

    /// File for the output of hosts, beside their data directory.
    pub(crate) fn log(&self, data: &Path) -> anyhow::Result<Stdio> {
        let mut options = std::fs::OpenOptions::new();
        let file = options
            .create(true)
            .append(true)
            .open(data.with_extension("log"))?;
        Ok(file.into())
    }

    /// Copies the compiled components of another place.
    pub(crate) fn take_compiled(&self, other: &Place) -> anyhow::Result<()> {
        let from = other.data.first().context("a place without data")?;
        for data in &self.data {
            let to = data.join("cache");
            std::fs::create_dir_all(&to)?;
            for path in [data, &to] {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
            }
            for entry in std::fs::read_dir(from.join("cache"))? {
                let entry = entry?;
                std::fs::copy(entry.path(), to.join(entry.file_name()))?;
            }
            let key = "cache.key";
            std::fs::copy(from.join(key), data.join(key))?;
        }
        Ok(())
    }

    /// Writes a file of the project with an event that never happened.
    pub(crate) fn forge(&self, text: &str) -> anyhow::Result<()> {
        Ok(std::fs::write(self.project.join(".gsd/STATE.md"), text)?)
    }

    /// Reads the state outside of the database.
    pub(crate) fn look(&self) -> anyhow::Result<Seen> {
        let mut files = Vec::new();
        read(&self.project, &mut files)?;
        Ok(Seen {
            files,
            test_runs: lines(&self.ran)?,
            place: self.clone(),
        })
    }
}

/// State outside of the database, read before the database.
pub(crate) struct Seen {
    /// Files of the project, path and content.
    pub(crate) files: Vec<(String, String)>,
    /// Number of test runs.
    pub(crate) test_runs: i64,
    place: Place,
}

impl Seen {
    /// Number of test runs at this time, after the read of the database.
    pub(crate) fn test_runs_now(&self) -> anyhow::Result<i64> {
        lines(&self.place.ran)
    }

    /// Files of artifacts: name, hash and size.
    pub(crate) fn artifacts(&self) -> anyhow::Result<Vec<(String, String, u64)>> {
        let mut found = Vec::new();
        let folders = self.place.data.iter().map(|data| data.join("artifacts"));
        for entry in folders
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flatten()
        {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Other files are incomplete.
            if name.len() == 64 {
                let content = std::fs::read(entry.path())?;
                let size = u64::try_from(content.len())?;
                found.push((name, hex(&Sha256::digest(content)), size));
            }
        }
        Ok(found)
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn lines(path: &Path) -> anyhow::Result<i64> {
    let text = std::fs::read(path).unwrap_or_default();
    Ok(i64::try_from(text.iter().filter(|byte| **byte == b'\n').count())?)
}

/// All files below a directory. A file may disappear during the read if it is replaced.
fn read(dir: &Path, files: &mut Vec<(String, String)>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, files)?;
        } else if let Ok(bytes) = std::fs::read(&path) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            files.push((path.to_string_lossy().into_owned(), text));
        }
    }
    Ok(())
}
