//! Runners such as `npx` and `uvx`, which start programs from a cache. A client's entry names the runner, because the
//! path in the cache disappears when the cache is emptied or updated.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use tollgate::clients::Places;

use super::file;

/// Name of the launcher package on npm, and of the distribution on PyPI.
const NPM_PACKAGE: &str = "tollgate";
const PYPI_PACKAGE: &str = "tollgate-mcp";
/// Prefix of the folders with the distribution's metadata.
const DIST_INFO: &str = "tollgate_mcp-";
/// Cache folders of runners that do not record the requested package: pnpm and yarn, bun, an older npx.
const RUNNER_CACHES: [&str; 4] = ["dlx", "dlx-", "bunx-", "_npx"];

/// Kind of location of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// A folder in which programs stay.
    Lasting,
    /// A runner's cache, with the command that starts the program through the runner, and the files in that command.
    Runner { words: Vec<String>, files: Vec<String> },
    /// Another cache.
    Cache(PathBuf),
}

/// Classifies the location of a program, after resolving links.
pub(super) fn home(program: &Path, places: &Places) -> Home {
    let found = npx(program).or_else(|| uvx(program)).or_else(|| pipx(program));
    if let Some((words, files)) = found {
        return Home::Runner { words, files };
    }
    let is_others = |name: &str| {
        RUNNER_CACHES
            .iter()
            .any(|other| name == *other || (other.ends_with('-') && name.starts_with(other)))
    };
    if let Some(folder) = up_to(program, is_others) {
        return Home::Cache(folder);
    }
    let cache = places.cache();
    let cache = cache.canonicalize().unwrap_or(cache);
    if program.starts_with(&cache) {
        return Home::Cache(cache);
    }
    Home::Lasting
}

/// Returns whether a program on the PATH is the launcher that npm installed with this one. Launchers of single projects
/// are only on the PATH of `npx`.
pub(super) fn is_starter_of(found: &Path, program: &Path) -> bool {
    let is_of_project = found
        .parent()
        .is_some_and(|folder| folder.ends_with("node_modules/.bin"));
    let modules = |path: &Path| up_to(path, |name| name == "node_modules");
    let starter = found.canonicalize().unwrap_or_default();
    !is_of_project
        && starter.ends_with("node_modules/tollgate/bin/tollgate.js")
        && modules(&starter).is_some_and(|folder| modules(program) == Some(folder))
}

type Command = (Vec<String>, Vec<String>);

/// `npx` records the request in `_npx/HASH/package.json`, with relative file paths.
fn npx(program: &Path) -> Option<Command> {
    let caches = up_to(program, |name| name == "_npx")?;
    let folder = caches.join(program.strip_prefix(&caches).ok()?.components().next()?);
    let manifest: Value = serde_json::from_str(&file::read(&folder.join("package.json")).ok()?).ok()?;
    let asked: Vec<&str> = manifest["_npx"]["packages"]
        .as_array()
        .map_or_else(Vec::new, |packages| {
            packages.iter().filter_map(Value::as_str).collect()
        });
    let (mut specs, mut files) = (Vec::new(), Vec::new());
    for (name, spec) in manifest["dependencies"].as_object()? {
        let spec = spec.as_str()?;
        specs.push(match spec.strip_prefix("file:") {
            Some(path) => {
                let path = resolved(&folder.join(path)).to_str()?.to_owned();
                files.push(path.clone());
                path
            }
            None => {
                let is_it = |asked: &&&str| {
                    let rest = asked.strip_prefix(name.as_str());
                    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
                };
                let asked = asked.iter().find(is_it);
                asked.map_or_else(|| format!("{name}@{spec}"), |asked| (*asked).to_owned())
            }
        });
    }
    let is_starter = |spec: &str| {
        spec == NPM_PACKAGE
            || spec
                .strip_prefix(NPM_PACKAGE)
                .is_some_and(|rest| rest.starts_with('@'))
    };
    let mut words = vec!["npx".to_owned(), "-y".to_owned()];
    match specs.as_slice() {
        [] => return None,
        [spec] if is_starter(spec) => words.push(spec.clone()),
        specs => {
            words.extend(
                specs
                    .iter()
                    .flat_map(|spec| ["--package".to_owned(), spec.clone()]),
            );
            words.push(NPM_PACKAGE.to_owned());
        }
    }
    Some((words, files))
}

