//! Findings about clients: whether the programs and servers in their entries exist.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use ureq::http::Uri;

use super::Finding;
use crate::clients::{Client, Scope, Server, is_program};
use crate::config::protections;

/// Transport and address that clients should use, according to the configuration.
#[derive(Debug, Default)]
pub struct Served<'a> {
    /// HTTP address, if the server uses HTTP.
    pub http: Option<SocketAddr>,
    /// Additional host names.
    pub hosts: &'a [String],
    /// The configuration file.
    pub config: Option<&'a Path>,
}

/// An existing client file, with its text or the reason why it cannot be read.
pub type File = (Client, Scope, PathBuf, Result<String, String>);

/// Checks the files of clients.
pub fn check(files: &[File], served: &Served<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (client, scope, path, text) in files {
        let about = format!("client {}", path.display());
        let again = remedy(*client, *scope);
        let entry = match text {
            Ok(text) => client.found(text),
            Err(why) => Err(why.clone()),
        };
        found.extend(match entry {
            Err(why) => Some(Finding::warning(about, format!("the file cannot be read: {why}"))),
            Ok(None) => None,
            Ok(Some(entry)) if entry.is_disabled => {
                Some(Finding::note(about, "the entry is switched off").remedy(again))
            }
            Ok(Some(entry)) => Some(match entry.server {
                Server::Http { url, .. } => connects(about, &url, served, &again),
                Server::Stdio { command, args } => started(about, &command, &args, served, &again),
            }),
        });
    }
    if found.is_empty() {
        found.push(
            Finding::note(
                "clients",
                "no MCP client of this project or user has an entry for Tollgate",
            )
            .remedy("add an entry to each installed client: tollgate clients add"),
        );
    }
    found
}

/// Checks an entry that connects to a server.
fn connects(about: String, url: &str, served: &Served<'_>, again: &str) -> Finding {
    let Some(at) = served.http else {
        let what = format!(
            "the entry connects to {url}, but server.http is not set, so `tollgate serve` does not listen there"
        );
        return Finding::warning(about, what).remedy(format!(
            "set server.http, start the server with --http, or {again}"
        ));
    };
    let Some(uri) = url
        .parse::<Uri>()
        .ok()
        .filter(|uri| uri.scheme().is_some() && uri.host().is_some())
    else {
        return Finding::problem(
            about,
            format!("the entry connects to {url}, which is not an address"),
        )
        .remedy(again);
    };
    let host = uri
        .host()
        .unwrap_or_default()
        .trim_start_matches('[')
        .trim_end_matches(']');
    let address = host.parse::<IpAddr>().ok();
    let is_here = host.eq_ignore_ascii_case("localhost")
        || address.is_some_and(|address| address.is_loopback() || address == at.ip());
    if !is_here {
        // A proxy may forward requests, but the server must know the host name.
        let known = served
            .hosts
            .iter()
            .any(|known| known.split(':').next() == Some(host));
        let what = format!("the entry connects to {url}, but {host} is not in server.allowed_hosts");
        return match known || address.is_some() {
            true => Finding::ok(about, format!("the entry connects to {url}")),
            false => Finding::warning(about, what).remedy(format!("set server.allowed_hosts = [{host:?}]")),
        };
    }
    let port = uri.port_u16().unwrap_or(80);
    if uri.path() != "/mcp" || (port != at.port() && at.port() != 0) {
        let what = format!("the entry connects to {url}, but server.http serves http://{at}/mcp");
        return Finding::warning(about, what).remedy(again);
    }
    Finding::ok(about, format!("the entry connects to {url}"))
}

/// Command that rewrites the entry.
fn remedy(client: Client, scope: Scope) -> String {
    let name = client
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default();
    let scope = if scope == Scope::Project { " --project" } else { "" };
    format!("tollgate clients add {name}{scope} --force")
}

/// Checks an entry that starts the program.
fn started(about: String, command: &str, args: &[String], served: &Served<'_>, again: &str) -> Finding {
    // Without a slash, the program is searched in the client's PATH, which is unknown here.
    if command.contains('/') && !is_program(Path::new(command)) {
        return Finding::problem(
            about,
            format!("the entry starts {command}, which is not a program"),
        )
        .remedy(again);
    }
    let file = args.iter().skip_while(|argument| *argument != "--config").nth(1);
    if let Some(file) = file.filter(|file| !Path::new(file).is_file()) {
        return Finding::problem(
            about,
            format!("the entry uses the configuration {file}, which does not exist"),
        )
        .remedy(format!("tollgate init --config {file}, or {again}"));
    }
    if let Some(address) = served.http.filter(|_| is_own(file, served)) {
        return Finding::problem(
            about,
            format!(
                "the entry starts tollgate with this configuration, where server.http = {address}; that process serves \
                 HTTP and does not answer on standard input and output"
            ),
        )
        .remedy(again);
    }
    Finding::ok(about, format!("it starts {command} {}", args.join(" ")))
}

/// Returns whether a client uses the configuration that is being checked.
fn is_own(named: Option<&String>, served: &Served<'_>) -> bool {
    match (named, served.config) {
        (None, _) => true,
        (Some(named), Some(own)) => protections::canonical(Path::new(named)) == protections::canonical(own),
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn clients_that_look_elsewhere_than_the_server_is_are_told() {
        let hosts = ["tollgate.example".to_owned()];
        let served = |http: Option<&str>| Served {
            http: http.map(|at| at.parse().unwrap()),
            hosts: &hosts,
            config: None,
        };
        let state = |url: &str, http: Option<&str>| {
            let finding = connects("client".to_owned(), url, &served(http), "again");
            assert!(finding.state == State::Ok || finding.remedy.is_some());
            finding.state
        };
        let here = Some("127.0.0.1:8765");
        for good in [
            "http://127.0.0.1:8765/mcp",
            "http://localhost:8765/mcp",
            "https://tollgate.example/mcp",
        ] {
            assert_eq!(state(good, here), State::Ok, "{good}");
            assert_eq!(state(good, None), State::Warning, "{good}");
        }
        for bad in [
            "http://127.0.0.1:8766/mcp",
            "http://localhost:8765",
            "http://localhost/mcp",
            "https://other.example/mcp",
        ] {
            assert_eq!(state(bad, here), State::Warning, "{bad}");
        }
        assert_eq!(state("nothing", here), State::Problem);
        let starts = |http| {
            started(
                "client".to_owned(),
                "tollgate",
                &["serve".to_owned()],
                &served(http),
                "again",
            )
            .state
        };
        assert_eq!([starts(None), starts(here)], [State::Ok, State::Problem]);
    }
}
