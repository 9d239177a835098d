//! `tollgate new`

mod folder;
mod sdk;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;
use tollgate::scaffold::{self, Kind, Name};

use super::{Global, out};

#[derive(Debug, Subcommand)]
pub(super) enum New {
    /// Make a crate with tools, settings, tables and tests
    Pack(Crate),
    /// Make a crate with a policy, its settings, tests and cases
    Policy(Crate),
}

/// Nothing that is there is changed.
#[derive(Debug, Args)]
pub(super) struct Crate {
    /// Name of the crate: small letters, digits and `-`
    name: String,
    /// The folder to make [default: the name, in the current directory]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// The SDK it uses: a checkout of Tollgate, or a version in the registry of crates, such as 0.1 [default: the one in
    /// this program, which is copied into the crate's folder `vendor`]
    #[arg(long, env = "TOLLGATE_SDK", value_name = "CHECKOUT|VERSION")]
    sdk: Option<PathBuf>,
}

impl New {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self {
            New::Pack(new) => new.run(Kind::Pack, global),
            New::Policy(new) => new.run(Kind::Policy, global),
        }
    }
}

impl Crate {
    fn run(self, kind: Kind, global: &Global) -> anyhow::Result<ExitCode> {
        let folder = self.path.clone().unwrap_or_else(|| PathBuf::from(&self.name));
        let name = Name::new(&self.name, kind);
        let free = folder::check_free(&folder);
        let sdk = sdk::find(self.sdk.as_deref());
        let (name, sdk) = match (name, free, sdk) {
            (Ok(name), Ok(()), Ok(sdk)) => (name, sdk),
            (name, free, sdk) => {
                let problems = [
                    name.err().map(|bad| bad.to_string()),
                    free.err().map(|err| err.to_string()),
                    sdk.err().map(|err| err.to_string()),
                ];
                let problems: Vec<String> = problems.into_iter().flatten().collect();
                anyhow::bail!("{}; nothing was made", problems.join("; "));
            }
        };
        let files = scaffold::files(kind, &name, &sdk);
        folder::make(&folder, &files, global.umask)?;
        if global.json {
            let paths: Vec<&str> = files.iter().map(|file| file.path).collect();
            let folder = std::path::absolute(&folder)?;
            out::print_json(&json!({ "made": folder, "files": paths, "sdk": sdk.origin() }));
        } else {
            out::print(&next(kind, &name, &folder));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Next steps with the crate.
fn next(kind: Kind, name: &Name, folder: &Path) -> String {
    let component = format!("target/wasm32-wasip2/release/{}.wasm", name.snake());
    let lines = [
        format!(
            "made the {} {} in {}; next:",
            kind.as_str(),
            name.as_str(),
            folder.display()
        ),
        format!("  cd {}", folder.display()),
        "  cargo test".to_owned(),
        "  cargo build --release --target wasm32-wasip2".to_owned(),
        format!("  tollgate packs check {component}"),
        "README.md says what comes next".to_owned(),
    ];
    lines.join("\n")
}
