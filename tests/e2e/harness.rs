//! Test harness: a temporary data directory, servers on it, clients, and queries of the ledger.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::model::{CallToolRequest, CallToolRequestParams, CallToolResult};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tempfile::TempDir;

#[path = "server.rs"]
pub(crate) mod server;

use self::server::Server;

/// Folder of the test components.
fn guests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components/guests")
}

/// Path of a test component.
pub(crate) fn guest(name: &str) -> PathBuf {
    let path = guests().join(format!("{}.wasm", name.replace('-', "_")));
    assert!(
        path.exists(),
        "{} is missing; run `cargo xtask test`",
        path.display()
    );
    path
}

/// A built-in policy as a file, like a policy of another author.
pub(crate) fn policy_component(name: &str) -> PathBuf {
    guests().with_file_name("policies").join(format!("{name}.wasm"))
}

/// Configuration of the test component `conformance`, whose workspace is the folder `work`.
pub(crate) fn conformance_pack() -> String {
    format!(
        "[packs.conformance]\nsource = {:?}\nfull_schemas = true\ngrants.workspaces = [\"conformance\"]\n\
         grants.client = [\"model\", \"roots\"]\n[workspaces.conformance]\npath = \"work\"\n",
        guest("conformance")
    )
}

/// A data directory and a configuration.
pub(crate) struct Place {
    dir: TempDir,
    server: Option<Server>,
}

impl Place {
    /// Creates a place with the default configuration.
    pub(crate) fn new() -> Place {
        Place::with("")
    }

    /// Creates a place with test components as packs of the same names.
    pub(crate) fn with_guests(names: &[&str]) -> Place {
        let packs = names
            .iter()
            .map(|name| format!("[packs.{name}]\nsource = {:?}\n", guest(name)));
        Place::with(&packs.collect::<String>())
    }

    /// Creates a place with a configuration.
    pub(crate) fn with(config: &str) -> Place {
        Place::on(config, Server::of_tests())
    }

    /// Creates a place whose database is a file, for tests of that file.
    pub(crate) fn in_file(config: &str) -> Place {
        Place::on(config, None)
    }

    fn on(config: &str, server: Option<Server>) -> Place {
        // Tests also open databases themselves.
        tollgate_store::storage::prepare().unwrap();
        let place = Place {
            dir: tempfile::tempdir().unwrap(),
            server,
        };
        std::fs::write(place.config(), config).unwrap();
        share_cache(warm(), &place.data());
        place
    }

    /// Another data directory on the same database, as of a host on another machine. None if the database is a file.
    pub(crate) fn on_another_machine(&self, config: &str) -> Option<Place> {
        let server = self.server.as_ref()?.for_another();
        Some(Place::on(config, Some(server)))
    }

    /// True if the database is a file.
    pub(crate) fn is_in_file(&self) -> bool {
        self.server.is_none()
    }

    /// The server of the database, if it is on one.
    pub(crate) fn server(&mut self) -> Option<&mut Server> {
        self.server.as_mut()
    }

    /// Moves the database to a server or to the file, as the operator's configuration does. Returns the previous
    /// location.
    pub(crate) fn move_to(&mut self, server: Option<Server>) -> Option<Server> {
        std::mem::replace(&mut self.server, server)
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A copy of the whole place, while none of its hosts is running. `None` if the database is on a server.
    pub(crate) fn copy(&self) -> Option<Place> {
        if self.server.is_some() {
            return None;
        }
        let copy = Place {
            dir: tempfile::tempdir().unwrap(),
            server: None,
        };
        copy_tree(self.path(), copy.path());
        let config = std::fs::read_to_string(self.config()).unwrap();
        let (here, there) = (self.path().to_str().unwrap(), copy.path().to_str().unwrap());
        std::fs::write(copy.config(), config.replace(here, there)).unwrap();
        Some(copy)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.dir.path().join("tollgate.toml")
    }

    /// Command `tollgate` on this data directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command
            .env_remove("TOLLGATE_LOG")
            .env_remove("TOLLGATE_DATABASE")
            .arg("--data-dir")
            .arg(self.data())
            .arg("--config")
            .arg(self.config())
            .args(arguments);
        if let Some(server) = &self.server {
            command.env("TOLLGATE_DATABASE", server.url());
        }
        command
    }

