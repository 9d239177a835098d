//! Manifests of build tools and package managers: packages, dependencies, programs.

mod cargo;
mod go;
mod ignored;
mod make;
mod maven;
mod npm;
mod python;
mod settings;

use serde::{Deserialize, Serialize};

use crate::language;

pub(crate) use cargo::in_code;
pub use cargo::{Cargo, Target};
pub use go::GoModule;
pub use ignored::Ignored;
pub use make::Make;
pub use maven::Maven;
pub use npm::{Npm, TsConfig};
pub use python::PythonProject;
pub use settings::Settings;

/// Content of one manifest, as far as imports and entry points need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Manifest {
    /// `Cargo.toml`.
    Cargo(Cargo),
    /// `package.json`.
    Npm(Npm),
    /// `tsconfig.json` and the files that it extends.
    TsConfig(TsConfig),
    /// `pyproject.toml` or `setup.cfg`.
    Python(PythonProject),
    /// `go.mod`.
    Go(GoModule),
    /// Makefile.
    Make(Make),
    /// `pom.xml`.
    Maven(Maven),
    /// `.gitignore`.
    Ignored(Ignored),
    /// Program that configures a bundler, such as `vite.config.ts`.
    Settings(Settings),
}

/// Reads a manifest by its name. `None` for a broken one.
pub(crate) fn read(name: &str, text: &str) -> Option<Manifest> {
    match name {
        "Cargo.toml" => cargo::read(text).map(Manifest::Cargo),
        "package.json" => npm::read(text).map(Manifest::Npm),
        "pyproject.toml" => python::read_pyproject(text).map(Manifest::Python),
        "setup.cfg" => python::read_setup_cfg(text).map(Manifest::Python),
        "go.mod" => go::read(text).map(Manifest::Go),
        "Makefile" | "makefile" | "GNUmakefile" => Some(Manifest::Make(make::read(text))),
        "pom.xml" => maven::read(text).map(Manifest::Maven),
        ".gitignore" => Some(Manifest::Ignored(ignored::read(text))),
        "jsconfig.json" => npm::read_tsconfig(text).map(Manifest::TsConfig),
        _ if name.starts_with("tsconfig") && name.ends_with(".json") => {
            npm::read_tsconfig(text).map(Manifest::TsConfig)
        }
        _ if language::is_settings(name) => settings::read(text).map(Manifest::Settings),
        _ => None,
    }
}
