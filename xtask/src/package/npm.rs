//! npm packages: one per platform with the program, and one that finds and starts it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};

use super::archive::Entry;
use super::platform::PLATFORMS;
use super::release::{LICENCE, Release, VERSION};
use super::{Extra, Program};

/// Name of the package that people install.
pub(crate) const NAME: &str = "tollgate";
/// Scope of the packages with a program.
const SCOPE: &str = "@tollgate";

const WRAPPER: &str = include_str!("../../../packaging/npm/package.json");
const SHIM: &str = include_str!("../../../packaging/npm/tollgate.js");
const PLATFORM: &str = include_str!("../../../packaging/npm/platform.json");

/// Packs both packages. Returns the paths of the wrapper and of the platform's package.
pub(crate) fn make(
    release: &Release,
    program: &Program,
    extra: &Extra,
    work: &Path,
    to: &Path,
) -> anyhow::Result<(PathBuf, PathBuf)> {
    let wrapper = wrapper(release)?;
    let mut files = extra.entries(".");
    // The SBOM describes the program, which is in the other package.
    files.retain(|file| !file.name.ends_with(crate::sbom::FILE));
    files.push(Entry::program("bin/tollgate.js", SHIM));
    let packed = pack(&wrapper, files, &work.join("wrapper"), to)?;
    let mut files = extra.entries(".");
    files.push(Entry::program("bin/tollgate", program.bytes.as_slice()));
    let platform = platform(release, program)?;
    Ok((packed, pack(&platform, files, &work.join("platform"), to)?))
}

/// Name of the package for a platform.
fn package(platform: &str) -> String {
    format!("{SCOPE}/{platform}")
}

/// Manifest of the package that starts the program.
///
/// Until npm's registry has the platform packages, they are optional peers. npm then uses installed ones, and does not
/// request names from a registry that could belong to others.
fn wrapper(release: &Release) -> anyhow::Result<Value> {
    let mut manifest = common(WRAPPER, release)?;
    manifest["name"] = NAME.into();
    manifest["mcpName"] = release.server_name().into();
    let named = |value: fn(&str) -> Value| -> Map<String, Value> {
        let packages = PLATFORMS.iter().map(|platform| package(platform.name));
        packages
            .map(|name| {
                let value = value(&name);
                (name, value)
            })
            .collect()
    };
    if release.is_published {
        manifest["optionalDependencies"] = named(|_| VERSION.into()).into();
    } else {
        manifest["peerDependencies"] = named(|_| VERSION.into()).into();
        manifest["peerDependenciesMeta"] = named(|_| json!({"optional": true})).into();
    }
    let platforms = PLATFORMS
        .iter()
        .map(|platform| (platform.name.to_owned(), package(platform.name).into()));
    manifest["tollgate"] = json!({"platforms": platforms.collect::<Map<String, Value>>()});
    Ok(manifest)
}

/// Manifest of the package with the program.
fn platform(release: &Release, program: &Program) -> anyhow::Result<Value> {
    let platform = program.platform;
    let mut manifest = common(PLATFORM, release)?;
    manifest["name"] = package(platform.name).into();
    manifest["os"] = json!([platform.os]);
    manifest["cpu"] = json!([platform.cpu]);
    if let Some(libc) = platform.libc {
        manifest["libc"] = json!([libc]);
    }
    Ok(manifest)
}

/// Manifest of a template with the facts of a release filled in.
pub(super) fn common(template: &str, release: &Release) -> anyhow::Result<Value> {
    let mut manifest: Value = serde_json::from_str(template).context("packaging/npm")?;
    manifest["version"] = VERSION.into();
    manifest["license"] = format!("({LICENCE})").into();
    if let Some(repository) = &release.repository {
        let url = &repository.url;
        manifest["repository"] = json!({"type": "git", "url": format!("git+{url}.git")});
        manifest["homepage"] = format!("{url}#readme").into();
        manifest["bugs"] = json!({"url": format!("{url}/issues")});
    }
    Ok(manifest)
}

