//! `tollgate console`

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_sandbox::process::children;
use tollgate_store::consoles::Consoles;
use tollgate_store::data_dir::DataDir;

use super::serve::Serve;
use super::{Global, log, out};

/// Open the web console on this machine: find a running one, or serve it. Prints an address for one login, within ten
/// minutes
#[derive(Debug, Args)]
pub(super) struct Console {
    /// Open the address in the browser
    #[arg(long)]
    open: bool,
    /// Port to serve at, on this machine only [default: a free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
}

impl Console {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref())?;
        let data = DataDir::open(&config.data_dir(global.data_dir.as_deref())?)?;
        let consoles = Consoles::open(&data)?;
        if let Some(served) = consoles.served(&data)?.first() {
            invite(global, &consoles, &data, served, self.open)?;
            return Ok(ExitCode::SUCCESS);
        }
        drop((data, consoles));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        Serve::console(address, self.open).run(global).await
    }
}

/// Prints the address of a console, with a one-time login token.
pub(super) fn invite(
    global: &Global,
    consoles: &Consoles,
    data: &DataDir,
    served: &str,
    open: bool,
) -> anyhow::Result<()> {
    let token = consoles.offer_login(SystemClock.now_ms());
    let token = token.context("cannot store a token for the login")?;
    let address = format!("{served}login#{token}");
    if global.json {
        out::print_json(&json!({ "url": address, "console": served }));
    } else {
        out::print(&address);
    }
    if open && let Err(err) = browse(data, &address) {
        out::warn(&format!("no browser was opened: {err:#}"));
    }
    Ok(())
}

/// Address at which this machine reaches the console of a server.
pub(super) fn reachable(bound: SocketAddr) -> String {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let at = SocketAddr::new(ip, bound.port());
    format!("http://{at}{}", tollgate_console::CONSOLE_PATH)
}

/// Opens a browser at an address. Program arguments are visible to all users of the machine, so the browser gets a file
/// that redirects to the address and is readable only by its owner.
fn browse(data: &DataDir, address: &str) -> anyhow::Result<()> {
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={address}\"><title>Tollgate</title><a href=\"{address}\">Console</a>"
    );
    let file: PathBuf = Consoles::open(data)?.write_page(data, &page)?;
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let mut command = Command::new(program);
    command.arg(&file);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let started = children::start(|| command.spawn(), |child| Some(child.id()));
    started.with_context(|| format!("cannot start {program}"))?;
    log::notice("a browser was asked to open the console");
    Ok(())
}
