//! Origins of components, and fetching their bytes.

use std::borrow::Cow;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use tollgate_registry::Reference;

use super::download::Downloads;
use super::problems::one;
use super::version;
use crate::grants::Trust;

/// Origin of a component's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// This binary.
    Builtin(&'static [u8]),
    /// A file.
    File(PathBuf),
    /// Another machine, with the expected hash.
    Https {
        /// Address.
        url: String,
        /// SHA-256 in hex.
        sha256: String,
    },
    /// A registry, pinned to a manifest, with the expected hash of the component.
    Oci {
        /// Reference.
        reference: Reference,
        /// SHA-256 in hex.
        sha256: String,
    },
}

impl Origin {
    pub fn trust(&self) -> Trust {
        match self {
            Origin::Builtin(_) => Trust::Builtin,
            Origin::File(_) | Origin::Https { .. } | Origin::Oci { .. } => Trust::Foreign,
        }
    }

    /// Reads or downloads the bytes. Downloaded content is not downloaded again.
    pub(super) async fn bytes(&self, downloads: &Downloads) -> Result<Cow<'static, [u8]>, Vec<String>> {
        match self {
            Origin::Builtin(bytes) => Ok((*bytes).into()),
            Origin::File(path) => read(path).map(Into::into).map_err(|problem| vec![problem]),
            Origin::Https { url, sha256 } => {
                let got = downloads.get_or_fetch(url, sha256).await;
                got.map(Into::into).map_err(one)
            }
            Origin::Oci { reference, sha256 } => {
                let got = downloads.get_or_pull(reference, sha256).await;
                got.map(Into::into).map_err(one)
            }
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Builtin(_) => f.write_str("builtin"),
            Origin::File(path) => path.display().fmt(f),
            Origin::Https { url, .. } => f.write_str(url),
            Origin::Oci { reference, .. } => reference.fmt(f),
        }
    }
}

/// Reads a component's file, unless it is too large.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |err: std::io::Error| format!("cannot read the file: {err}");
    #[allow(clippy::disallowed_methods, reason = "the operator names the file")]
    let file = std::fs::File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    version::check_size(size).map_err(|err| err.to_string())?;
    let mut bytes = Vec::new();
    // The file may grow while it is read. If it is too large then, a later check refuses it.
    file.take(version::MAX_SIZE as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    Ok(bytes)
}
