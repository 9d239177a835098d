//! Stale files, descriptions and the plan that follows from them.

use std::fmt::Write as _;

use conductor_repo::describe::{check, follow_renames, undescribed};
use conductor_repo::hygiene::suggest;
use conductor_repo::map::Notes;
use conductor_repo::snapshot::{Limits, diff};
use conductor_repo::stale::Ages;
use expect_test::expect;

use crate::harness::Memory;

const MESSY: &str = r#"
== pyproject.toml
[project]
name = "shop"
== shop/__init__.py
from . import cart
== shop/cart.py
"""What a customer wants to buy; a file long enough to be compared with others."""
== shop/cart copy.py
"""What a customer wants to buy; a file long enough to be compared with others."""
== shop/old_prices.py
== shop/island_a.py
from . import island_b
== shop/island_b.py
from . import island_a
== shop/gone.py
# Deprecated: use cart.
== shop/ancient.py
from . import cart
== shop/mentioned.py
== shop/copy_file.py
from . import cart
== run.sh
#!/bin/sh
python shop/mentioned.py
== notes.txt.bak
== PLAN_v2.md
The plan.
== tests/test_cart.py
from shop import cart, missing_one
from shop.copy_file import copy
== tests/old_data.json
"#;

fn notes() -> Notes {
    let day = 86_400_000;
    Notes {
        descriptions: [(
            "shop/copy_file.py".to_owned(),
            "Copies files; obsolete".to_owned(),
        )]
        .into(),
        ages: Ages {
            committed: [("shop/ancient.py".to_owned(), 0), ("shop/cart.py".to_owned(), 0)].into(),
            now: 400 * day,
        },
    }
}

#[test]
fn stale_files_come_with_their_reasons() {
    let map = Memory::new(MESSY).map(&notes());
    let mut text = String::new();
    for candidate in &map.stale {
        let reasons = serde_json::to_string(&candidate.reasons).unwrap();
        let _ = writeln!(text, "{} {} {reasons}", candidate.score, candidate.path);
    }
    expect![[r#"
        100 shop/cart copy.py [{"reason":"never_imported"},{"reason":"named","part":"copy"},{"reason":"duplicate","of":"shop/cart.py"}]
        80 shop/gone.py [{"reason":"never_imported"},{"reason":"deprecated","says":"Deprecated: use cart."}]
        75 shop/old_prices.py [{"reason":"never_imported"},{"reason":"named","part":"old"}]
        60 notes.txt.bak [{"reason":"backup","part":".bak"}]
        55 shop/ancient.py [{"reason":"never_imported"},{"reason":"untouched","days":400}]
        40 shop/copy_file.py [{"reason":"deprecated","says":"Copies files; obsolete"}]
        30 shop/island_a.py [{"reason":"unreachable"}]
        30 shop/island_b.py [{"reason":"unreachable"}]
    "#]].assert_eq(&text);
}

#[test]
fn the_plan_says_what_to_do_and_how_to_go_on() {
    let tree = Memory::new(MESSY);
    let (taken, _) = tree.take(&Limits::default(), None);
    let notes = notes();
    let lacking = undescribed(&taken.snapshot, &notes.descriptions, |_| false);
    let mut text = String::new();
    for step in suggest(&tree.map(&notes), &lacking) {
        let _ = writeln!(
            text,
            "{:?} {:?} {} | {} | {} {}",
            step.action,
            step.paths,
            step.target.unwrap_or_default(),
            step.reasons.join("; "),
            step.next_call.tool,
            step.next_call.arguments.to_string().len()
        );
    }
    expect![[r#"
        Delete ["shop/gone.py"]  | nothing imports it; described as deprecated: Deprecated: use cart. | repo_map_query 31
        Delete ["shop/old_prices.py"]  | nothing imports it; named like a disused file (`old`) | repo_map_query 37
        Delete ["notes.txt.bak"]  | named like a backup (`.bak`) | repo_map_query 32
        Merge ["shop/cart copy.py"] shop/cart.py | nothing imports it; named like a disused file (`copy`); same content as `shop/cart.py` | repo_map_query 36
        Move ["PLAN_v2.md"] docs/PLAN_v2.md | a document called "plan" in the root is a planning document, not part of the product | repo_map_query 21
        Review ["shop/ancient.py"]  | nothing imports it; no commit for 400 days | repo_map_query 34
        Review ["shop/copy_file.py"]  | described as deprecated: Copies files; obsolete | repo_map_query 36
        Review ["shop/island_a.py"]  | no program reaches it | repo_map_query 35
        Review ["shop/island_b.py"]  | no program reaches it | repo_map_query 35
        Describe ["PLAN_v2.md", "run.sh", "shop/__init__.py", "shop/ancient.py", "shop/cart copy.py", "shop/cart.py", "shop/gone.py", "shop/island_a.py", "shop/island_b.py", "shop/mentioned.py", "shop/old_prices.py", "tests/test_cart.py"]  | without a description | repo_file_descriptions_update 263
    "#]].assert_eq(&text);
}

#[test]
fn new_files_lack_descriptions_and_old_ones_follow_their_files() {
    let mut tree = Memory::new("== a.py\nimport os\n== b.py\nimport io\n== data.bin\n\0\n== Cargo.lock\nx\n");
    let (before, _) = tree.take(&Limits::default(), None);
    let moved = tree.files.remove("a.py").unwrap();
    tree.files.insert("lib/a.py".to_owned(), moved);
    tree.put("c.py", b"new");
    let (after, _) = tree.take(&Limits::default(), None);
    let mut said = [
        ("a.py".to_owned(), "The system".to_owned()),
        ("x.py".to_owned(), "Gone".to_owned()),
    ]
    .into();
    let since = diff(&before.snapshot, &after.snapshot);
    follow_renames(&mut said, &since);
    let is_new = |place: usize| since.added.contains(&after.snapshot.files[place].path);
    let lacking = undescribed(&after.snapshot, &said, is_new);
    expect![[r#"{"new":["c.py"],"old":["b.py"],"orphans":["x.py"]}"#]]
        .assert_eq(&serde_json::to_string(&lacking).unwrap());
}

#[test]
fn every_fault_of_a_description_is_named() {
    let (taken, _) =
        Memory::new("== src/a.py\n1\n== src/b.py\n2\n== src/c.py\n3\n").take(&Limits::default(), None);
    let said = [
        ("a.py".to_owned(), "Misplaced".to_owned()),
        ("src/a.py".to_owned(), " ".to_owned()),
        ("src/b.py".to_owned(), "B.PY".to_owned()),
        ("src/c.py".to_owned(), format!("two\nlines {}", "x".repeat(300))),
    ];
    let faults: Vec<String> = check(&taken.snapshot, &said.into())
        .iter()
        .map(ToString::to_string)
        .collect();
    expect![[r#"
        a.py is not in the snapshot
        the description of src/a.py is empty
        the description of src/b.py only repeats its name
        the description of src/c.py has more than one line
        the description of src/c.py has 310 characters; at most 200 are allowed"#]]
    .assert_eq(&faults.join("\n"));
}
