//! The walkthrough of docs/gsd.md, run as it is written there.

use crate::harness::Place;

const PAGE: &str = include_str!("../../../../docs/gsd.md");

/// The text of the first block of a kind after a heading.
fn block(kind: &str, heading: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(heading).expect("the page has the heading");
    let (_, rest) = rest
        .split_once(&format!("\n```{kind}\n"))
        .expect("the section has the block");
    rest.split_once("\n```").expect("the block ends").0
}

const SECTION: &str = "## From an empty repository";

#[test]
fn a_newcomer_gets_what_the_page_says() {
    let place = Place::with(block("toml", SECTION));
    std::fs::create_dir(place.path().join("shop")).unwrap();
    let script = block("sh", SECTION);
    let output = place.bash(script).output().unwrap();
    let (said, log) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}\n{log}");
    // Each refusal that the page announces comes, in its order, and no other.
    let mut rest = &*said;
    let announced: Vec<&str> = script
        .lines()
        .filter_map(|line| Some(line.split_once("# refused: ")?.1))
        .collect();
    for sentence in &announced {
        let at = rest
            .find(sentence)
            .unwrap_or_else(|| panic!("{sentence} does not come:\n{rest}"));
        rest = &rest[at + sentence.len()..];
    }
    assert_eq!(said.matches("\"remediation\"").count(), announced.len(), "{said}");
    let status = block("", "After the milestone was reopened, `gsd_status` prints:");
    assert!(said.contains(status), "{said}");
    // The reason reaches who starts the task, and the file that people read.
    let started = &said[said.find(status).unwrap() + status.len()..];
    assert!(
        started.contains(r#""reason": "refunds are missing""#),
        "{started}"
    );
    assert!(started.contains("- [ ] **T01: Call the gateway**"), "{started}");
}