/// `uvx` unpacks an environment into its cache: `archive-v0/HASH`.
fn uvx(program: &Path) -> Option<Command> {
    let is_cache = |name: &str| name.starts_with("archive-v") || name.starts_with("environments-v");
    let caches = up_to(program, is_cache)?;
    let environment = caches.join(program.strip_prefix(&caches).ok()?.components().next()?);
    let (start, from) = (vec!["uvx".to_owned()], "--from");
    Some(python(&environment, start, from))
}

/// `pipx run` creates an environment in its cache, `pipx install` creates one below `venvs`.
fn pipx(program: &Path) -> Option<Command> {
    let environment = program.parent()?.parent()?;
    let is_hash = |name: &str| name.len() >= 12 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_cached = environment.file_name()?.to_str().is_some_and(is_hash);
    up_to(program, |name| name == "pipx").filter(|_| is_cached)?;
    let start = vec!["pipx".to_owned(), "run".to_owned()];
    Some(python(environment, start, "--spec"))
}

/// Completes a runner's command with the source recorded in the Python package's metadata.
fn python(environment: &Path, mut words: Vec<String>, from: &str) -> Command {
    let mut files = Vec::new();
    if let Some(url) = direct_url(environment) {
        let path = url::Url::parse(&url).ok().filter(|url| url.scheme() == "file");
        let path = path.and_then(|url| url.to_file_path().ok()?.to_str().map(str::to_owned));
        files.extend(path.clone());
        words.extend([from.to_owned(), path.unwrap_or(url)]);
    }
    words.push(PYPI_PACKAGE.to_owned());
    (words, files)
}

/// Address that the distribution was installed from, unless that was an index.
fn direct_url(environment: &Path) -> Option<String> {
    let versions = names(&environment.join("lib"))?;
    for version in versions {
        let packages = environment.join("lib").join(version).join("site-packages");
        let own = names(&packages)
            .into_iter()
            .flatten()
            .find(|name| name.starts_with(DIST_INFO) && name.ends_with(".dist-info"));
        if let Some(own) = own {
            let text = file::read(&packages.join(own).join("direct_url.json")).ok()?;
            let said: Value = serde_json::from_str(&text).ok()?;
            return Some(said["url"].as_str()?.to_owned());
        }
    }
    None
}

fn names(folder: &Path) -> Option<Vec<String>> {
    #[allow(
        clippy::disallowed_methods,
        reason = "the folder that this program was installed into"
    )]
    let entries = std::fs::read_dir(folder).ok()?;
    Some(
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect(),
    )
}

/// Path up to the first folder with a matching name.
fn up_to(path: &Path, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let mut folder = PathBuf::new();
    for component in path.parent()?.components() {
        folder.push(component);
        if component.as_os_str().to_str().is_some_and(&is_it) {
            return Some(folder);
        }
    }
    None
}

/// Path without `..`. The file may no longer exist.
fn resolved(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            other => resolved.push(other),
        }
    }
    resolved
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests make what runners leave")]
mod tests {
    use super::*;

    fn places(home: &Path) -> Places {
        Places::new(home.to_owned(), home.to_owned(), |_| None)
    }

