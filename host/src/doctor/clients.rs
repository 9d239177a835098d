//! The clients' lines: whether what they start is there.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use axum::http::Uri;

use super::Finding;
use crate::clients::{Client, Server};
use crate::config::protections;

/// How the configuration has clients served.
#[derive(Debug, Default)]
pub struct Served<'a> {
    /// Over HTTP at this address.
    pub http: Option<SocketAddr>,
    /// Under these names too.
    pub hosts: &'a [String],
    /// The configuration file.
    pub config: Option<&'a Path>,
}

/// Looks at the files of clients that are there: each with its text, or why it cannot be read.
pub fn check(files: &[(Client, PathBuf, Result<String, String>)], served: &Served<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (client, path, text) in files {
        let about = format!("client {}", path.display());
        let server = match text {
            Ok(text) => client.found(text),
            Err(why) => Err(why.clone()),
        };
        match server {
            Err(why) => found.push(Finding::warning(about, format!("it cannot be read: {why}"))),
            Ok(None) => {}
            Ok(Some(Server::Http { url })) => found.push(connects(about, &url, served)),
            Ok(Some(Server::Stdio { command, args })) => found.push(started(about, &command, &args, served)),
        }
    }
    if found.is_empty() {
        found.push(
            Finding::note("clients", "no client of this project or user knows Tollgate")
                .remedy("tollgate clients add claude-code (or cursor, vscode, codex, gemini)"),
        );
    }
    found
}

/// A client that connects to a server.
fn connects(about: String, url: &str, served: &Served<'_>) -> Finding {
    let Some(at) = served.http else {
        let what = format!(
            "it connects to {url}, and server.http is not set: a server speaks over standard input then"
        );
        return Finding::warning(about, what)
            .remedy("set server.http, start the server with --http, or tollgate clients add NAME --force");
    };
    let remedy = format!("tollgate clients add NAME --http http://{at}/mcp --force");
    let Some(uri) = url.parse::<Uri>().ok().filter(|uri| uri.host().is_some()) else {
        return Finding::problem(about, format!("it connects to {url}, which is not an address"))
            .remedy(remedy);
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
        // A proxy may pass anything on, but the name has to be known here.
        let known = served
            .hosts
            .iter()
            .any(|known| known.split(':').next() == Some(host));
        let what = format!("it connects to {url}, and {host} is not in server.allowed_hosts");
        return match known || address.is_some() {
            true => Finding::ok(about, format!("it connects to {url}")),
            false => Finding::warning(about, what).remedy(format!("set server.allowed_hosts = [{host:?}]")),
        };
    }
    let port = uri.port_u16().unwrap_or(80);
    if uri.path() != "/mcp" || (port != at.port() && at.port() != 0) {
        let what = format!("it connects to {url}, and server.http serves http://{at}/mcp");
        return Finding::warning(about, what).remedy(remedy);
    }
    Finding::ok(about, format!("it connects to {url}"))
}

/// A client that starts the program itself.
fn started(about: String, command: &str, args: &[String], served: &Served<'_>) -> Finding {
    let is_program =
        Path::new(command).is_file() && rustix::fs::access(command, rustix::fs::Access::EXEC_OK).is_ok();
    // Without a slash it is looked up in the client's own PATH, which is not known here.
    if command.contains('/') && !is_program {
        return Finding::problem(about, format!("it starts {command}, which is no program"))
            .remedy("tollgate clients add NAME --force");
    }
    let file = args.iter().skip_while(|argument| *argument != "--config").nth(1);
    match file {
        Some(file) if !Path::new(file).is_file() => Finding::problem(
            about,
            format!("it names the configuration {file}, which is not there"),
        )
        .remedy(format!(
            "tollgate init --config {file}, or tollgate clients add NAME --force"
        )),
        file if served.http.is_some() && is_own(file, served) => {
            let at = served.http.map(|at| at.to_string()).unwrap_or_default();
            let what = format!(
                "it starts {command} and speaks over standard input, and server.http = {at:?} makes that serve HTTP"
            );
            Finding::problem(about, what).remedy(format!(
                "tollgate clients add NAME --http http://{at}/mcp --force, or take server.http out"
            ))
        }
        _ => Finding::ok(about, format!("it starts {command} {}", args.join(" "))),
    }
}

/// Whether a client's configuration is the one that is looked at.
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
            let finding = connects("client".to_owned(), url, &served(http));
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
            )
            .state
        };
        assert_eq!([starts(None), starts(here)], [State::Ok, State::Problem]);
    }
}
