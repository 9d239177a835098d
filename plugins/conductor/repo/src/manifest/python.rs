//! `pyproject.toml` and `setup.cfg`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// Content of a Python project file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PythonProject {
    /// Name of the project.
    pub name: Option<String>,
    /// Programs, each with its `module:function`.
    pub scripts: BTreeMap<String, String>,
}

pub(super) fn read_pyproject(text: &str) -> Option<PythonProject> {
    let root: Table = text.parse().ok()?;
    let project = root.get("project").and_then(Value::as_table);
    let poetry = root
        .get("tool")
        .and_then(|tool| tool.get("poetry"))
        .and_then(Value::as_table);
    let mut found = PythonProject::default();
    for table in [project, poetry].into_iter().flatten() {
        let name = table.get("name").and_then(Value::as_str);
        found.name = found.name.or_else(|| name.map(str::to_owned));
        for key in ["scripts", "gui-scripts"] {
            scripts(table.get(key), &mut found.scripts);
        }
        for key in ["entry-points", "plugins"] {
            let groups = table.get(key).and_then(Value::as_table);
            for (_, group) in groups.into_iter().flatten() {
                scripts(Some(group), &mut found.scripts);
            }
        }
    }
    Some(found)
}

fn scripts(table: Option<&Value>, found: &mut BTreeMap<String, String>) {
    for (name, value) in table.and_then(Value::as_table).into_iter().flatten() {
        found.extend(value.as_str().map(|target| (name.clone(), target.to_owned())));
    }
}

/// Reads the sections of an INI file that name the project and its programs.
pub(super) fn read_setup_cfg(text: &str) -> Option<PythonProject> {
    let mut found = PythonProject::default();
    let mut section = "";
    for line in text.lines() {
        if let Some(name) = line
            .trim()
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            section = name;
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        match section {
            "metadata" if key == "name" => found.name = Some(value.to_owned()),
            "options.entry_points" if value.contains(':') => {
                found.scripts.insert(key.to_owned(), value.to_owned());
            }
            _ => {}
        }
    }
    (found != PythonProject::default()).then_some(found)
}
