//! The commands of docs/tutorial.md, run as they are written there.

use crate::harness::Place;

const PAGE: &str = include_str!("../../../docs/tutorial.md");

/// Line between the outputs of two blocks of commands.
const NEXT: &str = "@@@ next";

/// Blocks of commands before the page removes its folder, each with the output that the page shows for it.
fn blocks() -> Vec<(&'static str, Option<&'static str>)> {
    let (page, _) = PAGE
        .split_once("## 7.")
        .expect("the page ends with a client of one's own");
    let after_commands = page.split("\n```sh\n").skip(1);
    let block = |text: &'static str| {
        let (commands, rest) = text.split_once("\n```\n").expect("the block ends");
        let shown = rest.strip_prefix("\n```\n");
        (
            commands,
            shown.map(|shown| shown.split_once("\n```").expect("the output ends").0),
        )
    };
    after_commands.map(block).collect()
}

/// A text without its variable parts: ids, times, hashes, durations, folders, widths of columns.
fn lasting(text: &str) -> Vec<String> {
    let word = |word: &str| match word {
        "ms" => "s".to_owned(),
        "ms," => "s,".to_owned(),
        path if path.starts_with('/') => "/".to_owned(),
        number if number.contains(|c: char| c.is_ascii_digit()) => "#".to_owned(),
        word => word.to_owned(),
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.trim().lines().map(line).collect()
}

#[test]
fn a_newcomer_sees_what_the_tutorial_shows() {
    let place = Place::with("");
    let blocks = blocks();
    let commands: Vec<&str> = blocks.iter().map(|(commands, _)| *commands).collect();
    let output = place
        .bash(&commands.join(&format!("\necho '{NEXT}'\n")))
        .env("HOME", place.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    let parts: Vec<&str> = said.split(NEXT).collect();
    assert_eq!(parts.len(), blocks.len(), "{said}\n{log}");
    let mut compared = 0;
    for ((commands, shown), part) in blocks.iter().zip(parts) {
        if let Some(shown) = shown {
            assert_eq!(lasting(part), lasting(shown), "{commands}\n{part}\n{log}");
            compared += 1;
        }
    }
    assert_eq!(compared, 8, "outputs that the page shows");
}
