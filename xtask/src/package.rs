//! `cargo xtask package`: the release files for one platform, and a test of them.

pub(crate) mod archive;
mod npm;
mod platform;
mod release;
pub(crate) mod sdks;
mod server;
mod trial;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::components::{self, Profile};
use crate::run::{root, say, target};
use crate::sbom;
use archive::Entry;
use platform::Platform;
use release::{Release, VERSION};

/// Licences of the program.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// File with the checksums of all other files.
const CHECKSUMS: &str = "SHA256SUMS";

/// Flags of `cargo xtask package`.
#[derive(Debug, clap::Args)]
pub(crate) struct Package {
    /// Package this program instead of building one
    #[arg(long, value_name = "FILE", conflicts_with = "debug")]
    binary: Option<PathBuf>,
    /// Package the debug build, which builds faster
    #[arg(long)]
    debug: bool,
    /// Repository of the release, https://HOST/OWNER/NAME [default: `workspace.package.repository` in Cargo.toml]
    #[arg(long, value_name = "URL")]
    repository: Option<String>,
    /// Let npm fetch the platform's package from its registry, for a release that is completely published
    #[arg(long)]
    published: bool,
    /// Install the files in empty folders, without a network, and test the installed programs
    #[arg(long = "try")]
    is_tried: bool,
}

impl Package {
    /// Creates the packages and prints their paths. Returns a summary.
    pub(crate) fn make(&self) -> anyhow::Result<String> {
        let release = Release::new(self.repository.as_deref(), self.published)?;
        let file = match (&self.binary, self.debug) {
            (Some(file), _) => file.clone(),
            (None, true) => components::build_host(Profile::Dev)?,
            (None, false) => components::build_host(Profile::Dist)?,
        };
        let program = Program::read(&file)?;
        let made = make_all(&release, &program)?;
        for file in &made.files {
            say(&format!(
                "{} ({} KiB)",
                file.display(),
                std::fs::metadata(file)?.len() >> 10
            ));
        }
        let packages = format!("{} files for {}", made.files.len(), program.platform.name);
        if !self.is_tried {
            return Ok(packages);
        }
        ensure!(
            program.platform.is_here(),
            "--try runs the program, and {} is for {}",
            file.display(),
            program.platform.target
        );
        Ok(format!("{packages}, {}", trial::all(&made)?))
    }
}

/// Packages the debug build and tests its packages, as a step of the checks.
pub(crate) fn tried() -> anyhow::Result<String> {
    let flags = Package {
        binary: None,
        debug: true,
        repository: None,
        published: false,
        is_tried: true,
    };
    flags.make()
}

/// Program to package.
pub(crate) struct Program {
    bytes: Vec<u8>,
    platform: &'static Platform,
    /// Platform tag of a wheel.
    tag: String,
}

impl Program {
    /// Reads a program and determines its platform. Checks that it has this version, if it can run here.
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn read(path: &Path) -> anyhow::Result<Program> {
        let path = path
            .canonicalize()
            .with_context(|| format!("{} does not exist", path.display()))?;
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let (platform, tag) = platform::of_program(&bytes).with_context(|| path.display().to_string())?;
        if platform.is_here() {
            let said = Command::new(&path).arg("--version").output();
            let said = said.with_context(|| format!("cannot run {}", path.display()))?;
            let said = String::from_utf8_lossy(&said.stdout);
            let said = said.lines().next().unwrap_or_default();
            ensure!(
                said == format!("tollgate {VERSION}"),
                "{} reports `{said}`, and this is the source of tollgate {VERSION}",
                path.display()
            );
        }
        Ok(Program { bytes, platform, tag })
    }
}

/// Files of a release, by kind.
pub(crate) struct Made {
    folder: PathBuf,
    files: Vec<PathBuf>,
    /// npm package that people install.
    wrapper: PathBuf,
    /// npm package with the program.
    platform: PathBuf,
    wheel: PathBuf,
    archive: PathBuf,
}