    /// Runs `tollgate` to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Command that runs a script in this place, with `tollgate` on its path.
    pub(crate) fn bash(&self, script: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_tollgate"));
        let path = format!(
            "{}:{}",
            program.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        let mut command = Command::new("bash");
        command
            .args(["-c", script])
            .current_dir(self.path())
            .env("PATH", path);
        command
    }

    /// Makes one call with `tollgate call`, and returns the exit code and the output.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> (i32, Value) {
        let output = self.run(&["--json", "call", tool, &arguments.to_string()]);
        let printed = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
            panic!("{}", String::from_utf8_lossy(&output.stderr));
        });
        (output.status.code().unwrap(), printed)
    }

    /// A client over stdio.
    pub(crate) async fn serve(&self, flags: &[&str]) -> Session {
        let mut command = self.command(&["serve"]);
        command.args(flags);
        Place::connect(command).await
    }

    /// A client over stdio to a server that another program starts, such as `nsenter`.
    pub(crate) async fn serve_by(&self, starter: &[&str]) -> Session {
        let serve = self.command(&["serve"]);
        let mut command = Command::new(starter[0]);
        command
            .args(&starter[1..])
            .arg(serve.get_program())
            .args(serve.get_args());
        for (name, value) in serve.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Place::connect(command).await
    }

    async fn connect(command: Command) -> Session {
        let command = tokio::process::Command::from(command);
        let transport = TokioChildProcess::new(command).unwrap();
        let pid = transport.id().unwrap();
        Session {
            client: ().serve(transport).await.unwrap(),
            pid,
        }
    }

    /// A raw connection over stdio.
    pub(crate) fn wire(&self, flags: &[&str]) -> Wire {
        let mut command = self.command(&["serve"]);
        command.args(flags);
        Wire::of(command)
    }

    /// A server over HTTP.
    pub(crate) fn serve_http(&self, flags: &[&str]) -> HttpServer {
        let mut child = self
            .command(&["serve", "--http", "127.0.0.1:0"])
            .args(flags)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("serving http://") {
            said.clear();
            assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "the server ended");
        }
        let url = said.split_whitespace().last().unwrap().to_owned();
        let log = Arc::new(Mutex::new(String::new()));
        let reading = {
            let log = Arc::clone(&log);
            // The output must be read, or a server with much output would block.
            std::thread::spawn(move || {
                for line in stderr.lines() {
                    let mut log = log.lock().unwrap();
                    log.push_str(&line.unwrap());
                    log.push('\n');
                }
            })
        };
        HttpServer {
            child,
            url,
            log,
            reading: Some(reading),
        }
    }

    /// Replaces this ledger's rows with another ledger's, as anybody with access to the file could.
    pub(crate) fn replace_ledger(&self, other: &Place) {
        let db = rusqlite::Connection::open(self.data().join("tollgate.db")).unwrap();
        let triggers: Vec<(String, String)> = db
            .prepare(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'core_operations'",
            )
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for (name, _) in &triggers {
            db.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
        }
        db.execute(
            "ATTACH ?1 AS other",
            [other.data().join("tollgate.db").to_str().unwrap()],
        )
        .unwrap();
        db.execute_batch(
            "DELETE FROM core_operations; INSERT INTO core_operations SELECT * FROM other.core_operations",
        )
        .unwrap();
        for (_, sql) in &triggers {
            db.execute_batch(sql).unwrap();
        }
    }

    /// The ledger: one line a row, `tool effect ok` or `tool effect CODE`, oldest first.
    pub(crate) fn ledger(&self) -> Vec<String> {
        self.sql("SELECT tool || ' ' || effect || ' ' || coalesce(error_code, 'ok') FROM core_operations ORDER BY seq")
    }

    /// Returns whether the database is intact. A database server checks itself.
    pub(crate) fn is_whole(&self) -> bool {
        self.server.is_some() || self.sql("PRAGMA integrity_check") == ["ok"]
    }

    /// Hashes of the stored contents, in the current default location.
    pub(crate) fn contents(&self) -> Vec<String> {
        if self.server.is_some() {
            return self.sql("SELECT DISTINCT hash FROM core_contents ORDER BY hash");
        }
        let files = std::fs::read_dir(self.data().join("artifacts")).unwrap();
        let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // A hash has 64 characters, and no other file's name has.
        names.filter(|name| name.len() == 64).collect()
    }

    /// Total bytes of the stored contents.
    pub(crate) fn content_bytes(&self) -> u64 {
        if self.server.is_some() {
            let total = self.sql("SELECT coalesce(sum(octet_length(bytes)), 0) FROM core_contents");
            return total[0].parse().unwrap();
        }
        let files = std::fs::read_dir(self.data().join("artifacts")).unwrap();
        let sizes = files.filter_map(|file| file.unwrap().metadata().ok());
        sizes.map(|metadata| metadata.len()).sum()
    }

    /// Replaces content with other bytes of the same length, as anyone with access to it could.
    pub(crate) fn change_content(&self, hash: &str) {
        if self.server.is_some() {
            self.sql(&format!(
                "UPDATE core_contents SET bytes = decode(repeat('78', octet_length(bytes)), 'hex') WHERE hash = '{hash}'"
            ));
            return;
        }
        let file = self.data().join("artifacts").join(hash);
        let length = std::fs::metadata(&file).unwrap().len();
        std::fs::write(file, "x".repeat(usize::try_from(length).unwrap())).unwrap();
    }

    /// Removes content.
    pub(crate) fn remove_content(&self, hash: &str) {
        match self.server {
            Some(_) => drop(self.sql(&format!("DELETE FROM core_contents WHERE hash = '{hash}'"))),
            None => std::fs::remove_file(self.data().join("artifacts").join(hash)).unwrap(),
        }
    }

    /// The first column of a query's rows.
    pub(crate) fn sql(&self, sql: &str) -> Vec<String> {
        if let Some(server) = &self.server {
            return server.ask(sql);
        }
        let db = rusqlite::Connection::open_with_flags(
            self.data().join("tollgate.db"),
            rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE,
        )
        .unwrap();
        let mut statement = db.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| {
            Ok(match row.get_ref(0)? {
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            })
        });
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    }
}

