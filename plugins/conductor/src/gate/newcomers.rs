//! New files that take part in a run of tests without being tests or work that was asked for.
//!
//! A runner imports modules by name, and reads settings that lie beside the code. So a new file is refused if it takes
//! the place of a module, if it is a setting of an unknown tool, or if it is a module that nothing in the repository
//! imports. A plan that wants the file names it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use globset::GlobSet;

use super::dependencies;
use super::runners::Runner;
use super::settings::{self, name_of};
use super::{glob_set, is_usual_test};
use crate::git::Git;
use crate::git::look::Look;

/// Maximum number of files that are searched for imports of new modules.
const SEARCHED: usize = 3_000;
/// Endings of modules that Python imports.
const MODULES: [&str; 4] = ["py", "pyc", "so", "pyd"];
/// Extensions of which one is taken for another when a test imports a file without its extension.
const SCRIPTS: [&str; 8] = ["js", "cjs", "mjs", "jsx", "ts", "tsx", "mts", "cts"];
/// Directories on the path of many projects, besides the top.
const SOURCES: [&str; 3] = ["src", "lib", "python"];
/// Names of files in which programs start, which nothing imports.
const STARTS: [&str; 8] = ["main", "app", "cli", "manage", "wsgi", "asgi", "setup", "server"];
/// Files at the top that name modules to run or to package.
const PROJECT: [&str; 12] = [
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "Makefile",
    "Dockerfile",
    "Procfile",
    "package.json",
    "justfile",
    "tox.ini",
    "noxfile.py",
    "docker-compose.yml",
    "compose.yaml",
];

/// Modules that test runners of Python import, with those that they import themselves if they are there.
const RUNNERS: &str = "\
    argcomplete attr attrs behave chardet colorama coverage ddt distlib elementpath exceptiongroup execnet \
    filelock freezegun hypothesis importlib_metadata iniconfig jinja2 lxml markupsafe more_itertools nose nose2 \
    nox numpy packaging parameterized pexpect pip pkg_resources platformdirs pluggy psutil ptyprocess py pygments \
    pyproject_hooks pytest robot setproctitle setuptools sniffio anyio sortedcontainers testfixtures tomli \
    tomllib tox trio twisted typing_extensions unittest2 virtualenv wcwidth wheel xdist xmlschema zipp zope";

/// Globs of settings that begin with a dot and have nothing to do with runs of tests.
const HARMLESS: &[&str] = &[
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

/// Matcher of [`HARMLESS`], made once a call.
static QUIET: LazyLock<GlobSet> = LazyLock::new(|| {
    let globs: Vec<String> = HARMLESS.iter().map(|glob| (*glob).to_owned()).collect();
    glob_set(&globs)
});

/// A repository and its commands, for the question of new files.
pub(super) struct Scene<'s, 'g> {
    pub git: &'s Git<'g>,
    pub base: Option<&'s str>,
    pub look: &'s Look,
    pub commands: &'s [Runner],
}

/// A module that Python finds by its name alone.
#[derive(Debug, PartialEq, Eq)]
struct Module<'p> {
    root: &'p str,
    name: &'p str,
}

