//! `cargo xtask engines`: builds and tests the policies `rego` and `cedar`, which are not part of the program.

use crate::components::{self, Profile, WASM};
use crate::run::{cargo, root, run, say, target};

/// Package, name of its component, and name of the policy.
const ENGINES: [(&str, &str); 2] = [("rego_policy", "rego"), ("cedar_policy_engine", "cedar")];

/// Runs their native tests, builds their components, publishes these in a registry, and evaluates calls with them in a
/// host.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(crate) fn test() -> anyhow::Result<String> {
    let folder = root().join("plugins/engines");
    let work = target().join("engines");
    let here = |arguments: &[&str]| {
        let mut command = cargo();
        command
            .current_dir(&folder)
            .args(arguments)
            .env("CARGO_TARGET_DIR", &work);
        run(&mut command)
    };
    here(&["fmt", "--all", "--check"])?;
    here(&["test", "--quiet", "--locked"])?;
    here(&["build", "--quiet", "--locked", "--release", "--target", WASM])?;
    let out = root().join("target/components/engines");
    std::fs::create_dir_all(&out)?;
    let mut weights = Vec::new();
    for (file, name) in ENGINES {
        let built = work.join(WASM).join("release").join(format!("{file}.wasm"));
        let bytes = std::fs::copy(&built, out.join(format!("{name}.wasm")))?;
        let weight = format!("{name} of {:.1} MiB", bytes as f64 / f64::from(1 << 20));
        say(&weight);
        weights.push(weight);
    }
    components::build_host(Profile::Dev)?;
    run(cargo().args(["test", "--workspace", "--exclude", "guests", "--test", "engines"]))?;
    Ok(format!("{} evaluated calls from a registry", weights.join(", ")))
}
