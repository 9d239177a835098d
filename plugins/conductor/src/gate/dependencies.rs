//! Names of the modules of a Python project's dependencies, as its manifests and lock files have them.

use std::collections::BTreeSet;

use crate::git::Git;

/// Files that name dependencies.
const DEPENDENCY_FILES: [&str; 16] = [
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "Pipfile",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-test.txt",
    "requirements_dev.txt",
    "dev-requirements.txt",
    "test-requirements.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
];
/// Packages whose modules have other names.
const OTHER_NAMES: [(&str, &str); 12] = [
    ("attrs", "attr"),
    ("beautifulsoup4", "bs4"),
    ("opencv_python", "cv2"),
    ("pillow", "PIL"),
    ("protobuf", "google"),
    ("pycryptodome", "Crypto"),
    ("pyjwt", "jwt"),
    ("python_dateutil", "dateutil"),
    ("python_dotenv", "dotenv"),
    ("pyyaml", "yaml"),
    ("scikit_learn", "sklearn"),
    ("setuptools", "pkg_resources"),
];

/// Modules of the dependencies that a commit names.
pub(super) fn of(git: &Git<'_>, base: Option<&str>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut own = Vec::new();
    for path in DEPENDENCY_FILES {
        let text = base.and_then(|base| git.text_in(base, path));
        let (names, project) = read(path, &text.unwrap_or_default());
        found.extend(names);
        own.extend(project);
    }
    for name in own {
        found.remove(&name);
    }
    for (package, module) in OTHER_NAMES {
        if found.contains(package) {
            found.insert(module.to_owned());
        }
    }
    found
}

/// Names of packages in one file, as modules are written, and the name of the project itself.
fn read(path: &str, text: &str) -> (BTreeSet<String>, Option<String>) {
    let mut found = BTreeSet::new();
    let mut own = None;
    let (mut section, mut key, mut depth) = (String::new(), String::new(), 0_usize);
    for line in text.lines() {
        let line = line.split(" #").next().unwrap_or_default().trim_end();
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', '-']) {
            continue;
        }
        if path.ends_with(".txt") {
            found.extend(package(bare));
            continue;
        }
        if bare.starts_with('[') && depth == 0 {
            section = bare.to_lowercase();
            key.clear();
            continue;
        }
        let (name, value) = bare.split_once('=').unwrap_or(("", bare));
        let name = name.trim().trim_matches('"');
        let is_word = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
        let is_key = is_word && (path == "setup.py" || (depth == 0 && !line.starts_with([' ', '\t'])));
        if is_key {
            key = name.to_lowercase();
        }
        let value = value.trim().trim_end_matches(',').trim_matches(['"', '\'']);
        match (is_key && key == "name", path.ends_with(".lock")) {
            (true, true) => found.extend(package(value)),
            (true, false) if path == "setup.py" || is_project(&section) => own = package(value),
            _ if is_key && is_table(&section) => found.extend(package(&key)),
            _ => {}
        }
        let lists = key.contains("require") || key.contains("dependencies") || key == "deps";
        let is_group = section.contains("dependencies]") || section.contains("dependency-groups");
        if (lists || is_group) && !path.ends_with(".lock") {
            let quoted = bare.split(['"', '\'']).skip(1).step_by(2);
            found.extend(quoted.filter_map(package));
            let is_continued = !is_key && line.starts_with([' ', '\t']) && !bare.starts_with(['"', '\'']);
            found.extend(is_continued.then(|| package(bare)).flatten());
        }
        let opened = depth.saturating_add(bare.matches(['[', '(']).count());
        depth = opened.saturating_sub(bare.matches([']', ')']).count());
    }
    (found, own)
}

/// Checks whether a section has the name of the project.
fn is_project(section: &str) -> bool {
    matches!(section, "[project]" | "[tool.poetry]" | "[metadata]")
}

/// Checks whether the keys of a section are names of packages.
fn is_table(section: &str) -> bool {
    let is_poetry = section.starts_with("[tool.poetry") && section.ends_with("dependencies]");
    is_poetry || matches!(section, "[packages]" | "[dev-packages]")
}

/// Name at the beginning of a requirement, as a module is written.
fn package(text: &str) -> Option<String> {
    let end = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let name = text.trim().split(end).next().unwrap_or_default();
    let is_name = name.starts_with(|c: char| c.is_alphabetic()) && name != "python";
    is_name.then(|| name.to_lowercase().replace(['-', '.'], "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_manifests_and_lock_files() {
        for (path, text, expected) in [
            (
                "pyproject.toml",
                "[project]\nname = \"slug\"\ndescription = \"a thing\"\ndependencies = [\n  \"sorted-containers>=2\",\n  \"click\",\n]\n\
                 [project.optional-dependencies]\ndev = [\"hypothesis\", \"slug[x]\"]\n[tool.x]\nname = \"y\"\n",
                "click hypothesis sorted_containers",
            ),
            (
                "pyproject.toml",
                "[tool.poetry]\nname = \"slug\"\n[tool.poetry.group.dev.dependencies]\npython = \"^3\"\nmock = \"*\"\n",
                "mock",
            ),
            (
                "requirements.txt",
                "# x\n-r other.txt\nRequests[socks]==2 # why\nzope.interface\n",
                "requests zope_interface",
            ),
            (
                "uv.lock",
                "[[package]]\nname = \"idna\"\nversion = \"3\"\n",
                "idna",
            ),
            (
                "setup.cfg",
                "[metadata]\nname = slug\n[options]\ninstall_requires =\n    attrs\n    rich>=1\npackages = find:\n",
                "attrs rich",
            ),
            (
                "setup.py",
                "setup(\n    name=\"slug\",\n    install_requires=[\"attrs\"],\n    packages=[\"slug\"],\n)\n",
                "attrs",
            ),
        ] {
            let (mut found, own) = read(path, text);
            found.retain(|name| Some(name) != own.as_ref());
            let found: Vec<String> = found.into_iter().collect();
            assert_eq!(found.join(" "), expected, "{path}");
        }
    }
}