#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn make_all(release: &Release, program: &Program) -> anyhow::Result<Made> {
    let folder = target().join("package");
    let files = folder.join("files");
    for old in [&files, &folder.join("npm")] {
        if old.exists() {
            std::fs::remove_dir_all(old)?;
        }
        std::fs::create_dir_all(old)?;
    }
    let extra = Extra::read(release, program.platform)?;
    let put = |name: String, bytes: Vec<u8>| {
        let file = files.join(name);
        std::fs::write(&file, bytes).map(|()| file)
    };
    let (name, entries) = binstall(&extra, program);
    let archive = put(name, archive::tar_gz(entries)?)?;
    let (name, bytes) = wheel::make(release, program, &extra)?;
    let wheel = put(name, bytes)?;
    let (wrapper, platform) = npm::make(release, program, &extra, &folder.join("npm"), &files)?;
    let sdks = sdks::make(release, &files, &folder.join("npm"))?;
    let server = put("server.json".to_owned(), server::text(release)?.into_bytes())?;
    let mut all = vec![
        archive.clone(),
        wheel.clone(),
        wrapper.clone(),
        platform.clone(),
        sdks.wheel,
        sdks.npm,
        server,
    ];
    all.push(put(CHECKSUMS.to_owned(), archive::checksums(&all)?.into_bytes())?);
    Ok(Made {
        folder,
        files: all,
        wrapper,
        platform,
        wheel,
        archive,
    })
}

/// Text files that packages contain in addition to the program.
pub(crate) struct Extra {
    readme: String,
    licences: Vec<(&'static str, String)>,
    /// SBOM, which is known only for this machine's platform.
    bill: Option<String>,
}

impl Extra {
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn read(release: &Release, platform: &Platform) -> anyhow::Result<Extra> {
        let read = |name: &str| {
            std::fs::read_to_string(root().join(name)).with_context(|| format!("cannot read {name}"))
        };
        let licences = LICENCES.iter().map(|name| anyhow::Ok((*name, read(name)?)));
        let bill = platform.is_here().then(sbom::bill).transpose()?;
        Ok(Extra {
            readme: read("packaging/README.md")?.replace("{server}", &release.server_name()),
            licences: licences.collect::<anyhow::Result<_>>()?,
            bill: bill.map(|bill| format!("{bill:#}\n")),
        })
    }

    /// All text files, below a folder.
    fn entries(&self, folder: &str) -> Vec<Entry> {
        let licences = self.licences.iter().map(|(name, text)| (*name, text));
        let bill = self.bill.iter().map(|bill| (sbom::FILE, bill));
        let files = licences.chain(bill).chain([("README.md", &self.readme)]);
        files
            .map(|(name, text)| Entry::text(format!("{folder}/{name}"), text.as_bytes()))
            .collect()
    }
}

/// Name and content of the archive, as declared in `package.metadata.binstall` of the host's manifest.
fn binstall(extra: &Extra, program: &Program) -> (String, Vec<Entry>) {
    let folder = format!("tollgate-{}-v{VERSION}", program.platform.target);
    let mut entries = extra.entries(&folder);
    entries.push(Entry::program(
        format!("{folder}/tollgate"),
        program.bytes.as_slice(),
    ));
    (format!("{folder}.tar.gz"), entries)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests read files of the project")]
mod tests {
    use super::*;

    #[test]
    fn cargo_binstall_finds_the_archive_and_the_program_in_it() {
        let manifest = std::fs::read_to_string(root().join("host/app/Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let package = &manifest["package"];
        let metadata = &package["metadata"]["binstall"];
        for platform in &platform::PLATFORMS {
            let filled = |key: &str| {
                let text = metadata[key].as_str().unwrap();
                text.replace("{ repo }", "https://host.example/tollgate")
                    .replace("{ name }", package["name"].as_str().unwrap())
                    .replace("{ version }", VERSION)
                    .replace("{ target }", platform.target)
                    .replace("{ bin }", "tollgate")
                    .replace("{ binary-ext }", "")
            };
            let extra = Extra {
                readme: String::new(),
                licences: Vec::new(),
                bill: None,
            };
            let program = Program {
                bytes: vec![1],
                platform,
                tag: String::new(),
            };
            let (name, entries) = binstall(&extra, &program);
            assert_eq!(
                filled("pkg-url"),
                format!("https://host.example/tollgate/releases/download/v{VERSION}/{name}")
            );
            assert!(
                entries
                    .iter()
                    .any(|entry| entry.name == filled("bin-dir") && entry.mode == 0o755)
            );
        }
    }

    /// `{ repo }` in the template is the host's `repository`, which must exist as soon as the workspace has one.
    #[test]
    fn the_host_has_the_repository_of_the_workspace() {
        let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
        let workspace: toml::Table = read("Cargo.toml").parse().unwrap();
        let host: toml::Table = read("host/app/Cargo.toml").parse().unwrap();
        let in_workspace = workspace["workspace"]["package"].get("repository").is_some();
        assert_eq!(in_workspace, host["package"].get("repository").is_some());
    }
}
