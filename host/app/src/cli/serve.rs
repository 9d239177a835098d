//! `tollgate serve`

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use tokio::sync::watch;
use tollgate::config::{Caps, Config, Server, doc};
use tollgate::host::HostContext;
use tollgate::notify;
use tollgate::watch::Watch;
use tollgate_components::loading::Haste;
use tollgate_console::ConsoleSettings;
use tollgate_gate::Gate;
use tollgate_gate::telemetry::{Exporter, Queue, Settings};
use tollgate_mcp::auth::Keyring;
use tollgate_mcp::{self, Handler, Listing, Listings, Pages, Serving};
use tollgate_store::consoles::Consoles;

use super::flag_help::with_details;
use super::reload::{self, Reload};
use super::{Filters, Global, console, log, out};

#[derive(Debug, Args)]
pub(super) struct Serve {
    #[arg(
        long,
        help = with_details(
            "server.http",
            "Clients connect under /mcp. Examples: 8765, localhost:8765, 0.0.0.0:8765; port 0 picks a free port"
        ),
        value_name = "ADDR",
        env = "TOLLGATE_HTTP",
        value_parser = tollgate::config::address
    )]
    http: Option<SocketAddr>,
    #[arg(long, help = doc("server.auth.token_file"), value_name = "FILE", env = "TOLLGATE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    filters: Filters,
    /// True if only the console is served. Its address is then printed.
    #[arg(skip)]
    console: bool,
    /// True if a browser is opened in that case.
    #[arg(skip)]
    open: bool,
}

impl Serve {
    /// Creates the command that serves only the console.
    pub(super) fn console(address: SocketAddr, open: bool) -> Serve {
        Serve {
            http: Some(address),
            token_file: None,
            filters: Filters::default(),
            console: true,
            open,
        }
    }

