//! One host process and its client.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::Context as _;
use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};

use crate::client::Client;
use crate::known::Shared;
use crate::load::Request;
use crate::look::Database;
use crate::place::Place;

/// Program and directory of the hosts.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub(crate) server: PathBuf,
    pub(crate) place: Place,
}

impl Recipe {
    /// Command `tollgate` on a data directory.
    pub(crate) fn command(&self, data: &Path) -> Command {
        let mut command = Command::new(&self.server);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TOLLGATE_") {
                command.env_remove(name);
            }
        }
        command.arg("--config").arg(&self.place.config);
        command.arg("--data-dir").arg(data);
        if let Database::Server(server) = &self.place.database {
            command.env("TOLLGATE_DATABASE", server.url());
        }
        command
    }

    /// A new host before the handshake.
    pub(crate) fn spawn(&self, data: &Path) -> anyhow::Result<Child> {
        let mut command = self.command(data);
        command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(self.place.log(data)?);
        command.spawn().context("a host could not be started")
    }
}

/// Starts a host, requests every known thing and some more, and lets the host exit.
pub(crate) fn ask(recipe: &Recipe, shared: &Shared, last: Vec<Request>) -> anyhow::Result<()> {
    let data = recipe.place.data.first().context("a place without data")?;
    let mut child = recipe.spawn(data)?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (input, output) = pipes.context("a host without pipes")?;
    let client = Client::begin_as(input, output, Rng::new(), true)?;
    client
        .context("a host that nobody killed ended at its start")?
        .ask(shared, last)?;
    let status = child.wait()?;
    anyhow::ensure!(status.success(), "a host that was asked ended with {status}");
    Ok(())
}

/// A host under load.
pub(crate) struct Host {
    child: Child,
    data: PathBuf,
    stopping: Arc<AtomicBool>,
    client: JoinHandle<anyhow::Result<()>>,
}

impl Host {
    /// Starts a host on a data directory and waits for the handshake.
    pub(crate) fn start(
        recipe: &Recipe,
        data: &Path,
        shared: &Arc<Shared>,
        random: Rng,
    ) -> anyhow::Result<Host> {
        let mut child = recipe.spawn(data)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.context("a host without pipes")?;
        let client = Client::begin(input, output, random)?.context("a host ended before it was killed")?;
        let stopping = Arc::new(AtomicBool::new(false));
        let (shared, stop) = (Arc::clone(shared), Arc::clone(&stopping));
        let client = std::thread::spawn(move || client.run(&shared, &|| stop.load(Ordering::Relaxed)));
        Ok(Host {
            child,
            data: data.to_owned(),
            stopping,
            client,
        })
    }

    /// Data directory of the host.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Stops the host's process with SIGSTOP, or continues it.
    pub(crate) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), signal).context("a host cannot be stopped")
    }

    /// Kills the host.
    pub(crate) fn kill(mut self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.child.try_wait()?.is_none(),
            "a host ended before it was killed"
        );
        self.child.kill()?;
        self.child.wait()?;
        self.join()
    }

    /// Lets the host finish its work and exit gracefully.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.stopping.store(true, Ordering::Relaxed);
        let status = self.child.wait()?;
        anyhow::ensure!(
            status.success(),
            "a host that was asked to stop ended with {status}"
        );
        self.join()
    }

    fn join(self) -> anyhow::Result<()> {
        let client = self.client.join();
        client.map_err(|_| anyhow::anyhow!("a client panicked"))?
    }
}
