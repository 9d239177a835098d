//! A place with a workspace and the guest `workspace-access`.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use serde_json::{Value, json};

use crate::harness::{Place, Session, guest};

/// A place with a workspace `main` and the guest `workspace-access`, with all permissions that it requests.
pub(crate) struct Meddling {
    pub(crate) place: Place,
}

impl Meddling {
    pub(crate) fn new() -> Meddling {
        Meddling::with("")
    }

    /// The same with more configuration.
    pub(crate) fn with(more: &str) -> Meddling {
        let place = Place::new();
        let config = format!(
            "[workspaces.main]\npath = \"main\"\nwrite = [\"out/\", \".git/\"]\n\
             tests.default = [\"sh\", \"-c\", \"echo tested\"]\n\
             [packs.workspace-access]\nsource = {:?}\ngrants = {{ workspaces = [\"*\"], process = [\"*\"] }}\n{more}",
            guest("workspace-access")
        );
        std::fs::write(place.config(), config).unwrap();
        std::fs::create_dir(place.path().join("main")).unwrap();
        std::fs::create_dir(place.path().join("outside")).unwrap();
        Meddling { place }
    }

    pub(crate) fn main(&self) -> std::path::PathBuf {
        self.place.path().join("main")
    }

    pub(crate) async fn serve(&self) -> Session {
        self.place.serve(&["--tier", "full"]).await
    }
}

/// Result of a call of the guest `workspace-access`.
pub(crate) async fn result(session: &Session, tool: &str, arguments: Value) -> String {
    let body = session.ok(tool, arguments).await;
    body["result"].as_str().unwrap().to_owned()
}

/// Runs a shell script through the guest, and returns its result.
pub(crate) async fn sh(session: &Session, script: &str) -> String {
    result(
        session,
        "workspace_access_run",
        json!({"program": "sh", "arguments": ["-c", script]}),
    )
    .await
}
