//! Crates to start from: the files of a new pack or policy. The templates are crates themselves, whose names,
//! and whose way to the SDK, are replaced.

mod name;

use toml::Value;

pub use name::{BadName, Name};

/// Kind of a new crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A component that offers tools.
    Pack,
    /// A component that judges calls.
    Policy,
}

/// One file of a new crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Below the crate's folder.
    pub path: &'static str,
    /// Content of the file.
    pub text: String,
}

/// A file of a template.
type Template = (&'static str, &'static str);

macro_rules! templates {
    ($kind:literal: $($path:literal),+) => {
        &[$(($path, include_str!(concat!("../../templates/", $kind, "/", $path)))),+]
    };
}

const PACK: &[Template] = templates!(
    "pack": "Cargo.toml", ".gitignore", "README.md", "migrations/0001_init.sql", "src/lib.rs", "tollgate.toml"
);
const POLICY: &[Template] = templates!(
    "policy": "Cargo.toml", ".gitignore", "README.md", "cases.toml", "src/lib.rs", "tollgate.toml"
);

/// The SDK as the manifests of the templates name it, and the checkout as their other files do.
const SDK: &str = "\"../../../sdk\"";
const CHECKOUT: &str = "../../..";

impl Kind {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Pack => "pack",
            Kind::Policy => "policy",
        }
    }

    const fn templates(self) -> &'static [Template] {
        match self {
            Kind::Pack => PACK,
            Kind::Policy => POLICY,
        }
    }

    /// Name of the template itself.
    const fn stand_in(self) -> &'static str {
        match self {
            Kind::Pack => "my-pack",
            Kind::Policy => "my-policy",
        }
    }
}

/// The files of a new crate that uses the SDK of a checkout.
pub fn files(kind: Kind, name: &Name, checkout: &str) -> Vec<File> {
    let sdk = Value::String(format!("{checkout}/sdk")).to_string();
    let stand_in = kind.stand_in();
    let files = kind.templates().iter().map(|&(path, text)| File {
        path,
        text: text
            .replace(stand_in, name.as_str())
            .replace(&stand_in.replace('-', "_"), &name.snake())
            .replace(SDK, &sdk)
            .replace(CHECKOUT, checkout),
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_template_is_left() {
        for kind in [Kind::Pack, Kind::Policy] {
            let name = Name::new("release-notes", kind).unwrap();
            let files = files(kind, &name, "/src/toll \"gate\"");
            for file in &files {
                for left in ["my-p", "my_p", "../.."] {
                    assert!(!file.text.contains(left), "{}: {left}", file.path);
                }
            }
            let manifest = files.iter().find(|file| file.path == "Cargo.toml").unwrap();
            let manifest: toml::Table = manifest.text.parse().unwrap();
            assert_eq!(manifest["package"]["name"].as_str(), Some("release-notes"));
            assert_eq!(
                manifest["dependencies"]["tollgate-sdk"]["path"].as_str(),
                Some("/src/toll \"gate\"/sdk")
            );
            let configuration = files.iter().find(|file| file.path == "tollgate.toml").unwrap();
            assert!(configuration.text.contains("release/release_notes.wasm"));
        }
    }
}
