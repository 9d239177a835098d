//! Files of a new pack or policy crate. The templates are crates themselves. Their names, and the paths to the SDK, are
//! replaced.

mod name;
mod other;

use toml::Value;

pub use name::{BadName, Name};
pub use other::{Other, files as other_files};

/// Kind of a new crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A component that offers tools.
    Pack,
    /// A component that evaluates calls.
    Policy,
}

/// One file of a new crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path below the crate's folder.
    pub path: &'static str,
    /// Content of the file.
    pub content: Vec<u8>,
}

/// A file of a template.
type Template = (&'static str, &'static str);

macro_rules! templates {
    ($kind:literal: $($path:literal),+) => {
        &[$(($path, include_str!(concat!("../../templates/", $kind, "/", $path)))),+]
    };
}

const PACK_TEMPLATES: &[Template] = templates!(
    "pack": "Cargo.toml", ".gitignore", "README.md", "migrations/0001_init.sql", "src/lib.rs", "tollgate.toml"
);
const POLICY_TEMPLATES: &[Template] = templates!(
    "policy": "Cargo.toml", ".gitignore", "README.md", "cases.toml", "src/lib.rs", "tollgate.toml"
);

/// Dependency on the SDK in the templates' manifests, the pages for authors, and the crate's own workspace table.
const SDK_DEPENDENCY: &str = "path = \"../../../sdk\"";
const PAGES_PATH: &str = "../../../docs/";
const WORKSPACE_TABLE: &str = "[workspace]\n";

/// Files of the SDK in this program: its crates and pages below `vendor`, and the lock file for other crates.
const SDK_FILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/sdk_files.rs"));
/// File that pins the compiler.
const TOOLCHAIN_FILE: &str = "rust-toolchain.toml";

/// Source of a new crate's SDK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sdk {
    /// This program. The crate gets a copy, so it builds on any machine.
    BuiltIn,
    /// A checkout of the project, and its files that pin the compiler and other crates.
    Checkout {
        /// Absolute path of the checkout.
        folder: String,
        /// Paths and contents.
        pins: Vec<(&'static str, String)>,
    },
    /// A version in the crate registry.
    Version(String),
}

impl Sdk {
    /// Source as text.
    pub fn origin(&self) -> &str {
        match self {
            Sdk::BuiltIn => "built in",
            Sdk::Checkout { folder, .. } => folder,
            Sdk::Version(version) => version,
        }
    }

    /// Key of a dependency in the manifest that locates the SDK.
    fn place(&self) -> String {
        match self {
            Sdk::BuiltIn => "path = \"vendor/tollgate-sdk\"".to_owned(),
            Sdk::Checkout { folder, .. } => {
                format!("path = {}", Value::String(format!("{folder}/sdk")))
            }
            Sdk::Version(version) => format!("version = \"{version}\""),
        }
    }

    /// Location of the pages for authors.
    fn pages(&self) -> String {
        match self {
            Sdk::BuiltIn => "vendor/docs/".to_owned(),
            Sdk::Checkout { folder, .. } => format!("{folder}/docs/"),
            Sdk::Version(_) => "Tollgate's `docs/`, page ".to_owned(),
        }
    }

    /// Files that the crate starts with, in addition to those of its template.
    fn files(&self) -> Vec<File> {
        let of_program = SDK_FILES.iter().map(|&(path, text)| File {
            path,
            content: text.into(),
        });
        match self {
            Sdk::BuiltIn => of_program.collect(),
            Sdk::Checkout { pins, .. } => {
                let pins = pins.iter();
                pins.map(|(path, text)| File {
                    path,
                    content: text.clone().into(),
                })
                .collect()
            }
            Sdk::Version(_) => of_program.filter(|file| file.path == TOOLCHAIN_FILE).collect(),
        }
    }
}

impl Kind {
    /// Name of the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Pack => "pack",
            Kind::Policy => "policy",
        }
    }

    /// Command that checks a component of the template. The policy's settings have a key without a default.
    pub fn check(self, component: &str) -> String {
        match self {
            Kind::Pack => format!("tollgate packs check {component}"),
            Kind::Policy => {
                format!("tollgate policies check {component} --settings '{{\"reason\": \"release day\"}}'")
            }
        }
    }

    const fn templates(self) -> &'static [Template] {
        match self {
            Kind::Pack => PACK_TEMPLATES,
            Kind::Policy => POLICY_TEMPLATES,
        }
    }

    /// Name of the template.
    const fn stand_in(self) -> &'static str {
        match self {
            Kind::Pack => "my-pack",
            Kind::Policy => "my-policy",
        }
    }
}