    /// Command for a program at a location below a home directory, with one other file there.
    fn words(program: &str, other: &str, text: &str) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        if !other.is_empty() {
            let other = home.join(other);
            std::fs::create_dir_all(other.parent().unwrap()).unwrap();
            std::fs::write(other, text).unwrap();
        }
        let root = home.to_str().unwrap();
        match super::home(&home.join(program), &places(&home)) {
            Home::Runner { words, .. } => words.iter().map(|word| word.replace(root, "~")).collect(),
            Home::Cache(folder) => vec!["in".to_owned(), folder.to_str().unwrap().replace(root, "~")],
            Home::Lasting => Vec::new(),
        }
    }

    #[test]
    fn what_npx_runs_is_named_as_npx_was_asked_for_it() {
        let program = ".npm/_npx/1a2b/node_modules/@tollgate/linux-x64-gnu/bin/tollgate";
        let words = |manifest: &str| words(program, ".npm/_npx/1a2b/package.json", manifest).join(" ");
        let asked = |spec: &str| {
            words(&format!(
                r#"{{"dependencies":{{"tollgate":"^0.1.0"}},"_npx":{{"packages":["{spec}"]}}}}"#
            ))
        };
        assert_eq!(asked("tollgate"), "npx -y tollgate");
        assert_eq!(asked("tollgate@0.1.0"), "npx -y tollgate@0.1.0");
        assert_eq!(
            words(r#"{"dependencies":{"tollgate":"^0.1.0"}}"#),
            "npx -y tollgate@^0.1.0"
        );
        let files = r#"{"dependencies":{"@tollgate/linux-x64-gnu":"file:../../../a/p.tgz","tollgate":"file:../../../a/t.tgz"},
            "_npx":{"packages":["./t.tgz","./p.tgz"]}}"#;
        assert_eq!(
            words(files),
            "npx -y --package ~/a/p.tgz --package ~/a/t.tgz tollgate"
        );
    }

    #[test]
    fn what_uvx_and_pipx_run_is_named_by_its_distribution() {
        let dist = "lib/python3.12/site-packages/tollgate_mcp-0.1.0.dist-info";
        let url = r#"{"url":"file:///srv/a%20b/t.whl","archive_info":{}}"#;
        for (environment, runner, from) in [
            (".cache/uv/archive-v0/xFqn-iy0T9", "uvx", "--from"),
            ("elsewhere/archive-v0/xFqn", "uvx", "--from"),
            (".cache/pipx/534d540ebf6d456", "pipx run", "--spec"),
        ] {
            let program = format!("{environment}/bin/tollgate");
            let words = |file: &str| words(&program, &format!("{environment}/{dist}/{file}"), url).join(" ");
            assert_eq!(words("METADATA"), format!("{runner} tollgate-mcp"));
            assert_eq!(
                words("direct_url.json"),
                format!("{runner} {from} /srv/a b/t.whl tollgate-mcp")
            );
        }
    }

    #[test]
    fn other_caches_are_told_from_folders_where_programs_stay() {
        for cache in [
            ".cache/x/tollgate",
            ".cache/pnpm/dlx/1/tollgate",
            "tmp/bunx-0-tollgate/bin/tollgate",
            ".npm/_npx/1a2b/node_modules/@tollgate/linux-x64-gnu/bin/tollgate",
        ] {
            assert_eq!(words(cache, "", "")[0], "in", "{cache}");
        }
        for lasting in [
            ".local/bin/tollgate",
            ".local/share/pipx/venvs/tollgate-mcp/bin/tollgate",
            ".local/share/uv/tools/tollgate-mcp/bin/tollgate",
            ".npm-global/lib/node_modules/@tollgate/linux-x64-gnu/bin/tollgate",
            "project/node_modules/@tollgate/linux-x64-gnu/bin/tollgate",
        ] {
            assert_eq!(words(lasting, "", ""), [] as [&str; 0], "{lasting}");
        }
    }

    #[test]
    fn npms_starter_is_the_program_that_is_installed_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let lib = home.path().canonicalize().unwrap().join("lib/node_modules");
        let program = lib.join("@tollgate/linux-x64-gnu/bin/tollgate");
        let starter = lib.join("tollgate/bin/tollgate.js");
        let links = [home.path().join("bin/tollgate"), lib.join(".bin/tollgate")];
        for folder in links.iter().chain([&starter]).filter_map(|file| file.parent()) {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(&starter, "").unwrap();
        for link in &links {
            std::os::unix::fs::symlink(&starter, link).unwrap();
        }
        assert!(is_starter_of(&links[0], &program));
        assert!(!is_starter_of(&links[1], &program), "on the PATH of npx alone");
        assert!(!is_starter_of(&links[0], Path::new("/usr/bin/tollgate")));
    }
}
