//! A PostgreSQL server for one test run, which ends with this process.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context as _, ensure};

/// Creates a database, reports that it listens, and stops when this process ends. A server that ends earlier is
/// restarted.
const SCRIPT: &str = r#"
set -e
"$1/initdb" --pgdata "$2/data" --auth trust --encoding UTF8 --locale C --username tollgate >"$2/initdb.log" 2>&1 ||
    { cat "$2/initdb.log" >&2; exit 1; }
serve() {
    until [ -e "$2/over" ]; do
        "$1/postgres" -D "$2/data" -k "$2" -p "$3" -c listen_addresses=127.0.0.1 -c max_connections=400 >>"$2/log" 2>&1 &
        echo $! >"$2/pid"
        wait $! || [ -e "$2/ready" ] || { touch "$2/failed"; exit 1; }
        # After a crash its processes may still be there, and a server does not start beside them.
        sleep 0.02
    done
}
touch "$2/log"
serve "$@" &
keeper=$!
until grep -q 'ready to accept connections' "$2/log"; do
    [ ! -e "$2/failed" ] || { cat "$2/log" >&2; exit 1; }
    sleep 0.05
done
touch "$2/ready"
echo ready
cat >/dev/null
touch "$2/over"
tries=0
while kill -0 $keeper 2>/dev/null; do
    # A server that is asked to stop while it recovers may never end.
    if [ $tries -lt 200 ]; then signal=INT; else signal=QUIT; fi
    kill -$signal "$(cat "$2/pid")" 2>/dev/null || true
    tries=$((tries + 1))
    sleep 0.05
done
"#;

/// A running server.
pub(crate) struct Server {
    shell: Child,
    /// Pipe to the server's script. Closing it stops the server.
    alive: Option<ChildStdin>,
    port: u16,
    folder: PathBuf,
}

#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
impl Server {
    /// Starts a server from a folder with `initdb` and `postgres`, with the durability settings of production.
    pub(crate) fn start(binaries: &Path) -> anyhow::Result<Server> {
        // Another user must be able to enter the folder, so it is not below the project.
        let folder = std::env::temp_dir().join(format!("tollgate-pg-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut shell = shell(&folder)?
            .args(["-c", SCRIPT, "sh"])
            .arg(binaries)
            .arg(&folder)
            .arg(port.to_string())
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run a shell")?;
        let alive = shell.stdin.take();
        let mut said = String::new();
        if let Some(out) = shell.stdout.take() {
            BufReader::new(out).read_line(&mut said)?;
        }
        ensure!(said == "ready\n", "PostgreSQL does not start");
        Ok(Server {
            shell,
            alive,
            port,
            folder,
        })
    }

    /// URL of a database on the server.
    pub(crate) fn url(&self) -> String {
        format!("postgres://tollgate@127.0.0.1:{}/postgres", self.port)
    }
}

#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
impl Drop for Server {
    fn drop(&mut self) {
        drop(self.alive.take());
        let _ = self.shell.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Command for a shell of a user other than root, because PostgreSQL refuses to run as root.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn shell(folder: &Path) -> anyhow::Result<Command> {
    if Path::new("/proc/self").metadata()?.uid() != 0 {
        return Ok(Command::new("sh"));
    }
    let users = std::fs::read_to_string("/etc/passwd")?;
    let nobody = users.lines().find(|line| line.starts_with("nobody:"));
    let ids = nobody.map(|line| line.split(':').skip(2).take(2).map(str::parse::<u32>));
    let ids: Vec<u32> = ids.into_iter().flatten().collect::<Result<_, _>>()?;
    let [user, group] = ids[..] else {
        anyhow::bail!("there is no user `nobody` for PostgreSQL to run as");
    };
    chown(folder, Some(user), Some(group))?;
    let mut command = Command::new("setpriv");
    command.args([
        &format!("--reuid={user}"),
        &format!("--regid={group}"),
        "--clear-groups",
        "sh",
    ]);
    Ok(command)
}
