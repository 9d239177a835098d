//! Frameworks of Python, by the imports of the tree and the files beside a file.

use super::Run;
use crate::facts::What;
use crate::language::Language;
use crate::path;
use crate::resolve::Index;

/// Modules of an application that Django and packages for it import by name.
const DJANGO_MODULES: [&str; 15] = [
    "admin",
    "apps",
    "models",
    "urls",
    "settings",
    "wsgi",
    "asgi",
    "tasks",
    "signals",
    "translation",
    "wagtail_hooks",
    "search_indexes",
    "sitemaps",
    "jinja2",
    "celery",
];

/// Directories of modules that Django imports by their place.
const DJANGO_FOLDERS: [&str; 4] = ["migrations", "templatetags", "settings", "commands"];

/// Adds the files that frameworks run.
pub(super) fn find(index: &Index<'_>, run: &mut Run) {
    let [has_django, has_streamlit] = imports(index, ["django", "streamlit"]);
    for file in 0..index.len() {
        let path = index.path(file);
        if index.language(file) != Some(Language::Python) {
            continue;
        }
        if is_alembic(index, path) {
            run.entry(file).or_insert("Alembic");
        } else if has_django && is_django(path) {
            run.entry(file).or_insert("Django");
        } else if has_streamlit && path::name(path::parent(path)) == "pages" {
            run.entry(file).or_insert("Streamlit");
        }
    }
}

/// Checks for each package whether a file of Python imports it.
fn imports<const N: usize>(index: &Index<'_>, packages: [&str; N]) -> [bool; N] {
    let mut found = [false; N];
    let python = (0..index.len()).filter(|file| index.language(*file) == Some(Language::Python));
    for import in python
        .filter_map(|file| index.facts(file))
        .flat_map(|facts| &facts.imports)
    {
        let What::Python { module, level: 0, .. } = &import.what else {
            continue;
        };
        let top = module.split('.').next().unwrap_or_default();
        for (package, found) in packages.iter().zip(&mut found) {
            *found |= *package == top;
        }
    }
    found
}

/// Checks for `env.py` beside `versions/` or a template of migrations, and for what is in `versions/`.
fn is_alembic(index: &Index<'_>, path: &str) -> bool {
    let directory = path::parent(path);
    let has = |directory: &str, name: &str| index.find(&path::below(directory, name)).is_some();
    match path::name(path) {
        "env.py" => {
            has(directory, "script.py.mako") || index.has_directory(&path::below(directory, "versions"))
        }
        _ => {
            let above = path::parent(directory);
            path::name(directory).starts_with("versions") && has(above, "env.py")
        }
    }
}

fn is_django(path: &str) -> bool {
    let directory = path::parent(path);
    let folder = path::name(directory);
    let is_command = folder == "commands" && path::name(path::parent(directory)) == "management";
    let is_module =
        DJANGO_MODULES.contains(&path::stem(path)) || (folder == "models" && path::stem(path) != "base");
    is_module || is_command || (folder != "commands" && DJANGO_FOLDERS.contains(&folder))
}
