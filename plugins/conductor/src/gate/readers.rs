//! Files that import or name new modules of Python.

use std::collections::{BTreeMap, BTreeSet};

use super::commands::name_of;
use super::is_usual_test;
use super::newcomers::{Candidate, Scene};

/// Maximum number of files that are searched for imports of new modules.
const MAX_SEARCHED_FILES: usize = 3_000;
/// Names and extensions of files that name modules to run or to package.
const PROJECT_FILES: [&str; 7] = [
    "Makefile",
    "Dockerfile",
    "Procfile",
    "justfile",
    "setup.py",
    "noxfile.py",
    "tasks.py",
];
const PROJECT_EXTENSIONS: [&str; 8] = ["toml", "cfg", "ini", "conf", "yml", "yaml", "json", "service"];

/// Names of new modules that other files need.
#[derive(Debug, Default)]
pub(super) struct Reading<'m> {
    /// Modules that code imports, that a test is named after, or that manifests and configurations name.
    pub imported: BTreeSet<&'m str>,
    /// Modules that an old file imports only if they are there, or that what the commands run imports, each with the
    /// file.
    pub awaited: BTreeMap<&'m str, String>,
}

/// Reads the files of a repository for new modules. `scripts` are run by the commands.
pub(super) fn read<'m>(
    scene: &Scene<'_, '_>,
    modules: &[Candidate<'m>],
    fresh: &BTreeSet<&str>,
    scripts: &BTreeSet<String>,
) -> Reading<'m> {
    let mut reading = Reading::default();
    let is_read = |path: &&String| path.ends_with(".py") || is_project(path);
    for reader in scene.look.times.keys().filter(is_read).take(MAX_SEARCHED_FILES) {
        let is_own = |candidate: &&Candidate<'_>| {
            let inside = format!("{}/", candidate.module.name);
            candidate.path == reader || reader.starts_with(&inside)
        };
        let text = scene.git.text_now(reader).unwrap_or_default();
        let is_old = !fresh.contains(reader.as_str());
        let runs = scripts.contains(reader) && !is_usual_test(reader);
        for candidate in modules.iter().filter(|candidate| !is_own(candidate)) {
            let name = candidate.module.name;
            if !reader.ends_with(".py") || PROJECT_FILES.contains(&reader.as_str()) {
                if has_word(&text, name) {
                    reading.imported.insert(name);
                }
                continue;
            }
            let tested = [format!("test_{name}.py"), format!("{name}_test.py")];
            let imports_it = text.lines().any(|line| imports(line, name));
            if imports_it || tested.iter().any(|tested| tested == name_of(reader)) {
                reading.imported.insert(name);
            }
            if is_old && (awaits(&text, name) || (runs && imports_it)) {
                reading.awaited.entry(name).or_insert_with(|| reader.clone());
            }
        }
    }
    reading
}

/// Checks whether a file is a manifest or a configuration.
fn is_project(path: &str) -> bool {
    let name = name_of(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    PROJECT_FILES.contains(&name) || (PROJECT_EXTENSIONS.contains(&extension) && !name.contains("lock"))
}

/// Checks whether code imports a module only if it is there.
fn awaits(text: &str, name: &str) -> bool {
    let indent = |line: &str| line.len().saturating_sub(line.trim_start().len());
    text.lines().enumerate().any(|(place, line)| {
        let asks = line.contains("find_spec(") || line.contains("importorskip(");
        if asks && has_word(line, name) {
            return true;
        }
        if let Some(rest) = line.trim_start().strip_prefix("try:") {
            return imports(rest, name);
        }
        let depth = indent(line);
        if depth == 0 || !imports(line, name) {
            return false;
        }
        let above: Vec<&str> = text.lines().take(place).collect();
        let mut above = above.into_iter().rev();
        let block = above.find(|other| !other.trim().is_empty() && indent(other) < depth);
        block.is_some_and(|block| block.trim_start().starts_with("try:") || block.contains("suppress("))
    })
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
    fn optional_imports_are_told_from_others() {
        for text in [
            "try:\n    from slug import x\nexcept ImportError:\n    x = 1\n",
            "try: import slug\nexcept ImportError: pass\n",
            "def f():\n    with suppress(ImportError):\n\n        import slug\n",
            "if importlib.util.find_spec('slug'):\n    pass\n",
            "x = pytest.importorskip('slug')\n",
        ] {
            assert!(awaits(text, "slug"), "{text}");
        }
        for text in [
            "import slug\n",
            "def f():\n    import slug\n",
            "try:\n    import other\nexcept ImportError:\n    import slug\n",
        ] {
            assert!(!awaits(text, "slug"), "{text}");
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