/// New files that may change how tests run, each with the reason.
pub(super) fn found(scene: &Scene<'_, '_>, new: &BTreeSet<&String>) -> BTreeMap<String, String> {
    let there = |path: &str| scene.look.times.contains_key(path);
    let old: BTreeSet<&str> = scene
        .look
        .times
        .keys()
        .filter(|path| !new.contains(path))
        .map(String::as_str)
        .collect();
    let mut found = BTreeMap::new();
    let mut modules: Vec<(&String, Module<'_>)> = Vec::new();
    let roots = LazyLock::new(|| roots(scene, &old));
    for path in new.iter().copied() {
        if let Some(why) = setting(path).or_else(|| replaces(path, &old)) {
            found.insert(path.clone(), why);
            continue;
        }
        let is_script = path.rsplit('.').next().is_some_and(|end| MODULES.contains(&end));
        let Some(module) = is_script.then(|| module(path, &roots)).flatten() else {
            continue;
        };
        let package = format!("{}/__init__.py", module.root);
        if is_usual_test(path) && path.contains("/__init__.") && old.contains(package.as_str()) {
            // A package of tests inside of another one.
            continue;
        }
        if stands_for(&module, path) {
            let why = format!("{} is a module of Python or of a test runner", module.name);
            found.insert(path.clone(), why);
        } else if there(path) {
            modules.push((path, module));
        }
    }
    if modules.is_empty() {
        return found;
    }
    let needed = dependencies::of(scene.git, scene.base);
    let in_python = scene.commands.iter().any(runs_python);
    modules.retain(|(path, module)| {
        let is_dependency = needed.contains(module.name) || is_installed(scene.git, module.name);
        if is_dependency {
            let why = format!("{} is a module of a dependency", module.name);
            found.insert((*path).clone(), why);
        }
        let is_alone = module.root.is_empty() && !is_usual_test(path) && !STARTS.contains(&module.name);
        !is_dependency && is_alone && in_python
    });
    let imported = imported(scene, &modules);
    for (path, module) in modules {
        if !imported.contains(module.name) {
            let why = format!("no code and no test imports {}", module.name);
            found.insert(path.clone(), why);
        }
    }
    found
}

/// Checks whether a new file takes the place of a module of Python's standard library or of a test runner, wherever
/// the command runs.
pub(super) fn shadows(path: &str) -> bool {
    let roots = SOURCES.map(str::to_owned);
    path.ends_with(".py")
        && module(path, &roots.into_iter().collect()).is_some_and(|module| stands_for(&module, path))
}

/// A file in a place where tools look for their settings.
fn setting(path: &str) -> Option<String> {
    let is_dotted = path
        .split('/')
        .any(|part| part.starts_with('.') && part.len() > 1);
    (is_dotted && !QUIET.is_match(path)).then(|| "tools read such files as settings".to_owned())
}

/// A file that is found in place of another one, which is still there.
fn replaces(path: &str, old: &BTreeSet<&str>) -> Option<String> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, extension) = (stem(name), path.rsplit('.').next().unwrap_or_default());
    let inside = |name: &str| match directory {
        "" => name.to_owned(),
        directory => format!("{directory}/{name}"),
    };
    let is_old = |path: &String| old.contains(path.as_str());
    let other = if name == "__init__.py" {
        let beside = format!("{directory}.py");
        if is_old(&beside) {
            return Some(format!("it is found in place of {beside}"));
        }
        let begin = inside("");
        let is_direct = |path: &&str| {
            path.strip_prefix(begin.as_str())
                .is_some_and(|rest| !rest.contains('/') && rest.ends_with(".py"))
        };
        let mut tests = old
            .range(begin.as_str()..)
            .take_while(|path| path.starts_with(&begin));
        return tests
            .find(|path| is_direct(path) && is_usual_test(path))
            .map(|test| format!("it runs before {test}, and decides what that imports"));
    } else if MODULES.contains(&extension) && extension != "py" {
        Some(inside(&format!("{stem}.py"))).filter(is_old)
    } else if SCRIPTS.contains(&extension) && is_usual_test(path) {
        let whole = name.rsplit_once('.').map_or(name, |(whole, _)| whole);
        let mut others = SCRIPTS.iter().map(|other| inside(&format!("{whole}.{other}")));
        others.find(is_old)
    } else {
        None
    };
    other.map(|other| format!("it is found in place of {other}"))
}

fn stem(name: &str) -> &str {
    name.split_once('.').map_or(name, |(stem, _)| stem)
}

/// Module that a file defines, if Python finds it by its name alone: at the top, in a directory of the path, or
/// beside tests.
fn module<'p>(path: &'p str, roots: &BTreeSet<String>) -> Option<Module<'p>> {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    let (root, name) = match stem(file) {
        "__init__" if !directory.is_empty() => directory.rsplit_once('/').unwrap_or(("", directory)),
        name => (directory, name),
    };
    let is_root = root.is_empty() || roots.contains(root) || is_usual_test(path);
    is_root.then_some(Module { root, name })
}

/// Checks whether a name is that of a module of Python or of a runner. Other private names at the top are refused as
/// well, because Python's own helpers have such names.
fn stands_for(module: &Module<'_>, path: &str) -> bool {
    let name = module.name;
    let is_private = name.starts_with('_') && module.root.is_empty() && !is_usual_test(path);
    settings::is_standard(name)
        || RUNNERS.split_whitespace().any(|known| known == name)
        || name.starts_with("pytest_")
        || is_private
}

/// Directories in which Python looks for modules by their names: those of sources, those with tests that are no
/// package, and those that commands or settings name.
fn roots(scene: &Scene<'_, '_>, old: &BTreeSet<&str>) -> BTreeSet<String> {
    let mut roots: BTreeSet<String> = SOURCES.map(str::to_owned).into_iter().collect();
    let mut named: BTreeSet<String> = BTreeSet::new();
    let mut learn = |text: &str| {
        let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')));
        let words = words.map(|word| word.trim_start_matches("./").trim_end_matches('/'));
        named.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
    };
    for runner in scene.commands {
        runner.words.iter().for_each(|word| learn(word));
    }
    for path in ["pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini"] {
        let text = scene
            .base
            .and_then(|base| scene.git.text_in(base, path))
            .unwrap_or_default();
        let lines = text
            .lines()
            .filter(|line| line.to_lowercase().contains("pythonpath"));
        lines.for_each(&mut learn);
    }
    for path in old.iter().filter(|path| path.ends_with(".py")) {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_package = old.contains(format!("{directory}/__init__.py").as_str());
        let is_test = name.starts_with("test_") || name.ends_with("_test.py");
        if !is_package && (is_test || named.contains(directory)) {
            roots.insert(directory.to_owned());
        }
    }
    roots
}

