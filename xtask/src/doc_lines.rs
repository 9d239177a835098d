//! Check of first doc lines: noun phrases or verbs, so that readers can understand them without knowing the code. Covers
//! all Rust, and the SDKs for JavaScript and Python.

#[cfg(test)]
mod tests {
    use crate::run::root;
    use crate::tokens::{text_of, tracked};

    /// Openings with a question word or a pronoun in place of a noun, in lower case.
    const OPENINGS: [&str; 13] = [
        "what", "who", "whose", "which", "how", "where", "whether", "why", "when", "that", "those", "it",
        "they",
    ];
    /// Marks of lines that are documentation.
    const MARKS: [&str; 6] = ["///", "//!", "/**", "/*!", "#[doc = \"", "#![doc = \""];

    /// Finds the first lines of all documentation in a source.
    type Finder = fn(&str) -> Vec<&str>;
    /// Endings of files, the folder they are checked in, and the function that finds their first doc lines.
    const SOURCES: [(&str, &str, Finder); 4] = [
        (".rs", "", first_lines),
        (".js", "sdk/", first_lines),
        (".ts", "sdk/", first_lines),
        (".py", "sdk/", docstrings),
    ];

    /// Mark of a doc line, and its text.
    fn doc(line: &str) -> Option<(&'static str, &str)> {
        let is_ordinary = line.starts_with("////") || line.starts_with("/**/");
        let mark = MARKS
            .into_iter()
            .find(|mark| line.starts_with(mark) && !is_ordinary)?;
        Some((mark, line.strip_prefix(mark)?.trim()))
    }

    /// First lines of the doc comments that are not empty. A change of the mark begins another comment.
    fn first_lines(source: &str) -> Vec<&str> {
        let mut found = Vec::new();
        // Mark of the current comment, and whether its first line was found.
        let (mut current, mut is_found) = ("", false);
        for line in source.lines().map(str::trim_start) {
            let is_in_block = current.starts_with("/*");
            let (mark, text) = match doc(line) {
                Some(doc) if !is_in_block => doc,
                _ if is_in_block => (current, line.trim_start_matches('*').trim()),
                _ => ("", ""),
            };
            if mark != current {
                (current, is_found) = (mark, false);
            }
            if !mark.is_empty() && !is_found && text.contains(char::is_alphabetic) {
                found.push(text);
                is_found = true;
            }
            if mark.starts_with("/*") && line.contains("*/") {
                (current, is_found) = ("", false);
            }
        }
        found
    }

    /// First lines of the docstrings: texts in triple quotes that begin a line.
    fn docstrings(source: &str) -> Vec<&str> {
        let parts: Vec<&str> = source.split("\"\"\"").collect();
        let texts = parts.chunks_exact(2).filter_map(|pair| match pair {
            [code, text] => {
                let before = code.rsplit('\n').next().unwrap_or_default();
                before.trim().is_empty().then_some(*text)
            }
            _ => None,
        });
        texts
            .filter_map(|text| text.lines().find(|line| line.contains(char::is_alphabetic)))
            .map(str::trim)
            .collect()
    }

    /// True if the first word of a line is one of the openings.
    fn is_refused(line: &str) -> bool {
        let mut words = line.split(|c: char| !c.is_alphabetic());
        let first = words.find(|word| !word.is_empty());
        first.is_some_and(|first| OPENINGS.contains(&first.to_lowercase().as_str()))
    }

    #[test]
    fn doc_comments_open_with_nouns_or_verbs() {
        let mut refused = Vec::new();
        for (ending, folder, find) in SOURCES {
            for path in tracked(ending)
                .into_iter()
                .filter(|path| path.starts_with(folder))
            {
                let source = text_of(&root().join(&path));
                let lines = find(&source).into_iter().filter(|line| is_refused(line));
                refused.extend(lines.map(|line| format!("{path}: {line}")));
            }
        }
        assert!(
            refused.is_empty(),
            "doc comments open with a question word or a pronoun:\n{}",
            refused.join("\n")
        );
    }

    #[test]
    fn only_first_lines_count() {
        let source = "/// Noun.\n/// It goes on.\nfn a() {}\n//! Whether.\n/// Who.\n/// Other.\n\n///\n/// How.\n// Why.";
        assert_eq!(first_lines(source), ["Noun.", "Whether.", "Who.", "How."]);
        let source = "#[doc = \"Which\"]\nfn a() {}\n/** That\n * is\n */\n/*!\n * Those\n */\n//// What\n";
        assert_eq!(first_lines(source), ["Which\"]", "That", "Those"]);
    }

    #[test]
    fn texts_in_triple_quotes_are_docstrings_where_a_line_begins() {
        let source = "\"\"\"Noun.\n\nWhich.\"\"\"\n\ndef a():\n    \"\"\"\n    How.\n    \"\"\"\n    return \"\"\"Why.\"\"\"\n";
        assert_eq!(docstrings(source), ["Noun.", "How."]);
    }

    #[test]
    fn words_are_compared_without_marks_and_case() {
        for refused in ["*How* it goes", "how: so", "\"What's it", "(Which)", "It"] {
            assert!(is_refused(refused), "{refused}");
        }
        assert!(!["Item", "A what", "Howl", ""].into_iter().any(is_refused));
    }
}
