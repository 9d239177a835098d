//! The server as a child process, with a real MCP client on its standard input and output.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use rmcp::RoleClient;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation};
use rmcp::service::RunningService;
use serde_json::{Map, Value};
use tokio::process::{Child, Command};

/// Timeout of every request and start. A first start compiles the packs.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Program, configuration and data directory of the server.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) executable: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) data_dir: PathBuf,
}

impl Launch {
    /// Path of the server's database.
    pub(crate) fn database(&self) -> PathBuf {
        self.data_dir.join("tollgate.db")
    }

    /// Runs another command on the server's data and returns its output, which must contain `contains`.
    pub(crate) fn run(&self, arguments: &[&str], contains: &str) -> anyhow::Result<String> {
        let output = self
            .program()
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| shown(&self.executable))?;
        let said = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        anyhow::ensure!(
            output.status.success() && said.contains(contains),
            "`tollgate {}` ended with {} and said: {said}",
            arguments.join(" "),
            output.status
        );
        Ok(format!("\n{said}"))
    }

    /// The program, with the demo's configuration and data.
    fn program(&self) -> std::process::Command {
        let mut program = std::process::Command::new(&self.executable);
        for (name, _) in std::env::vars_os() {
            // Otherwise a filter in the user's environment would hide tools from the demo.
            if name.to_string_lossy().starts_with("TOLLGATE_") {
                program.env_remove(name);
            }
        }
        program.arg("--config").arg(&self.config);
        program.arg("--data-dir").arg(&self.data_dir);
        program
    }

    fn command(&self) -> Command {
        let mut command = Command::from(self.program());
        // Packs that the demo does not use would be compiled in vain.
        command.args(["serve", "--tier", "full", "--packs", "core,task-store"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// A running server and the client that talks to it.
pub(crate) struct Server {
    child: Child,
    client: RunningService<RoleClient, ClientConfig>,
}

impl Server {
    /// Starts the server and begins a session.
    pub(crate) async fn start(launch: &Launch) -> anyhow::Result<Server> {
        let mut child = launch
            .command()
            .spawn()
            .with_context(|| shown(&launch.executable))?;
        let pipes = (child.stdout.take(), child.stdin.take());
        let (Some(stdout), Some(stdin)) = pipes else {
            anyhow::bail!("the server has no pipes");
        };
        let about = Implementation::new("tollgate-demo", env!("CARGO_PKG_VERSION"));
        let config = ClientConfig::new(ClientCapabilities::default(), about);
        let client = tokio::time::timeout(REQUEST_TIMEOUT, config.serve((stdout, stdin)))
            .await
            .context("the server did not answer in time")?
            .context("the session did not begin")?;
        Ok(Server { child, client })
    }

    /// The server's name, its protocol version, and the number of its tools.
    pub(crate) async fn introduction(&self) -> anyhow::Result<String> {
        let tools = tokio::time::timeout(REQUEST_TIMEOUT, self.client.list_all_tools()).await??;
        let info = self
            .client
            .peer_info()
            .context("the server did not introduce itself")?;
        let name = info
            .server_info
            .as_ref()
            .map_or("a server", |server| server.name.as_str());
        Ok(format!(
            "{name}, MCP {}, {} tools",
            info.protocol_version,
            tools.len()
        ))
    }

    /// Makes one call.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> anyhow::Result<CallToolResult> {
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        tokio::time::timeout(REQUEST_TIMEOUT, self.client.call_tool(request))
            .await
            .with_context(|| format!("{tool} was not answered in time"))?
            .with_context(|| format!("{tool} failed as a request"))
    }

    /// Kills the server.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("the server could not be killed")
    }

    /// Closes the session and waits until the server is gone.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.client.cancel().await.context("the session did not end")?;
        let status = tokio::time::timeout(REQUEST_TIMEOUT, self.child.wait())
            .await
            .context("the server did not stop when its input was closed")??;
        anyhow::ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

fn shown(executable: &Path) -> String {
    format!("{} could not be started", executable.display())
}