/// Checks whether an environment in the work tree has a module installed.
fn is_installed(git: &Git<'_>, name: &str) -> bool {
    let environments = [".venv", "venv", "env"].iter();
    let mut libraries = environments.flat_map(|environment| git.entries_in(&format!("{environment}/lib")));
    libraries.any(|library| {
        let place = format!("{library}/site-packages/{name}");
        name_of(&library).starts_with("python") && (git.has(&place) || git.has(&format!("{place}.py")))
    })
}

/// Checks whether a command names Python or a runner of its tests.
fn runs_python(runner: &Runner) -> bool {
    const WORDS: [&str; 9] = [
        "python", "py.test", "pytest", "tox", "nox", "unittest", "poetry", "pdm", "hatch",
    ];
    let names = |word: &String| word == "uv" || WORDS.iter().any(|known| word.contains(known));
    runner.words.iter().any(names)
}

/// Names of new modules that other files import or name, tests by their own names as well.
fn imported<'m>(scene: &Scene<'_, '_>, modules: &[(&String, Module<'m>)]) -> BTreeSet<&'m str> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    if modules.is_empty() {
        return found;
    }
    let is_read = |path: &&String| path.ends_with(".py") || PROJECT.contains(&path.as_str());
    for reader in scene.look.times.keys().filter(is_read).take(SEARCHED) {
        let open: Vec<&(&String, Module<'m>)> = modules
            .iter()
            .filter(|(path, module)| {
                let is_own = *path == reader || reader.starts_with(&format!("{}/", module.name));
                !is_own && !found.contains(module.name)
            })
            .collect();
        if open.is_empty() {
            continue;
        }
        let text = scene.git.text_now(reader).unwrap_or_default();
        let file = name_of(reader);
        let is_code = reader.ends_with(".py") && !PROJECT.contains(&reader.as_str());
        for (_, module) in open {
            let tested = [
                format!("test_{}.py", module.name),
                format!("{}_test.py", module.name),
            ];
            let is_named = match is_code {
                true if tested.iter().any(|tested| tested == file) => true,
                true => text.lines().any(|line| imports(line, module.name)),
                false => has_word(&text, module.name),
            };
            if is_named {
                found.insert(module.name);
            }
        }
    }
    found
}

/// Checks whether a line of Python imports a module.
fn imports(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    let dynamic = line.contains("import_module(") || line.contains("__import__(");
    match line.split_once(char::is_whitespace) {
        Some(("import", names)) => names.split(',').any(|part| first(part) == name),
        Some(("from", rest)) => first(rest) == name,
        _ => dynamic && has_word(line, name),
    }
}

fn first(dotted: &str) -> &str {
    let end = |c: char| !(c.is_alphanumeric() || c == '_');
    dotted.trim_start().split(end).next().unwrap_or_default()
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_files_take_the_place_of_modules() {
        for path in [
            "random.py",
            "json/__init__.py",
            "tests/random.py",
            "tests/json/__init__.py",
            "iniconfig.py",
            "packaging/__init__.py",
            "src/pygments.py",
            "pytest_evil.py",
            "_weakrefset.py",
        ] {
            assert!(shadows(path), "{path}");
        }
        for path in [
            "app/random.py",
            "randoms.py",
            "json/data.txt",
            "src/types.ts",
            "tests/_helpers.py",
            "app/packaging/__init__.py",
        ] {
            assert!(!shadows(path), "{path}");
        }
    }

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
    fn files_are_found_in_place_of_others() {
        let old: BTreeSet<&str> = [
            "app.py",
            "tests/test_a.py",
            "tests/util.py",
            "tests/help.ts",
            "web/a.ts",
        ]
        .into();
        for path in [
            "app/__init__.py",
            "tests/__init__.py",
            "tests/util/__init__.py",
            "app.so",
            "tests/help.js",
        ] {
            assert!(replaces(path, &old).is_some(), "{path}");
        }
        for path in [
            "tests/sub/__init__.py",
            "pkg/__init__.py",
            "tests/test_b.py",
            "web/a.js",
            "tests/help.json",
        ] {
            assert_eq!(replaces(path, &old), None, "{path}");
        }
    }

    #[test]
    fn imports_are_read_by_line() {
        for line in [
            "import a.b, slug as s",
            "    from slug.x import y",
            "m = importlib.import_module('slug')",
        ] {
            assert!(imports(line, "slug"), "{line}");
        }
        for line in [
            "import sluggish",
            "from .slug import x",
            "# import slug",
            "x = slug",
        ] {
            assert!(!imports(line, "slug"), "{line}");
        }
    }
}
