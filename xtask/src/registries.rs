//! `cargo xtask registries`: packs and policies in Debian's `docker-registry` over TLS, exchanged with `wkg`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::ensure;

use crate::components::{self, Profile};
use crate::run::{cargo, run, say};
use crate::tools::Tool;

/// Path of Debian's registry.
const REGISTRY: &str = "/usr/bin/docker-registry";
/// Variable with the path of another registry.
const NAMED_BY: &str = "DOCKER_REGISTRY";
/// Variable with which a CI without a registry may skip these tests.
const WITHOUT: &str = "TOLLGATE_WITHOUT_REGISTRY";
/// Tool of the Bytecode Alliance that pushes and pulls components.
const WKG: Tool = Tool {
    package: "wkg",
    version: "0.16.1",
    features: None,
    program: "wkg",
};

/// Runs the tests in CI. Without a registry they fail, unless the environment permits skipping them.
pub(crate) fn in_ci() -> anyhow::Result<String> {
    let registry = registry();
    if !is_there(&registry) && std::env::var_os(WITHOUT).is_some() {
        let why = format!(
            "left out: there is no {}, and {WITHOUT} is set",
            registry.display()
        );
        say(&format!("the tests with registries are {why}"));
        return Ok(why);
    }
    test()
}

/// Installs `wkg`, and runs the tests that use both programs. Returns a summary.
pub(crate) fn test() -> anyhow::Result<String> {
    let registry = registry();
    ensure!(
        is_there(&registry),
        "there is no {}; install docker-registry (Debian: apt install docker-registry), or name another with {NAMED_BY}. A CI that \
         cannot have one sets {WITHOUT}",
        registry.display()
    );
    let wkg = WKG.installed()?;
    components::build_host(Profile::Dev)?;
    components::build_guests()?;
    run(cargo()
        .args([
            "test",
            "--workspace",
            "--exclude",
            "guests",
            "--test",
            "registries",
        ])
        .env(NAMED_BY, &registry)
        .env("WKG", wkg))?;
    Ok(format!(
        "packs and policies went through docker-registry over TLS, and from and to wkg {}",
        WKG.version
    ))
}

fn registry() -> PathBuf {
    std::env::var_os(NAMED_BY).map_or_else(|| REGISTRY.into(), PathBuf::from)
}

fn is_there(program: &PathBuf) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