    /// Returns whether one client is served over standard input and output. Configuration errors are reported later.
    pub(super) fn is_over_stdio(&self, global: &Global) -> bool {
        let config = || Config::load(global.config.as_deref());
        self.http.is_none() && config().is_ok_and(|config| config.server.http.is_none())
    }

    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let (config, watch) = reload::watched(global)?;
        let telemetry = config.telemetry.settings(|name| std::env::var(name).ok())?;
        if telemetry.as_ref().is_some_and(Settings::exposes_headers) {
            out::warn("telemetry headers are sent unencrypted");
        }
        let context = super::context(global, &config)?;
        reload::check_start(global, context.data(), &config)?;
        let workspaces = super::workspaces(global, &config, context.path())?;
        if super::has_no_place(global, &config, context.path())? {
            tracing::warn!("{}", super::NO_PLACE);
        }
        let pack_selection = self.filters.pack_selection(&config)?;
        let loaded = context
            .load_in(&config, workspaces.clone(), &pack_selection, Haste::AtHand)
            .await?;
        let is_whole = loaded.catalog.preparing().is_over();
        if is_whole {
            super::log_state(&loaded.catalog);
        }
        reload::remember_more(&context, &config)?;
        let mut gate = context.gate(&config, loaded)?;
        let traced = telemetry.as_ref().is_some_and(|telemetry| telemetry.traces);
        let queue = traced.then(|| gate.trace());
        let gate = Arc::new(gate);
        let listing = Listing::new(&gate.catalog(), self.filters.schemas(&config));
        if is_whole && listing.tools().is_empty() {
            out::warn("no tool is listed; `tollgate tools` shows all tools, `--tier full` lists them");
        }
        let listings = Arc::new(Listings::new(listing));
        let address = self.http.or(config.server.http);
        let (bounds, caps) = watch::channel(config.server.limits.caps());
        let (viewers, seen_by) = watch::channel(config.server.console.clone());
        let serving = address
            .map(|address| self.serving(&config.server, address, caps))
            .transpose()?;
        let (mut serving, keeping) = serving.unzip();
        let context = Arc::new(context);
        let shown = match serving
            .as_mut()
            .filter(|_| self.console || config.server.console.enabled)
        {
            Some(serving) => Some(self.show(serving, &gate, &context, &config, seen_by)?),
            None => None,
        };
        let catching_up = {
            let gate = Arc::clone(&gate);
            tokio::spawn(async move { gate.catch_up().await })
        };
        let exporter = telemetry
            .map(|settings| export(&settings, queue, &gate))
            .transpose()?;
        let notifying = notify::start(config.approvals.notify.clone(), Arc::downgrade(&gate));
        let reload = Reload {
            global: global.clone(),
            filters: self.filters,
            context: Arc::clone(&context),
            gate: Arc::clone(&gate),
            listings: Arc::clone(&listings),
            bounds,
            viewers,
            config,
        };
        let reloading = tokio::spawn(reload.keep_up(watch, workspaces));
        let keeping = keeping.flatten().map(|keys| tokio::spawn(keys.keep_up()));
        let ready = |bound| announce(global, &gate, &context, bound, shown);
        serve(serving, &gate, listings, ready).await?;
        if shown.is_some() {
            Consoles::open(context.data())?.withdraw(gate.host_id());
        }
        reloading.abort();
        if let Some(notifying) = notifying {
            notifying.abort();
        }
        if let Some(keeping) = keeping {
            keeping.abort();
        }
        // Releases the reload's reference to the gate, so that the gate ends here.
        let _ = reloading.await;
        gate.stop();
        let _ = catching_up.await;
        gate.flush().await;
        // Sessions over HTTP end with the host, and so do the envelopes that their clients left open.
        gate.end_connections().await;
        if let Some(exporter) = exporter {
            exporter.stop().await;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Adds the console to the served pages, or serves only the console.
    fn show(
        &self,
        serving: &mut Serving,
        gate: &Arc<Gate>,
        context: &Arc<HostContext>,
        config: &Config,
        seen_by: watch::Receiver<ConsoleSettings>,
    ) -> anyhow::Result<Shown> {
        let dependencies = tollgate::console::dependencies(gate, context, config, seen_by)?;
        serving.pages = Some(Pages {
            make: Box::new(move |prove, stop| Ok(tollgate_console::router(dependencies, prove, stop)?)),
            path: tollgate_console::CONSOLE_PATH,
            alone: self.console,
        });
        Ok(match (self.console, self.open) {
            (true, open) => Shown::Alone { open },
            (false, _) => Shown::Beside,
        })
    }

    fn serving(
        &self,
        server: &Server,
        address: SocketAddr,
        caps: watch::Receiver<Caps>,
    ) -> anyhow::Result<(Serving, Option<reload::Keys>)> {
        let mut auth = server.auth.clone();
        auth.token_file = self.token_file.clone().or(auth.token_file);
        // The watch starts before the file is read, so that no later change is missed.
        let mut watch = Watch::new().context("cannot watch for configuration changes")?;
        watch.follow(auth.token_file.iter().cloned().collect());
        // Not a flag, because flags are visible to all users of the machine.
        let named = std::env::var("TOLLGATE_TOKEN").ok();
        let tokens = Keyring::open(auth.token_file.as_deref(), named.as_deref(), |made| {
            out::warn(&format!(
                "created the token file `{}` with a new token",
                made.display()
            ));
        })?;
        let tokens = tokens.map(Arc::new);
        if tokens.is_some() && !address.ip().is_loopback() {
            out::warn("tokens are sent unencrypted; for clients on other machines, use a proxy with TLS");
        }
        let keys = tokens.clone().map(|keyring| reload::Keys { keyring, watch });
        let serving = Serving {
            address,
            hosts: server.allowed_hosts.clone(),
            origins: server.allowed_origins.clone(),
            tokens,
            caps,
            auth,
            pages: None,
        };
        Ok((serving, keys))
    }
}

/// Starts the export to a collector, which ends with the gate.
fn export(settings: &Settings, queue: Option<Queue>, gate: &Arc<Gate>) -> anyhow::Result<Exporter> {
    let watched = Arc::downgrade(gate);
    let figures = move || Some(watched.upgrade()?.figures());
    Exporter::start(settings, gate.host_id(), queue, figures).context("cannot send telemetry")
}

/// Mode in which a console is served.
#[derive(Debug, Clone, Copy)]
enum Shown {
    /// Beside MCP.
    Beside,
    /// Without MCP, for a person who waits for its address.
    Alone {
        /// True if a browser is opened.
        open: bool,
    },
}

/// Reports what is served, once it is served.
fn announce(global: &Global, gate: &Gate, context: &HostContext, bound: SocketAddr, shown: Option<Shown>) {
    if !matches!(shown, Some(Shown::Alone { .. })) {
        log::notice(&format!("serving http://{bound}/mcp"));
    }
    let Some(shown) = shown else { return };
    let served = console::reachable(bound);
    let told = Consoles::open(context.data())
        .map_err(anyhow::Error::new)
        .and_then(|consoles| {
            consoles.announce(gate.host_id(), &served)?;
            match shown {
                Shown::Beside => log::notice(&format!("serving {served}; `tollgate console` logs in")),
                Shown::Alone { open } => {
                    log::notice(
                        "serving the console until Ctrl-C; open this address within ten minutes to log in (it works once):",
                    );
                    console::invite(global, &consoles, context.data(), &served, open)?;
                }
            }
            Ok(())
        });
    if let Err(err) = told {
        out::warn(&format!("`tollgate console` does not find this server: {err:#}"));
    }
}

/// Serves until the end. `ready` gets the bound address.
async fn serve(
    serving: Option<Serving>,
    gate: &Arc<Gate>,
    listings: Arc<Listings>,
    ready: impl FnOnce(SocketAddr),
) -> anyhow::Result<()> {
    let handler = {
        let gate = Arc::clone(gate);
        move || Handler::new(Arc::clone(&gate), Arc::clone(&listings))
    };
    match serving {
        Some(serving) => {
            let gate = Arc::clone(gate);
            tollgate_mcp::serve_http(serving, gate, handler, ready).await?;
        }
        None => {
            if std::io::stdin().is_terminal() {
                log::notice(
                    "serving MCP on standard input and output, for a client that starts this program: `tollgate \
                     clients add CLIENT` connects a client, `--http 8765` serves over HTTP, `tollgate call TOOL` makes \
                     one call; press Ctrl-C to stop",
                );
            }
            let handler = handler();
            let connection = handler.connection().to_owned();
            tollgate_mcp::serve_stdio(handler).await?;
            gate.stop();
            gate.end_connection(&connection).await;
        }
    }
    Ok(())
}