/// A data directory whose cache holds every component, so that tests need not compile them.
fn warm() -> &'static Path {
    static WARM: OnceLock<PathBuf> = OnceLock::new();
    WARM.get_or_init(|| {
        let warm = Path::new(env!("CARGO_TARGET_TMPDIR")).join("warm");
        std::fs::create_dir_all(&warm).unwrap();
        // Several test programs run at the same time and share one such directory.
        let lock = std::fs::File::create(warm.join("lock")).unwrap();
        lock.lock().unwrap();
        let mut config = String::new();
        for entry in std::fs::read_dir(guests()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().replace('_', "-");
            // Each is one of the two.
            config.push_str(&format!(
                "[packs.{name}]\nsource = {path:?}\n[policies.{name}]\nsource = {path:?}\n"
            ));
        }
        for policy in tollgate_components::builtin::policies() {
            config.push_str(&format!("[policies.{policy}]\n"));
        }
        // The cache is kept between runs. The database is not, because migrations change during development.
        for name in ["tollgate.db", "tollgate.db-wal", "tollgate.db-shm"] {
            let _ = std::fs::remove_file(warm.join("data").join(name));
        }
        let file = warm.join("tollgate.toml");
        std::fs::write(&file, config).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .arg("--data-dir")
            .arg(warm.join("data"))
            .arg("--config")
            .arg(file)
            .args(["packs", "list"])
            .output()
            .unwrap();
        // Some components are meant to fail to load, but every one is compiled.
        assert!(
            !output.stdout.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        warm.join("data")
    })
}

