//! Tree as `oxc_resolver` sees it: rooted at `/`, with its packages below `/node_modules`.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldhash::fast::FixedState;
use oxc_resolver::{FileMetadata, FileSystem, ResolveError};

use super::configs::Configs;
use crate::language::Language;
use crate::manifest::Manifest;
use crate::path;
use crate::resolve::Index;

const NODE_MODULES: &str = "/node_modules";

/// Existing paths, contents of manifests, and directories of packages.
#[derive(Clone, Default)]
pub(super) struct Files(Arc<Inner>);

#[derive(Default)]
struct Inner {
    files: HashSet<String, FixedState>,
    directories: HashSet<String, FixedState>,
    manifests: BTreeMap<String, String>,
    packages: BTreeMap<String, String>,
}

impl Files {
    /// Indexes the files; empty if no source needs the index.
    pub(super) fn of(index: &Index<'_>, configs: &Configs) -> Files {
        let mut inner = Inner::default();
        let uses = |file| index.language(file) == Some(Language::JavaScript);
        if !(0..index.len()).any(uses) {
            return Files::default();
        }
        inner.files = (0..index.len())
            .map(|file| format!("/{}", index.path(file)))
            .collect();
        inner.directories = index
            .directories()
            .into_iter()
            .map(|directory| format!("/{directory}"))
            .collect();
        for (file, manifest) in index.manifests() {
            let path = format!("/{}", index.path(file));
            if let Manifest::Npm(npm) = manifest {
                if let Some(name) = &npm.name {
                    let directory = path::parent(index.path(file)).to_owned();
                    inner.packages.entry(name.clone()).or_insert(directory);
                }
                inner.manifests.insert(path, npm.json.clone());
            }
        }
        let usable = configs.usable.iter();
        inner
            .manifests
            .extend(usable.map(|(path, json)| (format!("/{path}"), json.clone())));
        Files(Arc::new(inner))
    }

    /// Package of the tree that a specifier starts with, its directory, and the rest.
    pub(super) fn package<'s>(&self, specifier: &'s str) -> Option<(String, String, &'s str)> {
        let name = super::package_name(specifier);
        let directory = self.0.packages.get(name)?;
        let rest = specifier.get(name.len()..)?.trim_start_matches('/');
        Some((name.to_owned(), directory.clone(), rest))
    }

    /// Real path of one below `/node_modules`; any other path is returned unchanged.
    pub(super) fn real(&self, path: &str) -> Option<String> {
        let inside = path
            .strip_prefix(NODE_MODULES)
            .and_then(|rest| rest.strip_prefix('/'));
        if self.0.files.contains(path) || self.0.directories.contains(path) {
            return Some(path.to_owned());
        }
        let Some((_, directory, rest)) = inside.and_then(|inside| self.package(inside)) else {
            return Some(path.to_owned());
        };
        let joined = path::join(&directory, rest)?;
        Some(format!("/{joined}"))
    }

    fn kind(&self, path: &Path) -> io::Result<FileMetadata> {
        let path = path.to_str().ok_or(io::ErrorKind::NotFound)?;
        let real = self.real(path).ok_or(io::ErrorKind::NotFound)?;
        let scope = path
            .strip_prefix(NODE_MODULES)
            .map(|rest| rest.trim_start_matches('/'));
        let is_scope = scope.is_some_and(|scope| {
            scope.is_empty()
                || (!scope.contains('/') && self.0.packages.keys().any(|name| path::parent(name) == scope))
        });
        if self.0.files.contains(&real) {
            Ok(FileMetadata::new(true, false, false))
        } else if self.0.directories.contains(&real) || (is_scope && !self.0.packages.is_empty()) {
            Ok(FileMetadata::new(false, true, false))
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

impl FileSystem for Files {
    fn new() -> Files {
        Files::default()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.read_to_string(path).map(String::into_bytes)
    }

    fn read_to_string(&self, path: &Path) -> io::Result<String> {
        let real = path.to_str().and_then(|path| self.real(path));
        let text = real.and_then(|real| self.0.manifests.get(&real));
        text.cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMetadata> {
        self.kind(path)
    }

    fn symlink_metadata(&self, path: &Path) -> io::Result<FileMetadata> {
        self.kind(path)
    }

    fn read_link(&self, path: &Path) -> Result<PathBuf, ResolveError> {
        Err(ResolveError::NotFound(path.display().to_string()))
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }
}