/// Folder of a component in the templates, below cargo's target folder.
const BUILD_FOLDER: &str = "target/wasm32-wasip2";

/// Files of a new crate, which cargo builds in the folder `target`.
pub fn files(kind: Kind, name: &Name, sdk: &Sdk, target: &str) -> Vec<File> {
    let stand_in = kind.stand_in();
    let workspace = match sdk {
        // The copies are not part of the crate, so its commands ignore them.
        Sdk::BuiltIn => "[workspace]\nexclude = [\"vendor\"]\n",
        Sdk::Checkout { .. } | Sdk::Version(_) => WORKSPACE_TABLE,
    };
    let files = kind.templates().iter().map(|&(path, text)| File {
        path,
        content: text
            .replace(stand_in, name.as_str())
            .replace(&stand_in.replace('-', "_"), &name.snake())
            .replace(SDK_DEPENDENCY, &sdk.place())
            .replace(WORKSPACE_TABLE, workspace)
            .replace(BUILD_FOLDER, &format!("{target}/wasm32-wasip2"))
            .replace(PAGES_PATH, &sdk.pages())
            .into(),
    });
    files.chain(sdk.files()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(file: &File) -> &str {
        std::str::from_utf8(&file.content).unwrap()
    }

    #[test]
    fn nothing_of_the_template_is_left() {
        let checkout = Sdk::Checkout {
            folder: "/src/toll \"gate\"".to_owned(),
            pins: vec![("Cargo.lock", String::new())],
        };
        for (sdk, dependency) in [
            (checkout, "{ path = '/src/toll \"gate\"/sdk' }"),
            (Sdk::BuiltIn, "{ path = \"vendor/tollgate-sdk\" }"),
            (Sdk::Version("0.1".to_owned()), "{ version = \"0.1\" }"),
        ] {
            for kind in [Kind::Pack, Kind::Policy] {
                let name = Name::new("release-notes", kind).unwrap();
                let files = files(kind, &name, &sdk, "/builds");
                let own = files.iter().filter(|file| !file.path.starts_with("vendor/"));
                for file in own {
                    for left in ["my-p", "my_p", "../.."] {
                        assert!(!text_of(file).contains(left), "{}: {left}", file.path);
                    }
                }
                let manifest = files.iter().find(|file| file.path == "Cargo.toml").unwrap();
                let line = format!("tollgate-sdk = {dependency}");
                assert!(text_of(manifest).contains(&line), "{}", text_of(manifest));
                let manifest: toml::Table = text_of(manifest).parse().unwrap();
                assert_eq!(manifest["package"]["name"].as_str(), Some("release-notes"));
                // The tests of a pack use tables. A policy's first build needs no database.
                let of_tests = manifest
                    .get("dev-dependencies")
                    .and_then(|all| all.get("tollgate-sdk"));
                let features = of_tests.map(|sdk| sdk["features"].to_string());
                let expected = (kind == Kind::Pack).then(|| "[\"storage\"]".to_owned());
                assert_eq!(features, expected);
                let configuration = files.iter().find(|file| file.path == "tollgate.toml").unwrap();
                let component = "\"/builds/wasm32-wasip2/release/release_notes.wasm\"";
                assert!(text_of(configuration).contains(component));
            }
        }
    }

    #[test]
    fn the_sdk_in_this_program_is_whole_and_needs_no_workspace() {
        let text = |path: &str| {
            SDK_FILES
                .iter()
                .find(|(other, _)| *other == path)
                .map(|(_, text)| *text)
        };
        for name in ["tollgate-sdk", "tollgate-sql"] {
            let manifest = text(&format!("vendor/{name}/Cargo.toml")).unwrap();
            assert!(!manifest.contains("workspace"), "{manifest}");
            let manifest: toml::Table = manifest.parse().unwrap();
            assert_eq!(manifest["package"]["name"].as_str(), Some(name));
            for path in ["src/lib.rs", "LICENSE-MIT", "LICENSE-APACHE"] {
                assert!(text(&format!("vendor/{name}/{path}")).is_some(), "{name}/{path}");
            }
        }
        for path in ["Cargo.lock", TOOLCHAIN_FILE, "vendor/docs/writing-a-pack.md"] {
            assert!(text(path).is_some(), "{path}");
        }
    }
}
