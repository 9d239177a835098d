//! `tollgate storage copy`

use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::host::{Authority, HostContext, PackSelection};
use tollgate_components::catalog::Catalog;
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_core::text;
use tollgate_store::artifacts;
use tollgate_store::data_dir::{DATABASE, DataDir};
use tollgate_store::ledger::{heads, trusted};
use tollgate_store::liveness::{Host, hosts_at_work};
use tollgate_store::storage::{Database, Namespace, Server, Transfer, Transferred};

use super::{Global, out};

/// No host may run on either side, and the target must be empty. Everything is compared before it is kept: a copy that
/// fails or is interrupted leaves the target empty. The source is not changed, except that work of hosts that died
/// is ended as at a start. Keys stay in the data directory, and so do artifact files; artifact content on a
/// server becomes files.
#[derive(Debug, Args)]
pub(in crate::cli) struct Copy {
    /// Copy the file of the data directory to this database: its URL, env:VARIABLE or file:PATH with the URL in it
    #[arg(
        long,
        value_name = "URL",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
    to: Option<String>,
    /// Copy this database into a new file of the data directory
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Skip the tables of a component that is no longer loaded, such as old-pack or policy-old; may be
    /// repeated
    #[arg(long, value_name = "COMPONENT")]
    leave_out: Vec<String>,
}

/// Direction of the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    ToServer,
    FromServer,
}

