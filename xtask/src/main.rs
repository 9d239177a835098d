//! `cargo xtask`: one command for each task of working on the project.

#[cfg(test)]
mod arrows;
mod bench;
mod bundle;
mod check;
mod clients_test;
mod cluster;
mod components;
mod conformance;
mod console_test;
mod deny;
#[cfg(test)]
mod doc_lines;
mod docs;
mod engines;
mod fuzz;
mod languages;
#[cfg(test)]
mod migrations;
mod package;
mod postgres;
mod python;
mod registries;
mod reproduce;
#[cfg(test)]
mod rules;
mod run;
mod sbom;
mod sdk;
mod session;
mod test;
#[cfg(test)]
mod tokens;
mod tools;
mod torture;
#[cfg(test)]
mod walls;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Build, serve, test and measure Tollgate.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build the components and the `tollgate` binary that embeds them
    Build {
        /// Optimised, and quick to build
        #[arg(long)]
        release: bool,
        /// Optimised across crates, as it is shipped and measured; takes twice as long
        #[arg(long, conflicts_with = "release")]
        dist: bool,
    },
    /// Drive a task from spec to completed through a real client, and show each call
    Demo,
    /// Build, then run `tollgate serve`
    Serve {
        /// Flags of `tollgate serve`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Run all tests and print their totals
    Test {
        /// Only tests whose name contains this
        filter: Option<String>,
    },
    /// Check everything that must hold before a change lands
    Ci {
        /// With the long proofs that a release needs: components in other languages, PostgreSQL, hosts behind a load balancer,
        /// reproduction, packages that are installed, torture of the torture, and 200 rounds of it instead of 25
        #[arg(long)]
        full: bool,
    },
    /// Write the pages that are made of other files
    Docs,
    /// Check licences, sources and versions of what is depended on
    Deny,
    /// Build a component twice from nothing, in two places, and compare the bytes
    Reproduce,
    /// Run MCP's conformance suite, the Inspector's lint and the Python client
    Conformance,
    /// Try what `tollgate clients add` writes with the clients themselves, cold and warm
    ClientsTest(clients_test::ClientsTest),
    /// Try the console in a real browser, with Debian's chromium
    ConsoleTest(console_test::ConsoleTest),
    /// Run translated SQL of components on PostgreSQL and on SQLite, and compare
    Postgres {
        /// Run a share, as for each change: what is about servers, and a short torture
        #[arg(long)]
        short: bool,
    },
    /// Kill and restart two hosts behind a load balancer while agents work, on SQLite and on PostgreSQL
    Cluster(cluster::Cluster),
    /// Kill hosts under load and check what they promised
    Torture {
        /// Flags of the torture, such as --rounds 1000 --hosts 3 --seed 7
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Let a fuzzer choose what is read
    Fuzz(fuzz::Fuzz),
    /// Build the policies `rego` and `cedar`, publish them in a registry here, and let a host judge with them
    Engines,
    /// Make components of JavaScript, Python and C, and try them in the host
    Languages(languages::Languages),
    /// Try packs and policies in Debian's docker-registry over TLS, with `wkg` as the other party
    Registries,
    /// Make the bundle that desktop clients install, and try it
    Bundle {
        /// From the debug build, which is quicker to make
        #[arg(long)]
        debug: bool,
    },
    /// Make the files of a release: npm packages, a Python wheel, an archive and `server.json`
    Package(package::Package),
    /// Package the SDK, and build a component from the package alone
    Sdk,
    /// Measure, each figure beside its baseline
    Bench {
        /// Flags of the bench
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Build { release, dist } => {
            let profile = match (release, dist) {
                (_, true) => components::Profile::Dist,
                (true, false) => components::Profile::Release,
                (false, false) => components::Profile::Dev,
            };
            components::build_host(profile).map(drop)
        }
        Task::Demo => run::demo(),
        Task::Serve { flags } => run::serve(&flags),
        Task::Test { filter } => test::all(filter.as_deref(), test::Length::Usual).map(drop),
        Task::Ci { full } => check::all(full),
        Task::Docs => docs::write(),
        Task::Deny => deny::check().map(|came_to| run::say(&came_to)),
        Task::Reproduce => reproduce::check().map(drop),
        Task::Conformance => conformance::all().map(drop),
        Task::ClientsTest(clients) => clients.all(),
        Task::ConsoleTest(console) => console.all().map(drop),
        Task::Postgres { short: true } => postgres::in_short().map(|came_to| run::say(&came_to)),
        Task::Postgres { short: false } => postgres::alone().map(|came_to| run::say(&came_to)),
        Task::Cluster(cluster) => cluster.all().map(|came_to| run::say(&came_to)),
        Task::Torture { flags } => torture::all(&flags).map(drop),
        Task::Fuzz(fuzz) => fuzz.all(),
        Task::Engines => engines::test().map(drop),
        Task::Languages(languages) => languages.all(),
        Task::Registries => registries::test().map(drop),
        Task::Bundle { debug: false } => bundle::make(components::Profile::Dist),
        Task::Bundle { debug: true } => bundle::make(components::Profile::Dev),
        Task::Package(package) => package.make().map(|came_to| run::say(&came_to)),
        Task::Sdk => sdk::check().map(drop),
        Task::Bench { flags } => bench::all(&flags),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            run::say(&format!("xtask: {err:#}"));
            ExitCode::FAILURE
        }
    }
}
