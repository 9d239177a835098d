//! A PostgreSQL for one run of the tests: on a socket in a temporary folder, and gone with this process.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use postgres::{Client, Config, NoTls};
use tollgate_sql::postgres::FUNCTIONS;

/// Names the folder of `initdb` and `postgres`.
const VARIABLE: &str = "TOLLGATE_TEST_POSTGRES";

/// A server. It ends when its standard input does, so nothing is left if this process is killed.
struct Server {
    folder: PathBuf,
    user: &'static str,
    _alive: ChildStdin,
}

/// Makes a database, tells that it listens, waits for the end of this process, and cleans up.
const SCRIPT: &str = r#"
set -e
"$1/initdb" --pgdata "$2/data" --auth trust --encoding UTF8 --locale C --no-sync --username "$3" >"$2/initdb.log" 2>&1 ||
    { cat "$2/initdb.log" >&2; exit 1; }
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c fsync=off -c max_connections=40 -c autovacuum=off \
    -c jit=off >"$2/log" 2>&1 &
server=$!
until grep -q 'ready to accept connections' "$2/log"; do
    kill -0 $server || { cat "$2/log" >&2; exit 1; }
    sleep 0.05
done
echo ready
cat >/dev/null
kill -INT $server
wait $server || true
rm -rf "$2"
"#;

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(start)
}

/// A shell of a user that PostgreSQL runs for: it refuses root.
fn shell(folder: &Path) -> Command {
    if Path::new("/proc/self").metadata().unwrap().uid() != 0 {
        return Command::new("sh");
    }
    let (user, group) = ids(&std::fs::read_to_string("/etc/passwd").unwrap(), "nobody");
    chown(folder, Some(user), Some(group)).unwrap();
    let mut command = Command::new("setpriv");
    command.args([
        &format!("--reuid={user}"),
        &format!("--regid={group}"),
        "--clear-groups",
        "sh",
    ]);
    command
}

#[allow(clippy::zombie_processes, reason = "the server ends after this process")]
fn start() -> Server {
    let binaries = std::env::var_os(VARIABLE)
        .unwrap_or_else(|| panic!("{VARIABLE} names no folder: run `cargo xtask postgres`"));
    let folder = tempfile::Builder::new()
        .prefix("tollgate-pg")
        .tempdir()
        .unwrap()
        .keep();
    let mut command = shell(&folder);
    let mut child = command
        .args(["-c", SCRIPT, "sh"])
        .arg(&binaries)
        .arg(&folder)
        .arg("tollgate")
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n", "PostgreSQL does not start");
    Server {
        folder,
        user: "tollgate",
        _alive: child.stdin.take().unwrap(),
    }
}

fn ids(passwd: &str, name: &str) -> (u32, u32) {
    let line = passwd
        .lines()
        .find(|line| line.split(':').next() == Some(name))
        .unwrap();
    let fields: Vec<&str> = line.split(':').collect();
    (fields[2].parse().unwrap(), fields[3].parse().unwrap())
}

fn connect(database: &str) -> Client {
    let server = server();
    Config::new()
        .host_path(&server.folder)
        .user(server.user)
        .dbname(database)
        .connect(NoTls)
        .unwrap()
}

/// A fresh database that sorts by the rules of English where nothing says otherwise, with the functions of the translation.
pub(crate) fn database() -> Client {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let mut admin = connect("postgres");
    admin
        .batch_execute(&format!(
            "CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'"
        ))
        .unwrap();
    let mut client = connect(&name);
    client.batch_execute(FUNCTIONS).unwrap();
    // As a host sets it. Texts in quotes are the same without the usual setting.
    client
        .batch_execute(
            "SET search_path = pg_catalog; SET standard_conforming_strings = off; SET backslash_quote = off",
        )
        .unwrap();
    client
}
