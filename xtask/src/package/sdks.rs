//! Packages of the SDKs for Python and JavaScript, the same on every platform.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::archive::{Entry, zip};
use super::release::{LICENCE, Release, VERSION};
use super::{npm, wheel};
use crate::run::root;

/// Name of the Python package in file names. `tollgate` on PyPI is another project.
const MODULE: &str = "tollgate_sdk";
/// Licence files, included in each package together with its readme.
const TEXTS: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// Files that tools leave behind, which are not packaged.
const LEFT_BEHIND: [&str; 3] = ["__pycache__", "node_modules", ".pytest_cache"];

/// Files of both packages.
pub(crate) struct Sdks {
    /// The wheel for pip.
    pub(crate) wheel: PathBuf,
    /// The archive for npm.
    pub(crate) npm: PathBuf,
}

/// Creates both packages of this checkout in a folder.
pub(crate) fn of_checkout(to: &Path, work: &Path) -> anyhow::Result<Sdks> {
    make(&Release::new(None, false)?, to, work)
}

/// Creates both packages of a release in a folder.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(super) fn make(release: &Release, to: &Path, work: &Path) -> anyhow::Result<Sdks> {
    std::fs::create_dir_all(to)?;
    let (name, bytes) = python(release)?;
    let wheel = to.join(name);
    std::fs::write(&wheel, bytes)?;
    let folder = root().join("sdk/javascript");
    let manifest = npm::common(&read(&folder.join("package.json"))?, release)?;
    let mut files = Vec::new();
    for part in ["bin", "src", "wit"] {
        collect(&folder.join(part), part, &mut files)?;
    }
    files.extend(texts(&folder, "")?);
    let npm = npm::pack(&manifest, files, &work.join("sdk"), to)?;
    Ok(Sdks { wheel, npm })
}

/// Name and bytes of the wheel.
fn python(release: &Release) -> anyhow::Result<(String, Vec<u8>)> {
    let folder = root().join("sdk/python");
    let mut entries = Vec::new();
    collect(&folder.join(MODULE), MODULE, &mut entries)?;
    let name = format!("{MODULE}-{}", wheel::version(VERSION)?);
    let info = format!("{name}.dist-info");
    entries.push(Entry::text(
        format!("{info}/METADATA"),
        metadata(&folder, release)?,
    ));
    let tag = "Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    entries.push(Entry::text(format!("{info}/WHEEL"), tag));
    entries.extend(texts(&folder, &format!("{info}/licenses/"))?.into_iter().skip(1));
    let record = wheel::record(&entries, &format!("{info}/RECORD"));
    entries.push(record);
    Ok((format!("{name}-py3-none-any.whl"), zip(&entries)?))
}

/// Metadata of the wheel, from `pyproject.toml`.
fn metadata(folder: &Path, release: &Release) -> anyhow::Result<String> {
    let project: toml::Table = read(&folder.join("pyproject.toml"))?.parse()?;
    let project = &project["project"];
    let text = |key: &str| {
        project[key]
            .as_str()
            .with_context(|| format!("pyproject.toml: {key}"))
    };
    let mut lines = vec![
        "Metadata-Version: 2.4".to_owned(),
        format!("Name: {}", text("name")?),
        format!("Version: {}", wheel::version(VERSION)?),
        format!("Summary: {}", text("description")?),
        format!("License-Expression: {LICENCE}"),
        format!("Requires-Python: {}", text("requires-python")?),
        "Classifier: Typing :: Typed".to_owned(),
        "Description-Content-Type: text/markdown".to_owned(),
    ];
    lines.extend(TEXTS.map(|file| format!("License-File: {file}")));
    if let Some(repository) = &release.repository {
        lines.push(format!("Project-URL: Source, {}", repository.url));
        lines.push(format!("Project-URL: Issues, {}/issues", repository.url));
    }
    let extras = project["optional-dependencies"].as_table();
    for (extra, packages) in extras.into_iter().flatten() {
        lines.push(format!("Provides-Extra: {extra}"));
        let packages = packages.as_array().into_iter().flatten();
        lines.extend(
            packages
                .filter_map(toml::Value::as_str)
                .map(|package| format!("Requires-Dist: {package}; extra == '{extra}'")),
        );
    }
    Ok(format!(
        "{}\n\n{}",
        lines.join("\n"),
        read(&folder.join("README.md"))?
    ))
}

/// The readme and the licences.
fn texts(folder: &Path, under: &str) -> anyhow::Result<Vec<Entry>> {
    let names = ["README.md"].into_iter().chain(TEXTS);
    names
        .map(|name| Ok(Entry::text(format!("{under}{name}"), read(&folder.join(name))?)))
        .collect()
}

/// Collects the files below a folder by name. Follows links, because the interfaces are linked.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn collect(folder: &Path, under: &str, files: &mut Vec<Entry>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<_>>()?;
    paths.sort();
    for path in paths {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let place = format!("{under}/{name}");
        if path.is_dir() {
            if !LEFT_BEHIND.contains(&name.as_str()) {
                collect(&path, &place, files)?;
            }
        } else if under.starts_with("bin") {
            files.push(Entry::program(place, std::fs::read(&path)?));
        } else {
            files.push(Entry::text(place, std::fs::read(&path)?));
        }
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests read files of the project")]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn both_sdks_have_the_version_of_the_program() {
        let manifest = read(&root().join("sdk/javascript/package.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(manifest["version"], VERSION);
        let project: toml::Table = read(&root().join("sdk/python/pyproject.toml"))
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(project["project"]["version"].as_str(), Some(VERSION));
    }

    #[test]
    fn the_wheel_has_sources_interfaces_and_bindings_and_nothing_that_runs_when_installed() {
        let mut files = Vec::new();
        collect(&root().join("sdk/python").join(MODULE), MODULE, &mut files).unwrap();
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        for wanted in [
            "__init__.py",
            "py.typed",
            "wit/pack.wit",
            "bindings_ahead/wit_world/exports/pack.py",
        ] {
            assert!(names.contains(&format!("{MODULE}/{wanted}").as_str()), "{wanted}");
        }
        assert!(
            names
                .iter()
                .all(|name| !name.contains("__pycache__") && !name.ends_with("setup.py"))
        );
        let manifest = read(&root().join("sdk/javascript/package.json")).unwrap();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        assert!(manifest.get("scripts").is_none());
    }
}
