//! New files that take part in a run of tests without being tests or work that was asked for.
//!
//! A runner imports modules by name, and reads settings that lie beside the code. So a new file is refused if it takes
//! the place of a module, if it is a setting of an unknown tool, or if it is a module that nothing in the repository
//! imports. A plan that wants the file names it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use globset::GlobSet;

use super::commands::{self, name_of};
use super::modules::{Known, Module, first, is_installed, module, roots, runs_python, stands_for};
use super::places::{self, Orders};
use super::runners::Runner;
use super::{data, dependencies, glob_set, is_usual_test, make, readers, unchanged};
use crate::git::Git;
use crate::git::look::Look;

/// Endings of modules that Python imports.
pub(super) const MODULE_EXTENSIONS: [&str; 4] = ["py", "pyc", "so", "pyd"];
/// Names of files in which programs start, which nothing imports.
const START_NAMES: [&str; 8] = ["main", "app", "cli", "manage", "wsgi", "asgi", "setup", "server"];
/// Maximum number of files of a nested repository that are looked at.
const MAX_NESTED_FILES: usize = 2_000;

/// Globs of settings that begin with a dot and have nothing to do with runs of tests.
const HARMLESS_GLOBS: &[&str] = &[
    "**/.git{ignore,attributes,keep,modules}",
    "**/.{keep,nojekyll,mailmap,htaccess,DS_Store,nvmrc,browserslistrc,node-red}",
    "**/.{docker,npm,helm,prettier,eslint,gcloud,vercel,slug}ignore",
    "**/.{editorconfig,flake8,pylintrc,isort.cfg,style.yapf,shellcheckrc,bumpversion.cfg}",
    "**/.{prettier,eslint,stylelint,rubocop,markdownlint,yamllint,hadolint,clang,commitlint,lintstaged,remark}*",
    "**/.env.{example,sample,template,dist}",
    "**/.pre-commit-{config,hooks}.y*ml",
    "**/.{gitlab-ci,travis,codecov,readthedocs,appveyor,drone,dependabot}.y*ml",
    "**/.{github,gitlab,circleci,buildkite,azure,vscode,idea,zed,devcontainer,husky,changeset,claude,cursor}/**",
    "**/.{well-known,storybook,vitepress,vuepress,docusaurus,streamlit,next,nuxt,turbo,parcel-cache,cache}/**",
    "**/.{hypothesis,nyc_output,tox,nox,gradle,build,dart_tool,ipynb_checkpoints,benchmarks,reuse}/**",
    "**/.{coverage,testmondata}*",
    "**/.*.sw[a-p]",
];

/// Matcher of [`HARMLESS_GLOBS`], made once a call.
static HARMLESS_MATCHER: LazyLock<GlobSet> = LazyLock::new(|| {
    let globs: Vec<String> = HARMLESS_GLOBS.iter().map(|glob| (*glob).to_owned()).collect();
    glob_set(&globs)
});

/// A repository and its commands, for the question of new files.
pub(super) struct Scene<'s, 'g> {
    pub git: &'s Git<'g>,
    pub base: Option<&'s str>,
    pub look: &'s Look,
    pub commands: &'s [Runner],
}

/// A new file that may change how tests run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Newcomer {
    /// Reason for this.
    pub why: String,
    pub kind: Kind,
}

/// Kind of a new file that may change how tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something finds the file in place of another one, or waits for it.
    Place,
    /// Tools may read the file as a setting.
    Setting,
    /// Make takes the file for a target.
    Target,
    /// A module that nothing seems to need.
    Alone,
}

/// A new module, and the path that Git shows for it.
pub(super) struct Candidate<'p> {
    pub shown: &'p String,
    pub path: &'p str,
    pub module: Module<'p>,
}

