//! `tollgate serve`

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tollgate::gate::Gate;
use tollgate::mcp::{self, Handler, Listing, Listings};

use super::reload::{self, Reload};
use super::{Filters, Global, out};

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Serve HTTP at this loopback address instead, under /mcp; port 0 picks a free one
    #[arg(long, value_name = "ADDR", env = "TOLLGATE_HTTP")]
    http: Option<SocketAddr>,
    #[command(flatten)]
    filters: Filters,
}

impl Serve {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let (config, watch) = reload::watched(global)?;
        let site = super::site(global, &config)?;
        let workspaces = super::workspaces(global, &config, site.path())?;
        let loaded = site
            .load(&config, workspaces, &self.filters.choice(&config)?)
            .await?;
        super::log_state(&loaded.catalog);
        let gate = Arc::new(site.gate(&config, loaded)?);
        let listing = Listing::new(&gate.catalog());
        if listing.tools().is_empty() {
            out::warn("no tool is listed; `tollgate tools` shows which exist, `--tier full` lists them all");
        }
        let listings = Arc::new(Listings::new(listing));
        let address = self.http.or(config.server.http);
        let catching_up = {
            let gate = Arc::clone(&gate);
            tokio::spawn(async move { gate.catch_up().await })
        };
        let reload = Reload {
            global: global.clone(),
            filters: self.filters,
            site: Arc::new(site),
            gate: Arc::clone(&gate),
            listings: Arc::clone(&listings),
            config,
        };
        let reloading = tokio::spawn(reload.keep_up(watch));
        serve(address, &gate, listings).await?;
        reloading.abort();
        // It lets go of the gate, which ends here.
        let _ = reloading.await;
        gate.stop();
        let _ = catching_up.await;
        gate.flush().await;
        Ok(ExitCode::SUCCESS)
    }
}

/// Serves until it is over.
async fn serve(address: Option<SocketAddr>, gate: &Arc<Gate>, listings: Arc<Listings>) -> anyhow::Result<()> {
    let handler = {
        let gate = Arc::clone(gate);
        move || Handler::new(Arc::clone(&gate), Arc::clone(&listings))
    };
    match address {
        Some(address) => {
            let gate = Arc::clone(gate);
            let metrics = move || gate.metrics();
            let ready = |bound| out::warn(&format!("serving http://{bound}/mcp"));
            mcp::serve_http(address, handler, metrics, ready).await?;
        }
        None => {
            let handler = handler();
            let connection = handler.connection().to_owned();
            mcp::serve_stdio(handler).await?;
            gate.stop();
            gate.end_connection(&connection).await;
        }
    }
    Ok(())
}
