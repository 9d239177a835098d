//! First lines of doc comments: noun phrases or verbs, so that a reader need not know the code to understand them.

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::run::root;

    /// Folders whose doc lines users and authors of packs read, and those that run in the host.
    const FOLDERS: [&str; 5] = ["host", "plugins", "sdk/src", "sql/src", "xtask/src"];
    /// Openings that put a question or a pronoun where the noun should be.
    const OPENINGS: [&str; 12] = [
        "What", "Who", "Whose", "How", "Where", "Whether", "Why", "When", "That", "Those", "It", "They",
    ];
    /// Percentage of first lines that may open so all the same.
    const TOLERATED: usize = 2;

    /// First lines of doc comments in a source text.
    fn first_lines(source: &str) -> impl Iterator<Item = &str> {
        let mut is_inside = false;
        source.lines().filter_map(move |line| {
            let line = line.trim_start();
            let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let is_first = doc.is_some() && !is_inside;
            is_inside = doc.is_some();
            doc.map(str::trim).filter(|doc| is_first && !doc.is_empty())
        })
    }

    #[allow(clippy::disallowed_methods, reason = "the test reads sources")]
    fn visit(folder: &Path, count: &mut usize, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, count, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                for line in first_lines(&std::fs::read_to_string(&path).unwrap()) {
                    *count += 1;
                    if OPENINGS.contains(&line.split([' ', ',']).next().unwrap_or_default()) {
                        found.push(format!("{}: {line}", path.display()));
                    }
                }
            }
        }
    }

    #[test]
    fn doc_comments_open_with_nouns_or_verbs() {
        for folder in FOLDERS {
            let (mut count, mut found) = (0, Vec::new());
            visit(&root().join(folder), &mut count, &mut found);
            assert!(count > 0, "no doc comments below {folder}");
            assert!(
                found.len() * 100 <= count * TOLERATED,
                "{} of {count} doc comments below {folder} open with a question word or a pronoun:\n{}",
                found.len(),
                found.join("\n")
            );
        }
    }

    #[test]
    fn only_first_lines_count() {
        let source = "/// Noun.\n/// It goes on.\nfn a() {}\n//! Whether.\nfn b() {}\n    /// Who.\n";
        let found: Vec<&str> = first_lines(source).collect();
        assert_eq!(found, ["Noun.", "Whether.", "Who."]);
    }
}
