//! `tollgate healthcheck`

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate_store::data_dir::DataDir;
use tollgate_store::liveness;

use super::{Global, out};

/// Timeout for accepting a connection, and for the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes of an answer that are read.
const MAX_ANSWER_BYTES: u64 = 4 << 10;

/// Exit code 0 if a server works, 1 if not. Over HTTP, the check requests /readyz; otherwise a host must be running on
/// the data directory
#[derive(Debug, Args)]
pub(super) struct HealthCheck {
    /// Address of the server [default: server.http of the configuration]
    #[arg(long, value_name = "ADDR", env = "TOLLGATE_HTTP", value_parser = tollgate::config::address)]
    http: Option<SocketAddr>,
}

impl HealthCheck {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref());
        let address = match (self.http, &config) {
            (Some(address), _) => Some(address),
            (None, Ok(config)) => config.server.http,
            (None, Err(_)) => None,
        };
        let found = match address {
            Some(address) => ask(reachable(address)),
            None => look(global, &config?),
        };
        let (is_well, said) = match found {
            Ok(said) => (true, said),
            Err(err) => (false, format!("{err:#}")),
        };
        if global.json {
            out::print_json(&json!({ "healthy": is_well, "said": said }));
        } else {
            out::print(&said);
        }
        Ok(if is_well {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// Address to connect to. A server that listens on all addresses is reachable on this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn ask(address: SocketAddr) -> anyhow::Result<String> {
    let mut connection = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT)
        .with_context(|| format!("{address} does not accept connections"))?;
    connection.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    connection.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    write!(
        connection,
        "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    connection
        .take(MAX_ANSWER_BYTES)
        .read_to_end(&mut answer)
        .with_context(|| format!("{address} does not answer"))?;
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split_whitespace().nth(1).unwrap_or_default();
    let said = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body.trim());
    ensure!(
        answer.starts_with("HTTP/1.1 ") && status == "200",
        "{address} answers {status} {said}"
    );
    Ok(format!("{address} is ready"))
}

/// Status of a host on the data directory, whose database must be readable.
fn look(global: &Global, config: &Config) -> anyhow::Result<String> {
    let data = DataDir::existing(&config.data_dir(global.data_dir.as_deref())?)?;
    ensure!(
        global.has_database(config, &data)?,
        "there is no ledger in {}",
        data.path().display()
    );
    let hosts = liveness::hosts_alive(&data)?;
    ensure!(!hosts.is_empty(), "no host is using {}", data.path().display());
    global
        .existing_database(config, &data)?
        .read_session()?
        .ledger()
        .head()?;
    Ok(format!(
        "{} in use by {}",
        data.path().display(),
        tollgate_core::text::counted(hosts.len(), "host")
    ))
}
