//! Private cache folder of one program, in place of caches in the workspace.
//!
//! Interpreters and checkers trust their caches. A forged `__pycache__` that Git ignores turns a red suite green, so
//! each program gets its own empty caches, which are removed when it ends.

use tempfile::TempDir;

/// Variables that name a cache folder, and the name of the folder.
const FOLDERS: [(&str, &str); 3] = [
    // Bytecode, including that of pytest's rewritten assertions. It is neither read nor written elsewhere.
    ("PYTHONPYCACHEPREFIX", "pycache"),
    ("MYPY_CACHE_DIR", "mypy"),
    ("RUFF_CACHE_DIR", "ruff"),
];
/// Caches that are turned off: compiled modules of `@babel/register`, of `tsx` and of Node itself.
const DISABLED_CACHES: [(&str, &str); 3] = [
    ("BABEL_DISABLE_CACHE", "1"),
    ("TSX_DISABLE_CACHE", "1"),
    ("NODE_DISABLE_COMPILE_CACHE", "1"),
];

/// Cache folder of one program, removed when this is dropped.
#[derive(Debug)]
pub(super) struct Caches(TempDir);

impl Caches {
    /// Creates an empty folder that only the host's user can open.
    pub(super) fn new() -> std::io::Result<Caches> {
        tempfile::Builder::new()
            .prefix("tollgate-caches-")
            .tempdir()
            .map(Caches)
    }

    /// Variables that point programs to the folder. A command that sets one of them itself overrides it.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let folders = FOLDERS
            .iter()
            .map(|(name, folder)| (*name, self.0.path().join(folder).display().to_string()));
        let off = DISABLED_CACHES
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        let all = folders.chain(off);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_a_folder_of_its_own_that_goes_with_it() {
        let (one, other) = (Caches::new().unwrap(), Caches::new().unwrap());
        let prefix = |caches: &Caches| {
            let variables = caches.variables();
            let found = variables.iter().find(|(name, _)| name == "PYTHONPYCACHEPREFIX");
            found.unwrap().1.clone()
        };
        assert_ne!(prefix(&one), prefix(&other));
        let folder = one.0.path().to_owned();
        assert!(prefix(&one).starts_with(folder.to_str().unwrap()));
        assert_eq!(folder.read_dir().unwrap().count(), 0);
        drop(one);
        assert!(!folder.exists());
    }
}
