//! `tollgate serve`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tollgate::auth::Tokens;
use tollgate::config::{Config, Server};
use tollgate::mcp::{self, Handler, Listing, Serving};

use super::{Filters, Global, out};

#[derive(Debug, Args)]
pub(super) struct Serve {
    /// Serve HTTP at this address instead, under /mcp; port 0 picks a free one
    #[arg(long, value_name = "ADDR", env = "TOLLGATE_HTTP")]
    http: Option<SocketAddr>,
    /// Over HTTP, let only the bearers of this file's tokens in; it is made if it is not there
    #[arg(long, value_name = "FILE", env = "TOLLGATE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
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
        let handler = {
            let gate = Arc::clone(&gate);
            move || Handler::new(Arc::clone(&gate), Arc::clone(&listing))
        };
        match self.http.or(config.server.http) {
            Some(address) => {
                let serving = self.serving(&config.server, address)?;
                mcp::serve_http(serving, Arc::clone(&gate), handler, |bound| {
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
        gate.flush().await;
        Ok(ExitCode::SUCCESS)
    }

    fn serving(&self, server: &Server, address: SocketAddr) -> anyhow::Result<Serving> {
        let mut auth = server.auth.clone();
        auth.token_file = self.token_file.clone().or(auth.token_file);
        let filed = auth.token_file.as_deref().map(|path| {
            Tokens::open(path, |made| {
                out::warn(&format!("made {} with a new token", made.display()));
            })
        });
        // Not a flag: everybody on the machine sees those.
        let named = std::env::var("TOLLGATE_TOKEN")
            .ok()
            .map(|token| Tokens::one(&token));
        let tokens = match (filed.transpose()?, named.transpose()?) {
            (Some(filed), Some(named)) => Some(filed.and(named)),
            (filed, named) => filed.or(named),
        };
        if tokens.is_some() && !address.ip().is_loopback() {
            out::warn("tokens travel unencrypted; let a proxy speak TLS with other machines");
        }
        Ok(Serving {
            address,
            hosts: server.allowed_hosts.clone(),
            origins: server.allowed_origins.clone(),
            tokens,
            caps: server.limits.caps(),
            auth,
        })
    }
}
