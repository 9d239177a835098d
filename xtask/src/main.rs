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
        /// Optimise, but not across crates, which builds faster
        #[arg(long)]
        release: bool,
        /// Optimise across crates, as for releases and measurements; takes twice as long
        #[arg(long, conflicts_with = "release")]
        dist: bool,
    },
    /// Take a task from specification to completion with a real client, and show each call
    Demo,
    /// Build, then run `tollgate serve`
    Serve {
        /// Flags of `tollgate serve`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Run all tests and print their totals
    Test {
        /// Only tests whose name contains this text
        filter: Option<String>,
    },
    /// Run all checks that a change must pass before it is merged
    Ci {
        /// Add the long checks for a release: components in other languages, registries, all tests on PostgreSQL,
        /// hosts behind a load balancer, reproducible builds, installed packages, a self-test of the torture test, and
        /// 200 torture rounds instead of 10
        #[arg(long)]
        full: bool,
    },
    /// Regenerate the documentation that is generated from other files
    Docs,
    /// Check the licences, sources and versions of all dependencies
    Deny,
    /// Build a component twice from scratch, in two directories, and compare the bytes
    Reproduce,
    /// Run MCP's conformance suite, the Inspector's lint and the Python client
    Conformance,
    /// Test the entries that `tollgate clients add` writes with the real clients, with cold and warm caches
    ClientsTest(clients_test::ClientsTest),
    /// Test the console in Debian's Chromium
    ConsoleTest(console_test::ConsoleTest),
    /// Run the translated SQL of components on PostgreSQL and SQLite, and compare the results
    Postgres {
        /// Run only the tests of hosts on a server, and a short torture test, as for each change
        #[arg(long)]
        short: bool,
    },
    /// Kill and restart two hosts behind a load balancer under load, on SQLite and on PostgreSQL
    Cluster(cluster::Cluster),
    /// Kill hosts under load, and check the database after each kill
    Torture {
        /// Flags of the torture test, such as --rounds 1000 --hosts 3 --seed 7
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
    /// Fuzz the code that reads untrusted input
    Fuzz(fuzz::Fuzz),
    /// Build the policies `rego` and `cedar`, publish them to a local registry, and evaluate calls with them in a host
    Engines,
    /// Build components from JavaScript, Python and C, and test them in the host
    Languages(languages::Languages),
    /// Publish and pull packs and policies with Debian's docker-registry over TLS, also with `wkg`
    Registries,
    /// Build the bundle that desktop clients install, and test it
    Bundle {
        /// Use the debug build, which builds faster
        #[arg(long)]
        debug: bool,
    },
    /// Create the files of a release: npm packages, a Python wheel, an archive and `server.json`
    Package(package::Package),
    /// Package the SDK, and build a component with only that package
    Sdk,
    /// Run the benchmarks, and print each figure beside its baseline
    Bench {
        /// Flags of the benchmarks
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
