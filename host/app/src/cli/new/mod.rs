//! `tollgate new`

mod folder;
mod sdk;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use tollgate::scaffold::{self, Kind, Name, Other};

use super::{Global, out};

#[derive(Debug, Subcommand)]
pub(super) enum New {
    /// Create a crate with tools, settings, tables and tests
    Pack(Crate),
    /// Create a crate with a policy, its settings, tests and cases
    Policy(Crate),
}

/// Existing files are not changed.
#[derive(Debug, Args)]
pub(super) struct Crate {
    /// Name of the crate: lower-case letters, digits and `-`
    name: String,
    /// Folder to create [default: the name, in the current directory]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// SDK to use: a checkout of Tollgate, or a version in the crate registry, such as 0.1 [default: the one in
    /// this program, which is copied into the crate's folder `vendor`]
    #[arg(long, env = "TOLLGATE_SDK", value_name = "CHECKOUT|VERSION")]
    sdk: Option<PathBuf>,
    /// Language of the sources
    #[arg(long, default_value = "rust", value_name = "LANGUAGE")]
    language: Language,
}

/// A language with a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// Built with cargo
    Rust,
    /// Built with componentize-py
    Python,
    /// Built with componentize-js, also for TypeScript
    #[value(name = "javascript", alias = "typescript")]
    JavaScript,
    /// Built with clang
    C,
}

impl Language {
    fn other(self) -> Option<Other> {
        match self {
            Language::Rust => None,
            Language::C => Some(Other::C),
            Language::Python => Some(Other::Python),
            Language::JavaScript => Some(Other::JavaScript),
        }
    }
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
                anyhow::bail!("{}; nothing was created", problems.join("; "));
            }
        };
        let other = self.language.other();
        let files = match other {
            None => scaffold::files(kind, &name, &sdk, &target()),
            Some(language) => scaffold::other_files(language, kind, &name, &sdk),
        };
        folder::make(&folder, &files, global.umask)?;
        if global.json {
            let paths: Vec<&str> = files.iter().map(|file| file.path).collect();
            let folder = std::path::absolute(&folder)?;
            out::print_json(&json!({ "made": folder, "files": paths, "sdk": sdk.origin() }));
        } else {
            out::print(&next(kind, &name, &folder, other));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Next steps with the crate.
fn next(kind: Kind, name: &Name, folder: &Path, language: Option<Other>) -> String {
    let steps = language.map_or_else(|| rust_steps(kind, name), |language| language.steps(kind, name));
    let mut lines = vec![
        format!(
            "created the {} {} in {}; next:",
            kind.as_str(),
            name.as_str(),
            folder.display()
        ),
        format!("  cd {}", folder.display()),
    ];
    lines.extend(steps.into_iter().map(|step| format!("  {step}")));
    lines.push("README.md explains the next steps".to_owned());
    lines.join("\n")
}

/// Folder of cargo's build output, which the user's variable may set.
fn target() -> String {
    let named = std::env::var("CARGO_TARGET_DIR").ok();
    named
        .filter(|named| !named.is_empty())
        .unwrap_or_else(|| "target".to_owned())
}

fn rust_steps(kind: Kind, name: &Name) -> Vec<String> {
    let component = format!("{}/wasm32-wasip2/release/{}.wasm", target(), name.snake());
    vec![
        "cargo test".to_owned(),
        "cargo build --release --target wasm32-wasip2".to_owned(),
        kind.check(&component),
    ]
}
