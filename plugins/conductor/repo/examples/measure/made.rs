//! Generated repository for measurements: packages of Rust, Python and TypeScript whose files import each
//! other.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// Number of files in one directory.
const IN_FOLDER: usize = 50;

/// Creates a repository with `count` files, all of them added to the index.
pub(super) fn repository(count: usize) -> TempDir {
    let root = TempDir::new().expect("a temporary directory");
    for number in 0..count {
        let folder = root.path().join(format!("part{:04}", number / IN_FOLDER));
        std::fs::create_dir_all(&folder).expect("a directory");
        let (name, content) = file(number);
        std::fs::write(folder.join(name), content).expect("a file");
    }
    std::fs::write(root.path().join(".gitignore"), "target/\n*.log\n/build\n").expect("a file");
    git(root.path(), &["init", "--quiet"]);
    git(root.path(), &["add", "--all"]);
    root
}

/// About 4 KiB of code, a common size in real projects.
fn file(number: usize) -> (String, String) {
    let neighbour = if number % IN_FOLDER + 3 < IN_FOLDER {
        number + 3
    } else {
        number - 3
    };
    let (name, mut text) = match number % 3 {
        0 => (
            format!("m{number}.py"),
            format!("import os\nfrom .m{neighbour} import work\n\n"),
        ),
        1 => (
            format!("m{number}.ts"),
            format!("import fs from 'node:fs';\nimport {{ work }} from './m{neighbour}';\n\n"),
        ),
        _ => (
            format!("m{number}.rs"),
            format!("use std::fmt;\nuse crate::m{neighbour}::work;\n\n"),
        ),
    };
    for line in 0..60 {
        let _ = match number % 3 {
            0 => writeln!(
                text,
                "def step_{line}(value):\n    return work(value, {number}) + {line}  # as before\n"
            ),
            1 => writeln!(
                text,
                "export const step{line} = (value: number) => work(value, {number}) + {line};\n"
            ),
            _ => writeln!(
                text,
                "pub fn step_{line}(value: u64) -> u64 {{\n    work(value, {number}) + {line}\n}}\n"
            ),
        };
    }
    (name, text)
}

fn git(root: &Path, arguments: &[&str]) {
    let status = Command::new("git").args(arguments).current_dir(root).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "git {arguments:?} failed"
    );
}
