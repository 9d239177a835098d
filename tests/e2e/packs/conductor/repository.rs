//! Sources that need much memory or stack to read. Only a component shows it: native lexers have a larger stack, and
//! the compiler turns their calls into jumps.

use serde_json::json;

use crate::packs::conductor::project::Project;

/// Number of times that each pattern repeats.
const REPEATS: usize = 20_000;

#[tokio::test]
async fn no_repetition_in_a_source_overflows_the_stack() {
    let line_comments = "// a line\n".repeat(REPEATS);
    let block_comments = "/**/\n".repeat(REPEATS);
    let escapes = "\\n".repeat(REPEATS);
    // A source with long lines counts as a bundle, which is not read.
    let continued = "\\\n".repeat(REPEATS);
    let lines = "\n".repeat(REPEATS);
    let template = "${a}\n".repeat(REPEATS);
    let braces = "{\n".repeat(REPEATS);
    let texts = "''\n".repeat(REPEATS);
    let script = "import './last.js'\n";
    let files = [
        ("last.js", String::new()),
        ("lines.js", format!("{line_comments}{script}")),
        ("blocks.js", format!("{block_comments}{script}")),
        ("blank.js", format!("{lines}{script}")),
        ("escapes.js", format!("const a = '{continued}'\n{script}")),
        ("template.js", format!("const a = `{template}`\n{script}")),
        ("braces.js", format!("{braces}\n{script}")),
        ("texts.ts", format!("{texts}\n{script}")),
        ("last.py", String::new()),
        ("escapes.py", format!("a = \"{escapes}\"\nimport last\n")),
        (
            "hashes.py",
            format!("{}import last\n", "# a line\n".repeat(REPEATS)),
        ),
        (
            "long.py",
            format!("a = \"\"\"{escapes}{lines}\"\"\"\nimport last\n"),
        ),
        (
            "continued.py",
            format!("a = 1{}\nimport last\n", " \\\n".repeat(REPEATS)),
        ),
        ("last.h", String::new()),
        ("lines.c", format!("{line_comments}#include \"last.h\"\n")),
        ("blocks.c", format!("{block_comments}#include \"last.h\"\n")),
        (
            "escapes.c",
            format!("char *a = \"{escapes}\";\n#include \"last.h\"\n"),
        ),
        (
            "Lines.java",
            format!("{line_comments}import java.util.List;\nclass Lines {{}}\n"),
        ),
        (
            "Blocks.java",
            format!("{block_comments}import java.util.List;\nclass Blocks {{}}\n"),
        ),
        (
            "lines.go",
            format!("{line_comments}package main\nimport \"fmt\"\n"),
        ),
        (
            "escapes.go",
            format!("package main\nvar a = \"{escapes}\"\nimport \"fmt\"\n"),
        ),
        ("lines.rs", format!("{line_comments}use std::fs;\n")),
        ("blocks.rs", format!("{}use std::fs;\n", "/*".repeat(REPEATS))),
        (
            "escapes.rs",
            format!("const A: &str = \"{escapes}\";\nuse std::fs;\n"),
        ),
    ];
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, content)| (*path, content.as_str()))
        .collect();
    let project = Project::of("app", &files, "");
    let session = project.place.serve(&["--tier", "full"]).await;
    let begun = json!({"title": "Read", "goal": "Read long files", "repo_root": "app"});
    let job = session.ok("conductor_init", begun).await["job_id"].clone();
    let taken = session.ok("repo_snapshot", json!({"job_id": job})).await;
    assert_eq!(taken["files"], 24, "{taken}");
    assert_eq!(taken["partial"], false, "{taken}");
    session.ok("repo_map_update", json!({"job_id": job})).await;
    for (imported, importers) in [("last.js", 7), ("last.py", 4), ("last.h", 3)] {
        let page = json!({"job_id": job, "importers_of": imported});
        let page = session.ok("repo_map_query", page).await;
        assert_eq!(page["files"].as_array().unwrap().len(), importers, "{page}");
    }
    session.close().await;
}