/// Packs a folder with these files, using npm.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(super) fn pack(manifest: &Value, files: Vec<Entry>, folder: &Path, to: &Path) -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let manifest = Entry::text("package.json", format!("{manifest:#}\n"));
    for file in files.iter().chain([&manifest]) {
        let path = folder.join(&file.name);
        std::fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        std::fs::write(&path, &file.bytes)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(file.mode))?;
    }
    let packed = Command::new("npm")
        .args([
            "pack",
            "--ignore-scripts",
            "--json",
            "--loglevel=error",
            "--pack-destination",
        ])
        .arg(to.canonicalize()?)
        .current_dir(folder)
        .stderr(Stdio::inherit())
        .output()
        .context("npm packs its packages; it comes with Node")?;
    ensure!(packed.status.success(), "npm pack failed: {}", packed.status);
    let told: Value = serde_json::from_slice(&packed.stdout).context("npm pack prints JSON")?;
    // The output is an array of packages, and since npm 12 an object by name.
    let told = told
        .as_array()
        .and_then(|all| all.first())
        .or_else(|| told.as_object()?.values().next());
    let name = told
        .and_then(|told| told["filename"].as_str())
        .context("npm pack names the file")?;
    Ok(to.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(is_published: bool) -> Release {
        Release {
            is_published,
            ..Release::new(Some("https://github.com/owner/tollgate"), false).unwrap()
        }
    }

    fn program() -> Program {
        Program {
            bytes: vec![1],
            platform: &PLATFORMS[0],
            tag: String::new(),
        }
    }

    #[test]
    fn no_package_runs_anything_when_it_is_installed() {
        for manifest in [
            wrapper(&release(true)).unwrap(),
            wrapper(&release(false)).unwrap(),
            platform(&release(false), &program()).unwrap(),
        ] {
            assert!(manifest.get("scripts").is_none(), "{manifest}");
            assert!(manifest.get("dependencies").is_none(), "{manifest}");
            assert!(manifest.get("gypfile").is_none(), "{manifest}");
            assert_eq!(manifest["version"], VERSION);
            assert_eq!(manifest["license"], "(MIT OR Apache-2.0)");
            assert_eq!(
                manifest["repository"]["url"],
                "git+https://github.com/owner/tollgate.git"
            );
        }
    }

    #[test]
    fn the_shim_loads_nothing_that_could_download() {
        let modules: Vec<_> = SHIM
            .split("require(")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
            .collect();
        assert_eq!(
            modules,
            [
                "\"node:child_process\"",
                "\"node:fs\"",
                "\"node:os\"",
                "\"node:path\"",
                "\"../package.json\""
            ]
        );
        for word in ["fetch", "import(", "http", "WebSocket", "exec(", "shell:"] {
            assert!(!SHIM.contains(word), "{word}");
        }
    }

    #[test]
    fn packages_from_files_ask_no_registry_for_others() {
        let from_files = wrapper(&release(false)).unwrap();
        assert!(from_files.get("optionalDependencies").is_none());
        let peers = from_files["peerDependencies"].as_object().unwrap();
        assert_eq!(peers.len(), PLATFORMS.len());
        for (name, version) in peers {
            assert_eq!(version, VERSION);
            assert_eq!(
                from_files["peerDependenciesMeta"][name]["optional"], true,
                "{name}"
            );
        }
        let published = wrapper(&release(true)).unwrap();
        assert!(published.get("peerDependencies").is_none());
        assert_eq!(
            published["optionalDependencies"].as_object().unwrap().len(),
            PLATFORMS.len()
        );
    }

    #[test]
    fn the_platforms_package_is_for_its_platform_alone() {
        let manifest = platform(&release(false), &program()).unwrap();
        assert_eq!(manifest["name"], "@tollgate/linux-x64-gnu");
        assert_eq!(
            (&manifest["os"], &manifest["cpu"], &manifest["libc"]),
            (&json!(["linux"]), &json!(["x64"]), &json!(["glibc"]))
        );
    }
}
