use proptest::prelude::*;

use self::parser::{parse_plan, parse_roadmap, unescape};
use super::*;

#[path = "../tests/it/grammar.rs"]
mod parser;

#[test]
fn lines_of_the_grammar() {
    let task = TaskLine {
        id: "T01".to_owned(),
        title: "write docs".to_owned(),
        closed: true,
        status: "complete".to_owned(),
    };
    assert_eq!(task.render(), "- [x] **T01: write docs**\n  - Status: complete\n");
    let slice = SliceLine {
        id: "S01".to_owned(),
        title: "the **bold** | [x] `one`".to_owned(),
        closed: false,
        risk: "high".to_owned(),
        depends: vec!["S00".to_owned(), "S02".to_owned()],
        demo: "it runs".to_owned(),
        status: "pending".to_owned(),
    };
    assert_eq!(
        slice.render(),
        "- [ ] **S01: the \\*\\*bold\\*\\* \\| \\[x\\] \\`one\\`** risk:high depends:[S00,S02]\n  \
         > After this: it runs\n  - Status: pending\n"
    );
}

#[test]
fn lines_that_only_look_like_units_are_not() {
    for line in [
        "  - [x] **T01: indented**",
        "* [x] **T01: another bullet**",
        "- [X] **T01: capital**",
        "- [x] **T1: short id**",
        "- [x] **T01: never ends*",
        "- [x] **T01: something** after it",
        "- [x] **S01: a slice**",
        "- [x] T01: not bold",
    ] {
        assert_eq!(parse_plan(line), [], "{line}");
    }
}

/// Valid titles: one line, not blank and without spaces around it.
fn title() -> impl Strategy<Value = String> {
    let wild = "[\\\\*\\[\\]`<>|~#_:x !T0-9a-zäöü中]{1,40}";
    prop_oneof![wild, "\\PC{1,60}"]
        .prop_map(|title| title.trim().to_owned())
        .prop_filter("a title says something", |title| {
            !title.is_empty() && !title.contains(['\u{2028}', '\u{2029}'])
        })
}

const STATUSES: [&str; 4] = ["pending", "in_progress", "complete", "skipped"];

proptest! {
    #[test]
    fn escaping_is_undone(text in title()) {
        prop_assert_eq!(unescape(&escape(&text)), text);
    }

    #[test]
    fn plans_round_trip(
        tasks in prop::collection::vec((1..1000_u32, title(), prop::sample::select(&STATUSES[..]), "\\PC{0,40}(\n- \\[x\\] \\*\\*T99: x\\*\\*)?"), 0..6),
    ) {
        let mut text = "# S01: a slice\n\n## Tasks\n\n".to_owned();
        let mut expected = Vec::new();
        for (number, title, status, description) in tasks {
            let line = TaskLine {
                id: format!("T{number:02}"),
                title,
                closed: matches!(status, "complete" | "skipped"),
                status: status.to_owned(),
            };
            text.push_str(&line.render());
            text.push('\n');
            text.push_str(&indent(&description));
            expected.push(parser::TaskLine {
                id: line.id,
                title: line.title,
                closed: line.closed,
                status: line.status,
            });
        }
        prop_assert_eq!(parse_plan(&text), expected);
    }

    #[test]
    fn roadmaps_round_trip(
        slices in prop::collection::vec((1..1000_u32, title(), prop::sample::select(&STATUSES[..]), title(), prop::collection::vec(0..1000_u32, 0..4)), 0..6),
    ) {
        let mut text = "# M01: a milestone\n\n## Slices\n\n".to_owned();
        let mut expected = Vec::new();
        for (number, title, status, demo, depends) in slices {
            let line = SliceLine {
                id: format!("S{number:02}"),
                title,
                closed: matches!(status, "complete" | "skipped"),
                risk: "low".to_owned(),
                depends: depends.iter().map(|number| format!("S{number:02}")).collect(),
                demo,
                status: status.to_owned(),
            };
            text.push_str(&line.render());
            expected.push(parser::SliceLine {
                id: line.id,
                title: line.title,
                closed: line.closed,
                risk: line.risk,
                depends: line.depends,
                demo: line.demo,
                status: line.status,
            });
        }
        prop_assert_eq!(parse_roadmap(&text), expected);
    }
}