/// New files that may change how tests run, each with the reason.
pub(super) fn found(scene: &Scene<'_, '_>, new: &BTreeSet<&String>) -> BTreeMap<String, Newcomer> {
    let mut found = BTreeMap::new();
    if new.is_empty() {
        return found;
    }
    let times = &scene.look.times;
    let old: BTreeSet<&str> = times
        .keys()
        .filter(|path| !new.contains(path))
        .map(String::as_str)
        .collect();
    let forms: Vec<(&String, String)> = new
        .iter()
        .flat_map(|path| forms(scene.git, path).into_iter().map(move |form| (*path, form)))
        .collect();
    let fresh: BTreeSet<&str> = forms.iter().map(|(_, form)| form.as_str()).collect();
    let scripts = scripts(scene.commands);
    let roots = roots(scene, &old, &scripts);
    let known = Known::of(&old, &roots, first(scene));
    let targets = make::targets(scene.git, scene.base, scene.commands);
    let orders = Orders::of(scene.commands);
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    let mut add = |shown: &String, form: &str, kind: Kind, why: String| {
        let why = match shown == form {
            true => why,
            false => format!("{form}: {why}"),
        };
        found.entry(shown.clone()).or_insert(Newcomer { why, kind });
    };
    for (shown, form) in &forms {
        let form = form.as_str();
        if *shown != form && unchanged::is_setting(form) {
            add(shown, form, Kind::Place, "it decides how tests run".to_owned());
        }
        if let Some(why) = setting(form) {
            add(shown, form, Kind::Setting, why);
        } else if let Some(why) = places::replaces(form, &old, &orders) {
            add(shown, form, Kind::Place, why);
        } else if let Some(target) = target_of(form, &targets, &old) {
            let why =
                format!("make treats it as the target {target} and then skips the commands of that target");
            add(shown, form, Kind::Target, why);
        }
        let is_module = form
            .rsplit('.')
            .next()
            .is_some_and(|end| MODULE_EXTENSIONS.contains(&end));
        let Some(module) = is_module.then(|| module(form, &roots)).flatten() else {
            continue;
        };
        let is_there = |path: &str| old.contains(path) || fresh.contains(path);
        let package = format!("{}/__init__.py", module.root);
        if is_usual_test(form) && form.contains("/__init__.") && is_there(&package) {
            // A package of tests inside of another one.
            continue;
        }
        if stands_for(&module, form) {
            let why = format!("{} is a module of Python or of a test runner", module.name);
            add(shown, form, Kind::Place, why);
        } else if let Some(other) = known.other(&module).filter(|_| !is_there(&package)) {
            let why = format!("it may be found in place of {other}");
            add(shown, form, Kind::Place, why);
        }
        candidates.push(Candidate {
            shown,
            path: form,
            module,
        });
    }
    candidates.retain(|candidate| !found.contains_key(candidate.shown));
    if candidates.is_empty() {
        return found;
    }
    let needed = dependencies::of(scene.git, scene.base);
    let in_python = scene.commands.iter().any(runs_python);
    let reading = readers::read(scene, &candidates, &fresh, &scripts);
    for candidate in &candidates {
        let Candidate { shown, path, module } = candidate;
        let name = module.name;
        let has_main = fresh.contains(format!("{name}/__main__.py").as_str());
        // A link may lead to anything.
        let is_link = shown.as_str() != *path && !shown.ends_with('/');
        let is_alone =
            module.root.is_empty() && !is_usual_test(path) && !START_NAMES.contains(&name) && !is_link;
        // A name with another dot is none that Python imports.
        let is_name = name_of(path).matches('.').count() < 2;
        let is_needed = reading.imported.contains(name) || has_main || !is_name;
        let (kind, why) = if needed.contains(name) || is_installed(scene.git, name) {
            (Kind::Place, format!("{name} is a module of a dependency"))
        } else if let Some(reader) = reading.awaited.get(name) {
            (Kind::Place, format!("{reader} imports it"))
        } else if is_alone && in_python && !is_needed {
            (Kind::Alone, format!("no code and no test imports {name}"))
        } else {
            continue;
        };
        found.entry((*shown).clone()).or_insert(Newcomer { why, kind });
    }
    found
}

/// Paths that a change stands for: those of the files in a nested repository, and the package that a link may be.
fn forms(git: &Git<'_>, path: &str) -> Vec<String> {
    if path.ends_with('/') {
        return git.files_below(path.trim_end_matches('/'), MAX_NESTED_FILES);
    }
    let is_link = || git.is_link(path);
    match !name_of(path).contains('.') && is_link() {
        true => vec![path.to_owned(), format!("{path}/__init__.py")],
        false => vec![path.to_owned()],
    }
}

