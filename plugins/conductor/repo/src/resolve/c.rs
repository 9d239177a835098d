//! C and C++: headers beside the file, then any path in the tree that ends like the include.
//!
//! Only the build knows the include directories. Of several matching headers, the one nearest to the including
//! file is used.

use std::collections::BTreeMap;

use super::{Index, Resolution};
use crate::path;

/// Headers of C and POSIX. A tree may have files of the same names without meaning them.
const SYSTEM_HEADERS: [&str; 44] = [
    "assert.h",
    "complex.h",
    "ctype.h",
    "dirent.h",
    "dlfcn.h",
    "errno.h",
    "fcntl.h",
    "fenv.h",
    "float.h",
    "getopt.h",
    "inttypes.h",
    "iso646.h",
    "limits.h",
    "locale.h",
    "malloc.h",
    "math.h",
    "memory.h",
    "netdb.h",
    "poll.h",
    "pthread.h",
    "pwd.h",
    "sched.h",
    "setjmp.h",
    "signal.h",
    "stdalign.h",
    "stdarg.h",
    "stdatomic.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "stdnoreturn.h",
    "string.h",
    "strings.h",
    "syslog.h",
    "termios.h",
    "tgmath.h",
    "threads.h",
    "time.h",
    "unistd.h",
    "wchar.h",
    "wctype.h",
    "windows.h",
];

/// Files of the tree by name.
pub(super) struct Headers<'a> {
    index: &'a Index<'a>,
    by_name: BTreeMap<&'a str, Vec<usize>>,
}

impl<'a> Headers<'a> {
    pub(super) fn new(index: &'a Index<'a>) -> Headers<'a> {
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for file in 0..index.len() {
            by_name
                .entry(path::name(index.path(file)))
                .or_default()
                .push(file);
        }
        Headers { index, by_name }
    }

    pub(super) fn resolve(&self, file: usize, include: &str, system: bool) -> Resolution {
        if system
            && (SYSTEM_HEADERS.contains(&include) || !include.contains('.') || include.starts_with("sys/"))
        {
            return Resolution::External(include.to_owned());
        }
        let directory = path::parent(self.index.path(file));
        let beside = path::join(directory, include).and_then(|path| self.index.find(&path));
        match beside
            .filter(|_| !system)
            .or_else(|| self.nearest(directory, include))
        {
            Some(found) => Resolution::Files(vec![found]),
            None if system || SYSTEM_HEADERS.contains(&include) => Resolution::External(include.to_owned()),
            None => Resolution::Missing,
        }
    }

    fn nearest(&self, directory: &str, include: &str) -> Option<usize> {
        let wanted = path::join("", include.trim_start_matches("../"))?;
        let candidates = self.by_name.get(path::name(&wanted))?;
        let fits = |file: &&usize| {
            let path = self.index.path(**file);
            path.strip_suffix(wanted.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        let distance = |file: &&usize| {
            let path = self.index.path(**file);
            let shared = path
                .split('/')
                .zip(directory.split('/'))
                .take_while(|(a, b)| a == b)
                .count();
            (std::cmp::Reverse(shared), path.len(), path)
        };
        candidates.iter().filter(fits).min_by_key(distance).copied()
    }
}
