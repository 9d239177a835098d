//! Source of a new crate's SDK: this program, a checkout of the project, or the crate registry.

use std::path::Path;

use thiserror::Error;
use tollgate::scaffold::Sdk;

/// Name of the SDK's crate.
const SDK_PACKAGE: &str = "tollgate-sdk";

/// Files of a checkout that a new crate starts with.
const PINS: [&str; 2] = ["Cargo.lock", "rust-toolchain.toml"];

/// Reason why no SDK can be used.
#[derive(Debug, Error)]
pub(super) enum NoSdk {
    #[error(
        "--sdk {0}: there is no Tollgate SDK in that folder, and it is not a version such as 0.1; name a checkout of \
         the project, its folder `sdk` or a version, or omit --sdk to use the SDK in this program"
    )]
    NotThere(String),
    #[error("--sdk {0}: Cargo manifests need UTF-8 paths, but this path is not UTF-8; move the checkout")]
    NotUtf8(String),
}

/// Finds the named SDK, or else the one in this program.
pub(super) fn find(named: Option<&Path>) -> Result<Sdk, NoSdk> {
    let Some(named) = named else {
        return Ok(Sdk::BuiltIn);
    };
    // The `sdk` folder inside the checkout is accepted too.
    let around = named.join("..");
    if let Some(found) = [named, &around].into_iter().find(|place| has_sdk(place)) {
        return checkout(found);
    }
    match named.to_str() {
        Some(text) if is_version(text) => Ok(Sdk::Version(text.to_owned())),
        _ => Err(NoSdk::NotThere(named.display().to_string())),
    }
}

fn checkout(folder: &Path) -> Result<Sdk, NoSdk> {
    let folder = folder
        .canonicalize()
        .map_err(|_| NoSdk::NotThere(folder.display().to_string()))?;
    let text = folder
        .to_str()
        .ok_or_else(|| NoSdk::NotUtf8(folder.display().to_string()))?;
    let pins = PINS.into_iter();
    Ok(Sdk::Checkout {
        folder: text.to_owned(),
        pins: pins
            .filter_map(|pin| Some((pin, read(&folder.join(pin))?)))
            .collect(),
    })
}

/// Returns whether a text is one to three numbers separated by dots.
fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() <= 3 && parts.iter().all(is_number)
}

/// Returns whether a folder has the SDK and its WIT interfaces.
fn has_sdk(folder: &Path) -> bool {
    let manifest = read(&folder.join("sdk/Cargo.toml")).and_then(|text| text.parse::<toml::Table>().ok());
    let is_sdk = manifest.is_some_and(|manifest| {
        let package = manifest.get("package").and_then(|package| package.get("name"));
        package.and_then(toml::Value::as_str) == Some(SDK_PACKAGE)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_one_to_three_numbers() {
        for (text, is_one) in [
            ("0", true),
            ("0.1", true),
            ("0.1.0", true),
            ("", false),
            ("0.1.0.0", false),
            ("sdk", false),
            (".", false),
            ("1.x", false),
        ] {
            assert_eq!(is_version(text), is_one, "{text}");
        }
    }

    #[test]
    fn what_is_neither_a_checkout_nor_a_version_is_refused() {
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(find(Some(empty.path())), Err(NoSdk::NotThere(_))));
        assert!(matches!(find(Some(Path::new("0.1"))), Ok(Sdk::Version(_))));
    }
}