/// Target of make that a new file or its directory is taken for.
fn target_of<'t>(path: &str, targets: &'t BTreeSet<String>, old: &BTreeSet<&str>) -> Option<&'t String> {
    let is_it = |target: &&String| {
        let inside = format!("{target}/");
        let is_new = || {
            let mut below = old.range(inside.as_str()..);
            !below.next().is_some_and(|other| other.starts_with(&inside))
        };
        path == target.as_str() || (path.starts_with(&inside) && is_new())
    };
    targets.iter().find(is_it)
}

/// Scripts and modules of Python that commands run.
fn scripts(commands: &[Runner]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for runner in commands {
        for words in commands::simple(&runner.words) {
            let script = commands::script(&words).filter(|path| path.ends_with(".py"));
            found.extend(script.map(str::to_owned));
            let place = words.iter().position(|word| word == "-m");
            let module = place.and_then(|place| words.get(place.saturating_add(1)));
            if let Some(place) = module.map(|module| module.replace('.', "/")) {
                let ends = [".py", "/__main__.py", "/__init__.py"];
                found.extend(ends.map(|end| format!("{place}{end}")));
            }
        }
    }
    found
}

/// A file in a place where tools look for their settings.
fn setting(path: &str) -> Option<String> {
    let is_dotted = path
        .split('/')
        .any(|part| part.starts_with('.') && part.len() > 1);
    (is_dotted && !HARMLESS_MATCHER.is_match(path)).then(|| "tools read such files as settings".to_owned())
}

/// Checks whether a file may take part in a run of tests, by its path alone: code, what decides how tests run, and
/// files that tools find by their names.
pub(crate) fn may_take_part(path: &str) -> bool {
    let name = name_of(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let is_found = match extension {
        Some(extension) => {
            MODULE_EXTENSIONS.contains(&extension) || matches!(extension, "mk" | "env" | "json")
        }
        // At the top it may be a program that a build makes.
        None => path.contains('/') || name.to_lowercase().ends_with("file"),
    };
    is_found || data::is_code(path) || unchanged::is_setting(path) || is_usual_test(path)
}

/// Checks whether metadata of a package name plugins of a test runner.
pub(crate) fn names_plugin(git: &Git<'_>, path: &str) -> bool {
    if !path.ends_with("entry_points.txt") {
        return false;
    }
    let text = git.text_now(path).unwrap_or_default().to_lowercase();
    ["pytest", "nose", "unittest", "tox", "coverage"]
        .iter()
        .any(|runner| text.contains(runner))
}

/// Checks whether runners take a file for a test, or load it with tests, by its path alone.
pub(super) fn is_collected(path: &str) -> bool {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let lower = stem.to_lowercase();
    let is_named =
        lower.starts_with("test") || ["test", "tests", "spec"].iter().any(|end| lower.ends_with(end));
    let is_loaded = name == "__init__.py" || extension == "rs" || directory.ends_with("__tests__");
    let is_run = matches!(extension, "js" | "mjs" | "cjs") && directory.split('/').any(|part| part == "test");
    data::is_code(path) && (is_named || (is_usual_test(path) && (is_loaded || is_run)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_begin_with_a_dot_unless_they_are_known_as_harmless() {
        for path in [
            ".nycrc",
            "web/.taprc",
            ".mvn/maven.config",
            ".python-version",
            ".env",
        ] {
            assert!(setting(path).is_some(), "{path}");
        }
        for path in [
            ".gitignore",
            ".github/workflows/ci.yml",
            ".env.example",
            ".coverage",
            "a/b.py",
            ".prettierrc.json",
        ] {
            assert_eq!(setting(path), None, "{path}");
        }
    }

    #[test]
    fn runners_collect_tests_by_their_names() {
        for path in [
            "tests/test_aaa.py",
            "tests/aaa/__init__.py",
            "web/a.test.ts",
            "a_test.go",
            "src/test/java/x/AppTest.java",
            "tests/more.rs",
            "test/more.js",
        ] {
            assert!(is_collected(path), "{path}");
        }
        for path in [
            "tests/__snapshots__/a.snap",
            "test-results.xml",
            "tests/out/report.json",
            "app/__init__.py",
            "src/lib.rs",
            "tests/gen/a_pb2.py",
        ] {
            assert!(!is_collected(path), "{path}");
        }
    }
}
