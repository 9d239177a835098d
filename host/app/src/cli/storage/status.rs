//! `tollgate storage status`

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate_core::clock::Clock as _;
use tollgate_core::text;
use tollgate_store::data_dir::{DATABASE, DataDir};
use tollgate_store::liveness::hosts_at_work;
use tollgate_store::storage::{Database, DatabaseStatus, Member, Server};

use super::{Global, out};

/// Nothing is created or changed. Hosts may keep running.
#[derive(Debug, Args)]
pub(in crate::cli) struct Status {}

/// The status, or the reason why it is missing.
struct Found {
    place: String,
    connection: Result<(), String>,
    /// `None` without a connection.
    status: Option<Result<DatabaseStatus, String>>,
    hosts: Result<Vec<String>, String>,
    /// Hosts of the server's database, including those that are gone and not yet cleaned up.
    members: Vec<Member>,
    /// Bytes of the file and of its write-ahead log.
    file: Option<(u64, u64)>,
}

impl Status {
    /// Exit code 1 if the database cannot be reached.
    #[allow(clippy::unused_self, reason = "it has no flags of its own")]
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref())?;
        let data = DataDir::existing(&config.data_dir(global.data_dir.as_deref())?)?;
        let server = global.server(&config)?;
        anyhow::ensure!(
            server.is_some() || data.has(DATABASE),
            "there is no database in {}; no host has ever used this directory",
            data.path().display()
        );
        let found = look(&data, server)?;
        if global.json {
            out::print_json(&found.json());
        } else {
            out::print(&found.text());
        }
        Ok(match found.status {
            Some(Ok(_)) => ExitCode::SUCCESS,
            Some(Err(_)) | None => ExitCode::FAILURE,
        })
    }
}

fn look(data: &DataDir, server: Option<Server>) -> anyhow::Result<Found> {
    let place = server
        .as_ref()
        .map_or_else(|| data.database().display().to_string(), ToString::to_string);
    let file = server
        .is_none()
        .then(|| (data.bytes(DATABASE), data.bytes(&format!("{DATABASE}-wal"))));
    // Status does not join the cluster, so hosts of another data directory do not prevent it.
    let database = match &server {
        Some(server) => Database::on(server.clone()),
        None => Database::existing(&data.database()),
    };
    let hosts = hosts_at_work(data, server.as_ref(), None).map_err(|err| text::chain(&err));
    let mut members = Vec::new();
    let (connection, status) = match database.read_session() {
        Err(err) => (Err(text::chain(&err)), None),
        Ok(session) => {
            if server.is_some() {
                // Missing tables are reported below.
                members = session.roster().all().unwrap_or_default();
            }
            let status = database
                .clock()
                .and_then(|clock| session.maintenance().status(clock.boot_ms()));
            (Ok(()), Some(status.map_err(|err| text::chain(&err))))
        }
    };
    Ok(Found {
        place,
        connection,
        status,
        hosts,
        members,
        file,
    })
}

impl Found {
    fn json(&self) -> serde_json::Value {
        let mut told = match (&self.connection, &self.status) {
            (_, Some(Ok(status))) => json!(status),
            (Err(err), _) | (_, Some(Err(err))) => json!({ "error": err }),
            (Ok(()), None) => json!({}),
        };
        told["place"] = json!(self.place);
        told["works"] = json!(self.connection.is_ok());
        if let Some((bytes, log)) = self.file {
            told["bytes"] = json!(bytes);
            told["wal_bytes"] = json!(log);
        }
        match &self.hosts {
            Ok(hosts) => told["hosts"] = json!(hosts),
            Err(err) => told["hosts_error"] = json!(err),
        }
        if !self.members.is_empty() {
            let members = self.members.iter().map(|member| {
                json!({"id": member.id, "machine": member.machine, "version": member.version, "url": member.url,
                    "is_alive": member.is_alive, "silent_ms": member.silent_ms})
            });
            told["members"] = members.collect();
        }
        told
    }

    fn text(&self) -> String {
        let mut lines = vec![("place", self.place.clone())];
        lines.push((
            "connection",
            match &self.connection {
                Ok(()) => "works".to_owned(),
                Err(err) => format!("does not work: {err}"),
            },
        ));
        match &self.status {
            Some(Ok(status)) => lines.extend(of_status(status)),
            Some(Err(err)) => lines.push((
                "tables",
                format!("cannot be read: {err}; `tollgate storage init` creates those that are missing"),
            )),
            None => {}
        }
        if let Some((bytes, log)) = self.file {
            let told = format!(
                "{} KiB, plus {} KiB of write-ahead log",
                bytes.div_ceil(1024),
                log.div_ceil(1024)
            );
            lines.push(("size", told));
        }
        lines.push((
            "hosts",
            match &self.hosts {
                Err(err) => err.clone(),
                Ok(_) if !self.members.is_empty() => {
                    let members = self.members.iter().map(of_member);
                    members.collect::<Vec<_>>().join("\n            ")
                }
                Ok(hosts) if hosts.is_empty() => "none running".to_owned(),
                Ok(hosts) => hosts.join(", "),
            },
        ));
        let lines = lines.iter().map(|(name, what)| format!("{name:<11} {what}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn of_member(member: &Member) -> String {
    let state = match member.is_alive {
        true => "last heard from",
        false => "stopped; last heard from",
    };
    let url = member.url.as_deref().unwrap_or("no address (cluster.url)");
    format!(
        "{} on {}, version {}, {state} {} s ago, {url}",
        member.id,
        text::clean(&member.machine),
        text::clean(&member.version),
        member.silent_ms / 1000,
    )
}

fn of_status(status: &DatabaseStatus) -> Vec<(&'static str, String)> {
    let mut lines = vec![("engine", format!("{} {}", status.engine, status.version))];
    lines.extend(status.schema.clone().map(|schema| ("schema", schema)));
    lines.extend(
        status
            .bytes
            .map(|bytes| ("size", format!("{} KiB", bytes.div_ceil(1024)))),
    );
    let pruned = match status.pruned {
        0 => String::new(),
        pruned => format!(" (pruned before: {pruned})"),
    };
    lines.push((
        "ledger",
        format!(
            "{}{pruned}; the head is {}:{}",
            text::counted(status.rows, "row"),
            status.head.seq,
            status.head.hash
        ),
    ));
    lines.push(("envelopes", format!("{} open", status.open_envelopes)));
    lines.extend(status.migrations.iter().map(|applied| {
        let steps = format!(
            "{}: {}, the newest is {}",
            applied.owner,
            text::counted(applied.steps, "migration"),
            applied.newest
        );
        ("migrations", steps)
    }));
    lines
}
