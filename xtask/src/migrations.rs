//! Check of the migration files: released ones never change, and each is part of its owner's list of steps.

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use crate::package::archive::sha256;
    use crate::run::root;
    use crate::tokens::{code, string, text_of, tracked};

    /// Hashes of the files, in the format of `sha256sum`. Lines may be added, but never changed.
    const RELEASED: &str = "migrations/released.sha256";
    /// Sources with the lists of the host's own steps, by folder of their files.
    const LISTS: [(&str, &str); 2] = [
        ("core", "host/store/src/storage/engine/sqlite/migrate/files.rs"),
        (
            "core-postgres",
            "host/store/src/storage/engine/postgres/schema.rs",
        ),
    ];
    /// Newest step of `core` whose tables are in the first file of `core-postgres`.
    const IN_THE_FIRST_FILE: &str = "0025_workspaces_of_calls";

    /// Paths of the files below `migrations/`, with their hashes.
    #[allow(clippy::disallowed_methods, reason = "the test reads the project's files")]
    fn hashes() -> BTreeMap<String, String> {
        let folders = std::fs::read_dir(root().join("migrations")).unwrap();
        let folders = folders
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir());
        let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let hashed = files.map(|entry| {
            let path = entry.unwrap().path();
            let hash = sha256(&std::fs::read(&path).unwrap());
            let path = path.strip_prefix(root()).unwrap().display().to_string();
            (path, hash)
        });
        hashed.collect()
    }

    /// Compares the files with the list, and returns the paths of those that the list lacks.
    fn compare(files: &BTreeMap<String, String>, list: &str) -> Result<Vec<String>, String> {
        let mut listed = BTreeSet::new();
        for line in list.lines() {
            let (hash, path) = line.split_once("  ").ok_or(format!("{line}: no hash and path"))?;
            if listed.last().is_some_and(|last: &String| last.as_str() >= path) {
                return Err(format!("{path} is not in order"));
            }
            if files.get(path).is_none_or(|now| now != hash) {
                return Err(format!("{path} was released and must stay as it is"));
            }
            listed.insert(path.to_owned());
        }
        Ok(files
            .keys()
            .filter(|path| !listed.contains(*path))
            .cloned()
            .collect())
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test writes its list")]
    fn released_files_stay_as_they_are() {
        let files = hashes();
        let list = root().join(RELEASED);
        let added = compare(&files, &text_of(&list)).unwrap();
        if std::env::var_os("UPDATE_EXPECT").is_some() && !added.is_empty() {
            let lines = files.iter().map(|(path, hash)| format!("{hash}  {path}\n"));
            std::fs::write(&list, lines.collect::<String>()).unwrap();
        } else {
            assert_eq!(added, [""; 0], "add them to {RELEASED} with UPDATE_EXPECT=1");
        }
    }

    #[test]
    fn changes_of_listed_files_are_refused_and_new_files_are_found() {
        let files = ["a", "b"].map(|path| (path.to_owned(), format!("hash of {path}")));
        let files = BTreeMap::from(files);
        assert_eq!(compare(&files, "hash of b  b\n"), Ok(vec!["a".to_owned()]));
        assert!(compare(&files, "hash  a\nhash of b  b\n").is_err());
        assert!(compare(&files, "hash of a  a\nhash of c  c\n").is_err());
        assert!(compare(&files, "hash of b  b\nhash of a  a\n").is_err());
    }

    /// Migration files that a source names: `"…/migrations/OWNER/NAME.sql"`, or `"…/migrations/OWNER", "NAME"`.
    fn named(source: &str) -> BTreeSet<String> {
        let code = code(source);
        let mut named = BTreeSet::new();
        for (at, token) in code.iter().enumerate() {
            let Some((_, path)) = string(token).and_then(|text| text.rsplit_once("migrations/")) else {
                continue;
            };
            if path.ends_with(".sql") {
                named.insert(path.to_owned());
            } else if let Some(name) = code.get(at + 2).and_then(|token| string(token)) {
                named.insert(format!("{path}/{name}.sql"));
            }
        }
        named
    }

    #[test]
    fn every_file_is_a_step_of_its_owner() {
        let of_packs = tracked(".rs")
            .into_iter()
            .filter(|path| path.starts_with("plugins/") && path.contains("/src/"));
        let of_packs: BTreeSet<String> = of_packs
            .flat_map(|path| named(&text_of(&root().join(path))))
            .collect();
        for path in hashes().keys() {
            let file = path.strip_prefix("migrations/").unwrap();
            let owner = file.split('/').next().unwrap();
            let list = LISTS.iter().find(|(folder, _)| *folder == owner);
            let is_named = match list {
                Some((_, source)) => named(&text_of(&root().join(source))).contains(file),
                None => of_packs.contains(file),
            };
            assert!(is_named, "{path} is not in the list of steps of {owner}");
        }
    }

    #[test]
    fn both_forms_of_a_name_are_found_outside_tests_and_comments() {
        let source = "include_str!(\"../migrations/core/a.sql\") migration!(\"../migrations/p\", \"b\")
            // \"../migrations/core/c.sql\"
            #[cfg(test)] const D: &str = \"../migrations/core/d.sql\";";
        assert_eq!(named(source), ["core/a.sql", "p/b.sql"].map(str::to_owned).into());
    }

    /// Names of the steps in a folder, such as `0001_init`.
    fn steps(folder: &str) -> Vec<String> {
        let start = format!("migrations/{folder}/");
        let files = hashes().into_keys();
        files
            .filter_map(|path| Some(path.strip_prefix(&start)?.trim_end_matches(".sql").to_owned()))
            .collect()
    }

    /// Steps of `core` that have no step with the same name, apart from its number, in `core-postgres`.
    fn without_counterpart(core: &[String], postgres: &[String]) -> Vec<String> {
        let name = |step: &String| step.split_once('_').map(|(_, name)| name.to_owned());
        let names: Vec<_> = postgres.iter().map(name).collect();
        let later = core.iter().filter(|step| step.as_str() > IN_THE_FIRST_FILE);
        later
            .filter(|step| !names.contains(&name(step)))
            .cloned()
            .collect()
    }

    #[test]
    fn later_steps_of_core_have_counterparts_on_postgres() {
        let (core, postgres) = (steps("core"), steps("core-postgres"));
        assert!(core.iter().any(|step| step == IN_THE_FIRST_FILE));
        assert_eq!(without_counterpart(&core, &postgres), [""; 0]);
        let new = |name: &str| vec![name.to_owned()];
        assert_eq!(without_counterpart(&new("0026_a"), &new("0005_b")), ["0026_a"]);
        assert_eq!(without_counterpart(&new("0026_a"), &new("0005_a")), [""; 0]);
    }
}
