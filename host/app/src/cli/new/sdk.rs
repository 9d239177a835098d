//! Location of the SDK: in a checkout of this project, because it is not published elsewhere.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Name of the SDK's crate.
const PACKAGE: &str = "tollgate-sdk";

/// Files of a checkout that a new crate begins with.
const PINS: [&str; 2] = ["Cargo.lock", "rust-toolchain.toml"];

/// A checkout with an SDK.
#[derive(Debug)]
pub(super) struct Checkout {
    /// Its folder.
    pub(super) text: String,
    /// Files that say with which compiler, and with which versions of other crates, it is tested.
    pub(super) pins: Vec<(&'static str, String)>,
}

/// Reason why no SDK can be used.
#[derive(Debug, Error)]
pub(super) enum NoSdk {
    #[error("there is no Tollgate SDK in {}; name a checkout of the project, or its folder `sdk`, with --sdk", .0.display())]
    NotThere(PathBuf),
    #[error(
        "where the SDK is cannot be told from where this program is; name a checkout of the project with --sdk"
    )]
    NotFound,
    #[error("{} is not UTF-8, which Cargo's manifests are; move the checkout", .0.display())]
    NotUtf8(PathBuf),
}

impl Checkout {
    /// The one that is named, or else the one that the new crate or this program is in.
    pub(super) fn find(named: Option<&Path>, folder: &Path) -> Result<Checkout, NoSdk> {
        if let Some(named) = named {
            // Its folder `sdk` is as good a name for it.
            let around = named.join("..");
            let found = [named, &around].into_iter().find(|place| has_sdk(place));
            return Checkout::open(found.ok_or_else(|| NoSdk::NotThere(named.to_owned()))?);
        }
        let program = std::env::current_exe().and_then(|program| program.canonicalize());
        let starts = [std::path::absolute(folder), program];
        let found = starts.iter().flatten().find_map(|start| around(start));
        Checkout::open(&found.ok_or(NoSdk::NotFound)?)
    }

    fn open(folder: &Path) -> Result<Checkout, NoSdk> {
        let folder = folder
            .canonicalize()
            .map_err(|_| NoSdk::NotThere(folder.to_owned()))?;
        let text = folder.to_str().ok_or_else(|| NoSdk::NotUtf8(folder.clone()))?;
        Ok(Checkout {
            text: text.to_owned(),
            pins: PINS
                .into_iter()
                .filter_map(|pin| Some((pin, read(&folder.join(pin))?)))
                .collect(),
        })
    }
}

/// The nearest folder above that has an SDK.
fn around(place: &Path) -> Option<PathBuf> {
    let mut folders = place.ancestors().skip(1);
    folders.find(|folder| has_sdk(folder)).map(Path::to_owned)
}

/// True if a folder has the SDK, and the interfaces that it is made from.
fn has_sdk(folder: &Path) -> bool {
    let manifest = read(&folder.join("sdk/Cargo.toml")).and_then(|text| text.parse::<toml::Table>().ok());
    let is_sdk = manifest.is_some_and(|manifest| {
        let package = manifest.get("package").and_then(|package| package.get("name"));
        package.and_then(toml::Value::as_str) == Some(PACKAGE)
    });
    is_sdk && folder.join("wit").is_dir()
}

#[allow(
    clippy::disallowed_methods,
    reason = "the user names the checkout, or works in it"
)]
fn read(file: &Path) -> Option<String> {
    std::fs::read_to_string(file).ok()
}