impl Copy {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let (way, url) = match (&self.to, &self.from) {
            (Some(url), None) => (Way::ToServer, url),
            (None, Some(url)) => (Way::FromServer, url),
            _ => bail!("name one of --to and --from"),
        };
        let config = Config::load(global.config.as_deref())?;
        let data_dir = config.data_dir(global.data_dir.as_deref())?;
        let data = DataDir::existing(&data_dir)?;
        let server = global.server_of(&config, url)?;
        check_file(way, &data)?;
        if way == Way::FromServer {
            let source = Database::on(server.clone()).read_session()?;
            ensure!(
                source.maintenance().is_made()?,
                "{server} has no Tollgate tables in this URL's schema, so there is nothing to copy; check the URL"
            );
        }
        // From now on, other processes and other copies see this process as a host.
        refuse_others(&data, &server, None)?;
        let host = Host::join(&data, SystemClock.new_id("hst"))?;
        refuse_others(&data, &server, Some(&host))?;
        let authority = Authority {
            server: (way == Way::FromServer).then(|| server.clone()),
            ..super::super::authority(global, &config)?
        };
        let context = HostContext::open(&data_dir, authority)?;
        let catalog = load(global, &config, &context).await?;
        self.check_loaded(&catalog, context.database())?;
        host.clean_up_after_dead_hosts(context.database(), &*context.clock())?;
        let target = match way {
            Way::ToServer => Database::connect(server.clone()),
            Way::FromServer => Database::open(&data.database()),
        };
        let target = target.context("cannot use the target database")?;
        if way == Way::FromServer {
            // Contents come before the rows, so that no row refers to missing content.
            artifacts::into_files(&data, context.database(), context.clock())?;
        }
        let copied = self.transfer(&data, &server, &host, &catalog, (context.database(), &target))?;
        if global.json {
            out::print_json(&json!(copied));
        } else {
            out::print(&told(&copied));
            out::warn(&next(way, &data));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Fails with the reasons if a component with tables did not load.
    fn check_loaded(&self, catalog: &Catalog, source: &Database) -> anyhow::Result<()> {
        let with_tables = source.packs_with_tables()?;
        let stays = |owner: &str| self.leave_out.iter().any(|left| left == owner);
        let is_wanted = |owner: &str| with_tables.iter().any(|known| known == owner) && !stays(owner);
        let packs = catalog.failures().iter();
        let packs = packs
            .filter(|failure| is_wanted(&failure.pack))
            .map(ToString::to_string);
        let policies = catalog.policies().failures();
        let policies = policies
            .filter(|unloaded| is_wanted(Namespace::of_policy(&unloaded.policy).pack()))
            .map(ToString::to_string);
        let failed: Vec<String> = packs.chain(policies).collect();
        ensure!(
            failed.is_empty(),
            "{}\nnothing was copied, because the tables of a component that does not load cannot be created in the \
             target",
            failed.join("\n")
        );
        Ok(())
    }

    fn transfer(
        &self,
        data: &DataDir,
        server: &Server,
        host: &Host,
        catalog: &Catalog,
        (source, target): (&Database, &Database),
    ) -> anyhow::Result<Transferred> {
        let components = catalog
            .components()
            .map(|(namespace, steps, _)| (namespace, steps));
        let components: Vec<_> = components.filter(|(_, steps)| !steps.is_empty()).collect();
        let noted = heads::newest(data)?;
        let keys = trusted::keys(data, &source.read_session()?)?;
        let others = || match hosts_at_work(data, Some(server), Some(host.id())) {
            Ok(others) if others.is_empty() => None,
            Ok(others) => Some(format!("{} started during the copy", others.join(", "))),
            Err(err) => Some(format!(
                "cannot determine which hosts use the databases: {}",
                text::chain(&err)
            )),
        };
        let transfer = Transfer {
            source,
            target,
            host: host.id(),
            components: &components,
            leave_out: &self.leave_out,
            head: noted.as_ref().map(|noted| &noted.head),
            keys: &keys,
            others: &others,
        };
        // On a thread without a runtime, a session waits for its server directly, which shortens each round trip.
        let copied = std::thread::scope(|scope| scope.spawn(|| transfer.run()).join());
        Ok(copied.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
    }
}

/// Checks that a file to copy exists. A file to write must be missing or empty, which is checked later.
fn check_file(way: Way, data: &DataDir) -> anyhow::Result<()> {
    ensure!(
        way == Way::FromServer || data.has(DATABASE),
        "there is no {DATABASE} in {}; no host has ever used this directory, so there is nothing to copy",
        data.path().display()
    );
    if way == Way::FromServer && data.has(DATABASE) {
        let session = Database::existing(&data.database()).read_session()?;
        // A file without tables has not been used by a host.
        let end = session.ledger().head().map_or(0, |head| head.seq);
        ensure!(
            end == 0,
            "{DATABASE} in {} already contains a ledger ({}); move {DATABASE}, {DATABASE}-wal and {DATABASE}-shm away, for \
             example to {DATABASE}.old",
            data.path().display(),
            text::counted(end, "row")
        );
    }
    Ok(())
}

fn refuse_others(data: &DataDir, server: &Server, host: Option<&Host>) -> anyhow::Result<()> {
    let others = hosts_at_work(data, Some(server), host.map(Host::id))?;
    ensure!(
        others.is_empty(),
        "{} running; stop all hosts of both databases, and close clients that start hosts",
        match others.len() {
            1 => format!("{} is", others[0]),
            _ => format!("{} are", others.join(", ")),
        }
    );
    Ok(())
}

/// Loads all components, including disabled ones, because they may have tables.
async fn load(
    global: &Global,
    config: &Config,
    context: &HostContext,
) -> anyhow::Result<std::sync::Arc<Catalog>> {
    let mut config = config.clone();
    for pack in config.packs.values_mut() {
        pack.enabled = None;
    }
    let workspaces = super::super::workspaces(global, &config, context.path())?;
    let loaded = context
        .load(&config, workspaces, &PackSelection::default())
        .await?;
    Ok(loaded.catalog)
}

fn told(copied: &Transferred) -> String {
    format!(
        "copied {} of {}; every table has the same SHA-256 on both sides; {} verified; the head is {}:{}",
        text::counted(copied.rows, "row"),
        text::counted(copied.tables.len(), "table"),
        text::counted(copied.ledger_rows, "ledger row"),
        copied.head.seq,
        copied.head.hash
    )
}

fn next(way: Way, data: &DataDir) -> String {
    let file = data.database();
    match way {
        Way::ToServer => format!(
            "before a host starts, set storage.url or TOLLGATE_DATABASE on every machine; a host without it continues to use {0}. \
             Then move {0}, {0}-wal and {0}-shm away, and keep them until the server has a backup",
            file.display()
        ),
        Way::FromServer => format!(
            "before a host starts, remove storage.url and TOLLGATE_DATABASE on every machine; a host that still has \
             one of them continues to use the server. The database is now {}",
            file.display()
        ),
    }
}
