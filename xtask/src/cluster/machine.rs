//! A host that is started, killed and restarted, and the balancer in front of the hosts.
#![allow(clippy::disallowed_methods, reason = "a build tool works with files")]

use std::fs::OpenOptions;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::http;
use crate::run::{root, run};

/// Timeout for a start and for a graceful stop. A first start compiles or unpacks components.
const START_STOP_TIMEOUT: Duration = Duration::from_mins(3);
/// Polling interval for operations that take seconds.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Folder of the container example, with the hosts' configurations.
const DEPLOY: &str = "deploy";
/// Configuration of the balancer in that example.
const BALANCER: &str = "deploy/haproxy.cfg";

/// Resources that all hosts share.
#[derive(Debug, Clone)]
pub(super) struct Common {
    pub(super) tollgate: PathBuf,
    pub(super) token_file: PathBuf,
    /// URL of the database, unless it is a file in the shared data directory.
    pub(super) database: Option<String>,
}

/// A machine with its host, running or not.
#[derive(Debug)]
pub(super) struct Machine {
    common: Common,
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    config: PathBuf,
    data: PathBuf,
    log: PathBuf,
    host: Option<Child>,
}

impl Machine {
    /// Creates a machine whose host is not running yet.
    pub(super) fn new(
        common: &Common,
        name: &'static str,
        folder: &Path,
        data: PathBuf,
    ) -> anyhow::Result<Machine> {
        let address = free()?;
        let config = folder.join(format!("{name}.toml"));
        // Hosts that are gone should be noticed as early as possible.
        let text = configuration(name)?;
        std::fs::write(&config, format!("{text}lease_sec = 5\n"))?;
        Ok(Machine {
            common: common.clone(),
            name,
            address,
            config,
            data,
            log: folder.join(format!("{name}.log")),
            host: None,
        })
    }

    /// Command `tollgate` on this machine.
    pub(super) fn tollgate(&self) -> Command {
        let mut command = Command::new(&self.common.tollgate);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TOLLGATE_") {
                command.env_remove(name);
            }
        }
        command.arg("--config").arg(&self.config);
        command.arg("--data-dir").arg(&self.data);
        if let Some(url) = &self.common.database {
            command.env("TOLLGATE_DATABASE", url);
        }
        command
    }

    /// Starts the host and waits until it is ready.
    pub(super) fn start(&mut self) -> anyhow::Result<()> {
        let log = appended(&self.log)?;
        let mut command = self.tollgate();
        command
            .arg("serve")
            .args(["--http", &self.address.to_string()])
            .arg("--token-file")
            .arg(&self.common.token_file)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut child = command.spawn().context("cannot run a host")?;
        let until = Instant::now() + START_STOP_TIMEOUT;
        while !is_ready(self.address) {
            if let Some(status) = child.try_wait()? {
                bail!("host {} ended with {status}\n{}", self.name, self.said());
            }
            if Instant::now() > until {
                let _ = child.kill();
                bail!("host {} is not ready\n{}", self.name, self.said());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        self.host = Some(child);
        Ok(())
    }

    /// Kills the host, and returns the time span in which it died.
    pub(super) fn kill(&mut self) -> anyhow::Result<(Instant, Instant)> {
        let mut host = self.host.take().context("no host to kill")?;
        ensure!(
            host.try_wait()?.is_none(),
            "host {} ended by itself\n{}",
            self.name,
            self.said()
        );
        let since = Instant::now();
        host.kill()?;
        host.wait()?;
        Ok((since, Instant::now()))
    }

    /// Stops the host gracefully, and waits until it has ended.
    pub(super) fn stop(&mut self) -> anyhow::Result<()> {
        let mut host = self.host.take().context("no host to stop")?;
        run(Command::new("kill").args(["-s", "TERM", &host.id().to_string()]))?;
        let until = Instant::now() + START_STOP_TIMEOUT;
        let status = loop {
            match host.try_wait()? {
                Some(status) => break status,
                None if Instant::now() > until => {
                    let _ = host.kill();
                    bail!("host {} does not stop\n{}", self.name, self.said());
                }
                None => std::thread::sleep(POLL_INTERVAL),
            }
        };
        ensure!(
            status.success(),
            "host {} stopped with {status}\n{}",
            self.name,
            self.said()
        );
        Ok(())
    }

    /// End of the host's log.
    pub(super) fn said(&self) -> String {
        end_of(&self.log)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(host) = &mut self.host {
            let _ = host.kill();
            let _ = host.wait();
        }
    }
}

/// HAProxy in front of the hosts.
pub(super) struct Balancer {
    child: Child,
    pub(super) address: SocketAddr,
    log: PathBuf,
}

impl Balancer {
    /// Version of HAProxy. The error says how to install it.
    pub(super) fn version() -> anyhow::Result<String> {
        let said = Command::new("haproxy").arg("-v").output();
        let said = said.context("there is no haproxy; install it (Debian: apt-get install haproxy)")?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let version = said.split_whitespace().nth(2).unwrap_or("of some version");
        Ok(format!("HAProxy {version}"))
    }

    /// Starts the balancer, and waits until it forwards to a host.
    pub(super) fn start(folder: &Path, machines: &[Machine; 2]) -> anyhow::Result<Balancer> {
        let address = free()?;
        let log = folder.join("haproxy.log");
        let out = appended(&log)?;
        let mut command = Command::new("haproxy");
        command
            .arg("-db")
            .arg("-f")
            .arg(root().join(BALANCER))
            .env("LISTEN", address.to_string())
            .env("HOST_1", machines[0].address.to_string())
            .env("HOST_2", machines[1].address.to_string())
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out);
        let child = command.spawn().context("cannot run haproxy")?;
        let mut balancer = Balancer { child, address, log };
        let until = Instant::now() + START_STOP_TIMEOUT;
        while !is_ready(address) {
            let has_ended = balancer.child.try_wait()?.is_some();
            ensure!(
                !has_ended && Instant::now() < until,
                "HAProxy reaches no host\n{}",
                balancer.said()
            );
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(balancer)
    }

    /// End of the balancer's log.
    pub(super) fn said(&self) -> String {
        end_of(&self.log)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Configuration of a host in the container example. The addresses in it do not matter here.
fn configuration(name: &str) -> anyhow::Result<String> {
    let file = root().join(DEPLOY).join(format!("{name}.toml"));
    std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

/// Waits until a condition holds. The error names the condition.
pub(super) fn until(what: &str, is_so: impl Fn() -> bool) -> anyhow::Result<()> {
    let end = Instant::now() + START_STOP_TIMEOUT;
    while !is_so() {
        ensure!(Instant::now() < end, "timed out waiting until {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

fn is_ready(address: SocketAddr) -> bool {
    http::ask(address, "GET", "/readyz", &[], "").is_ok_and(|answer| answer.status == 200)
}

/// An unused address.
fn free() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn appended(log: &Path) -> anyhow::Result<std::fs::File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    Ok(options.open(log)?)
}

fn end_of(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.len().saturating_sub(15);
    lines.get(start..).unwrap_or_default().join("\n")
}
