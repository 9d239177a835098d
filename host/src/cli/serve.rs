//! `tollgate serve`

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tollgate::config::Config;
use tollgate::mcp::{self, Handler, Listing};

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
        let config = Config::load(global.config.as_deref())?;
        let gate = Arc::new(super::open(global, &config, &self.filters.choice(&config)?).await?);
        let listing = Arc::new(Listing::new(gate.catalog()));
        if listing.tools().is_empty() {
            out::warn("no tool is listed; `tollgate tools` shows which exist, `--tier full` lists them all");
        }
        let catching_up = {
            let gate = Arc::clone(&gate);
            tokio::spawn(async move { gate.catch_up().await })
        };
        let handler = {
            let gate = Arc::clone(&gate);
            move || Handler::new(Arc::clone(&gate), Arc::clone(&listing))
        };
        match self.http.or(config.server.http) {
            Some(address) => {
                mcp::serve_http(address, handler, |bound| {
                    out::warn(&format!("serving http://{bound}/mcp"))
                })
                .await?;
            }
            None => {
                let handler = handler();
                let connection = handler.connection().to_owned();
                mcp::serve_stdio(handler).await?;
                gate.stop();
                gate.end_connection(&connection).await;
            }
        }
        gate.stop();
        let _ = catching_up.await;
        gate.flush().await;
        Ok(ExitCode::SUCCESS)
    }
}
