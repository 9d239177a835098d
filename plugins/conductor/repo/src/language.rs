//! Language and role of a file, by its name.

use serde::{Deserialize, Serialize};

use crate::path;

/// A language whose imports are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Rust.
    Rust,
    /// Python, including stub files.
    Python,
    /// JavaScript and TypeScript, including JSX and components in a single file (Vue, Svelte, Astro, MDX).
    JavaScript,
    /// Go.
    Go,
    /// Java.
    Java,
    /// C and C++.
    C,
}

impl Language {
    /// Language of a file, by its extension.
    pub fn of(path: &str) -> Option<Language> {
        let extension = path::extension(path);
        if extension.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Language::of_extension(&extension.to_ascii_lowercase());
        }
        Language::of_extension(extension)
    }

    /// Language of files with an extension in lower case.
    pub(crate) fn of_extension(extension: &str) -> Option<Language> {
        Some(match extension {
            "rs" => Language::Rust,
            "py" | "pyi" | "pyw" => Language::Python,
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => Language::JavaScript,
            "vue" | "svelte" | "astro" | "mdx" => Language::JavaScript,
            "go" => Language::Go,
            "java" => Language::Java,
            "c" | "h" | "cc" | "hh" | "cpp" | "hpp" | "cxx" | "hxx" | "c++" | "h++" | "inl" | "ipp"
            | "tpp" => Language::C,
            _ => return None,
        })
    }

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Language::Rust => "Rust",
            Language::Python => "Python",
            Language::JavaScript => "JavaScript/TypeScript",
            Language::Go => "Go",
            Language::Java => "Java",
            Language::C => "C/C++",
        }
    }
}

/// Role of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Code that is part of the product.
    Source,
    /// Code or data of tests.
    Test,
    /// File of a build tool or package manager.
    Manifest,
    /// File written by a tool, such as a lock file.
    Generated,
    /// Text for people.
    Docs,
    /// Settings and data.
    Config,
    /// Program that is not compiled.
    Script,
    /// All other files: pictures, archives, binaries.
    Asset,
}

impl Role {
    /// Role of a file, by its path.
    pub fn of(path: &str) -> Role {
        let name = path::name(path);
        if is_generated(name) {
            Role::Generated
        } else if is_manifest(name) {
            Role::Manifest
        } else if is_test(path) {
            Role::Test
        } else if Language::of(path).is_some() {
            Role::Source
        } else {
            match path::extension(path).to_ascii_lowercase().as_str() {
                "md" | "rst" | "txt" | "adoc" | "org" => Role::Docs,
                "sh" | "bash" | "zsh" | "fish" | "ps1" | "bat" | "cmd" => Role::Script,
                "toml" | "yaml" | "yml" | "json" | "jsonc" | "ini" | "cfg" | "conf" | "xml"
                | "properties" | "env" | "sql" | "wit" | "proto" | "graphql" | "csv" => Role::Config,
                _ if is_document(name) => Role::Docs,
                _ if name.starts_with('.') => Role::Config,
                _ => Role::Asset,
            }
        }
    }
}

fn is_document(name: &str) -> bool {
    let upper = name.to_uppercase();
    is_license(name)
        || ["README", "CHANGELOG"]
            .iter()
            .any(|document| upper.starts_with(document))
}

/// Checks whether a file is a license or names authors. Each package of a repository has its own copy of those.
pub(crate) fn is_license(name: &str) -> bool {
    let names = [
        "LICEN",
        "COPYING",
        "COPYRIGHT",
        "UNLICENSE",
        "NOTICE",
        "PATENTS",
        "AUTHORS",
    ];
    let starts = |document: &&str| {
        let start = name.get(..document.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(document))
    };
    Language::of(name).is_none() && names.iter().any(starts)
}

/// Checks whether the facts of a file depend on its whole name, not only on its extension.
pub(crate) fn is_read_by_name(name: &str) -> bool {
    is_manifest(name) || is_generated(name) || name == ".gitignore" || is_settings(name)
}

/// Checks whether a file is a program that configures a tool, such as `vite.config.ts`.
pub(crate) fn is_settings(name: &str) -> bool {
    path::stem(name).ends_with(".config")
}

/// Checks whether files of this name are written by a tool.
pub(crate) fn is_generated(name: &str) -> bool {
    let locks = [
        "Cargo.lock",
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "poetry.lock",
        "uv.lock",
        "Pipfile.lock",
        "go.sum",
        "go.work.sum",
        "gradle.lockfile",
    ];
    locks.contains(&name)
        || [".min.js", ".min.mjs", ".min.css", ".map", ".snap"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// Checks whether a build tool or package manager reads files of this name.
pub fn is_manifest(name: &str) -> bool {
    let manifests = [
        "Cargo.toml",
        "package.json",
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "requirements.txt",
        "go.mod",
        "go.work",
        "pom.xml",
        "build.gradle",
        "build.gradle.kts",
        "settings.gradle",
        "Makefile",
        "makefile",
        "GNUmakefile",
        "CMakeLists.txt",
        "meson.build",
        "Dockerfile",
    ];
    manifests.contains(&name)
        || (name.starts_with("tsconfig") && name.ends_with(".json"))
        || name == "jsconfig.json"
}

/// Checks whether a path looks like that of a test, by the conventions of the six languages.
pub(crate) fn is_test(path: &str) -> bool {
    let folders = ["test", "tests", "__tests__", "testdata", "fixtures", "spec"];
    let in_folder = path::is_below_any(path, &folders);
    let (name, stem) = (path::name(path), path::stem(path));
    in_folder
        || name == "conftest.py"
        || matches!(name, "tests.rs" | "tests.py")
        || (stem.starts_with("test_") && Language::of(path) == Some(Language::Python))
        || stem.ends_with("_test")
        || stem.ends_with(".test")
        || stem.ends_with(".spec")
        || (Language::of(path) == Some(Language::Java) && (stem.ends_with("Test") || stem.ends_with("Tests")))
}