/// Copies files and folders with their permissions, without the hosts that are registered.
fn copy_tree(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            std::fs::create_dir(&target).unwrap();
            std::fs::set_permissions(&target, entry.metadata().unwrap().permissions()).unwrap();
            if entry.file_name() != "hosts" {
                copy_tree(&path, &target);
            }
        } else if kind.is_file() {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// Links the compiled code into a data directory. Copies would take 100 MB for each test. Nothing writes into a file of
/// the cache, and a test that does creates a separate file first.
fn share_cache(from: &Path, to: &Path) {
    use std::os::unix::fs::DirBuilderExt;
    let private = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path).unwrap();
    private(to);
    private(&to.join("cache"));
    std::fs::copy(from.join("cache.key"), to.join("cache.key")).unwrap();
    for entry in std::fs::read_dir(from.join("cache")).unwrap() {
        let entry = entry.unwrap();
        if entry.path().extension().is_some_and(|ending| ending == "cwasm") {
            let target = to.join("cache").join(entry.file_name());
            // Temporary files may be on another file system.
            if std::fs::hard_link(entry.path(), &target).is_err() {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

/// A connected client.
pub(crate) struct Session {
    client: RunningService<RoleClient, ()>,
    pid: u32,
}

impl Session {
    /// A client over HTTP.
    pub(crate) async fn over_http(server: &HttpServer) -> Session {
        let transport = rmcp::transport::StreamableHttpClientTransport::from_uri(server.url.clone());
        Session {
            client: ().serve(transport).await.unwrap(),
            pid: server.child.id(),
        }
    }

    /// A client over HTTP with a bearer token.
    pub(crate) async fn over_http_as(server: &HttpServer, token: &str) -> Session {
        let config = StreamableHttpClientTransportConfig::with_uri(server.url.clone()).auth_header(token);
        let transport = rmcp::transport::StreamableHttpClientTransport::from_config(config);
        Session {
            client: ().serve(transport).await.unwrap(),
            pid: server.child.id(),
        }
    }

    pub(crate) fn client(&self) -> &RunningService<RoleClient, ()> {
        &self.client
    }

    /// Calls a tool, and returns the result unchanged.
    pub(crate) async fn call_raw(&self, tool: &str, arguments: Value) -> CallToolResult {
        self.client.call_tool(params(tool, arguments)).await.unwrap()
    }

    /// Calls a tool that must succeed, and returns the structured result.
    pub(crate) async fn ok(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call_raw(tool, arguments).await;
        let body = result.structured_content.unwrap();
        assert_ne!(result.is_error, Some(true), "{tool}: {body:#}");
        body
    }

    /// Calls a tool that must be refused, and returns the error.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call_raw(tool, arguments).await;
        let body = result.structured_content.unwrap();
        assert_eq!(result.is_error, Some(true), "{tool}: {body:#}");
        body["error"].clone()
    }

    /// Makes the call that a reply proposes, which must succeed.
    pub(crate) async fn follow(&self, next_call: &Value) -> Value {
        let tool = next_call["tool"].as_str().unwrap();
        self.ok(tool, next_call["arguments"].clone()).await
    }

    /// Begins a call without waiting for its result.
    pub(crate) async fn begin(&self, tool: &str, arguments: Value) -> RequestHandle<RoleClient> {
        let request = CallToolRequest::new(params(tool, arguments)).into();
        self.client
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .unwrap()
    }

    /// Instructions that the server gave the client.
    pub(crate) fn instructions(&self) -> String {
        self.client.peer_info().unwrap().instructions.clone().unwrap()
    }

    /// Peak memory of the server, in KiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Kills the server, like a power cut.
    pub(crate) fn kill(&self) {
        kill(self.pid);
    }

    /// Closes the connection and waits for the server's exit.
    pub(crate) async fn close(self) {
        self.client.cancel().await.unwrap();
    }
}

/// Waits until a condition holds. Fails after a timeout.
pub(crate) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    // On a busy machine a component may have to be compiled, and polling without pauses would slow it down further.
    let (soon, between) = (Duration::from_secs(300), Duration::from_millis(5));
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(between).await;
        }
    };
    tokio::time::timeout(soon, waiting).await.expect("it never came");
}

pub(crate) fn params(tool: &str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)
}

/// One field of each entry of a list.
pub(crate) fn field_of_each<'a>(list: &'a Value, field: &str) -> Vec<&'a Value> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry[field])
        .collect()
}

/// Output of a command, which must have succeeded.
pub(crate) fn succeeded(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Kills a process and waits for its exit.
fn kill(number: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(number).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let number = number.to_string();
    while is_running(&number) {
        std::thread::yield_now();
    }
}

/// Sends SIGTERM to a process.
pub(crate) fn terminate(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

/// Sends SIGHUP to a process, which then reloads its configuration.
pub(crate) fn hang_up(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
}

/// True if a process exists and is not a zombie.
pub(crate) fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| {
        let state = stat.rsplit(')').next().unwrap_or_default();
        !state.trim_start().starts_with('Z')
    })
}

/// A connection that sends any bytes.
pub(crate) struct Wire {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Wire {
    /// Connects to a server that a command starts.
    pub(crate) fn of(mut command: Command) -> Wire {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Wire {
            stdin: child.stdin.take(),
            stdout: child.stdout.take().map(BufReader::new),
            child,
        }
    }

    /// Sends a part of a message.
    pub(crate) fn send_part(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn close_stdout(&mut self) {
        self.stdout = None;
    }

    pub(crate) fn send(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    /// The next message.
    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(
            self.stdout.as_mut().unwrap().read_line(&mut line).unwrap(),
            0,
            "the server closed the connection"
        );
        serde_json::from_str(&line).unwrap()
    }

    pub(crate) fn ask(&mut self, message: &Value) -> Value {
        self.send(message.to_string().as_bytes());
        self.receive()
    }

    /// The handshake of revisions before 2026-07-28.
    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let reply = self.ask(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}
            }}),
        );
        self.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        reply
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server over HTTP.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) url: String,
    log: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl HttpServer {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The URL of another path than `/mcp`.
    pub(crate) fn at(&self, path: &str) -> String {
        self.url.replace("/mcp", path)
    }

    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }

    /// The log since the server's start.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Stops the server, waits for its exit, and returns its whole log.
    pub(crate) fn stop(mut self) -> String {
        terminate(self.pid());
        assert!(self.wait().success());
        if let Some(reading) = self.reading.take() {
            reading.join().unwrap();
        }
        self.log()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
