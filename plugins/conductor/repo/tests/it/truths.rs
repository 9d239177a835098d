//! Small projects of each framework with recorded truths: the files that are dead, and the imports.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use conductor_repo::map::{Notes, RepoMap};
use expect_test::expect;

use crate::harness::Memory;

const PROJECTS: [(&str, &str); 12] = [
    ("c", include_str!("../truths/c.txt")),
    ("django", include_str!("../truths/django.txt")),
    ("express", include_str!("../truths/express.txt")),
    ("fastapi", include_str!("../truths/fastapi.txt")),
    ("flask", include_str!("../truths/flask.txt")),
    ("go", include_str!("../truths/go.txt")),
    ("monorepo", include_str!("../truths/monorepo.txt")),
    ("next", include_str!("../truths/next.txt")),
    ("rust", include_str!("../truths/rust.txt")),
    ("spring", include_str!("../truths/spring.txt")),
    ("sveltekit", include_str!("../truths/sveltekit.txt")),
    ("vue_vite", include_str!("../truths/vue_vite.txt")),
];

/// A project with its truths.
struct Project {
    map: RepoMap,
    dead: BTreeSet<String>,
    edges: BTreeSet<String>,
}

impl Project {
    fn new(text: &str) -> Project {
        let mut tree = Memory::new(text);
        let mut truth = |name: &str| {
            let (content, _) = tree.files.remove(name).unwrap();
            String::from_utf8(content).unwrap()
        };
        let (dead, edges) = (truth("DEAD"), truth("EDGES"));
        let each = |line: &str| {
            let (from, to) = line.split_once(" -> ").unwrap();
            to.split(", ")
                .map(|to| format!("{from} -> {to}"))
                .collect::<Vec<_>>()
        };
        Project {
            map: tree.map(&Notes::default()),
            dead: dead.lines().map(str::to_owned).collect(),
            edges: edges.lines().flat_map(each).collect(),
        }
    }

    fn listed(&self) -> BTreeSet<String> {
        self.map
            .stale
            .iter()
            .map(|candidate| candidate.path.clone())
            .collect()
    }

    fn found_edges(&self) -> BTreeSet<String> {
        let imports = self.map.export().imports.into_iter();
        imports
            .flat_map(|(from, to)| to.into_iter().map(move |to| format!("{from} -> {to}")))
            .collect()
    }
}

fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 1.0 } else { part as f64 / of as f64 }
}

#[test]
fn stale_candidates_are_dead_and_dead_files_are_candidates() {
    let (mut right, mut listed, mut dead) = (0, 0, 0);
    let mut wrong = String::new();
    for (name, text) in PROJECTS {
        let project = Project::new(text);
        let found = project.listed();
        right += found.intersection(&project.dead).count();
        listed += found.len();
        dead += project.dead.len();
        for path in found.difference(&project.dead) {
            let candidate = project.map.stale.iter().find(|candidate| candidate.path == *path);
            let _ = writeln!(
                wrong,
                "{name}: {path} is in use: {:?}",
                candidate.unwrap().reasons
            );
        }
        for path in project.dead.difference(&found) {
            let _ = writeln!(wrong, "{name}: {path} is dead");
        }
    }
    expect![[""]].assert_eq(&wrong);
    let (precision, recall) = (share(right, listed), share(right, dead));
    assert!(
        precision >= 0.9 && recall >= 0.9,
        "precision {precision}, recall {recall}\n{wrong}"
    );
}

#[test]
fn imports_are_those_recorded() {
    let mut wrong = String::new();
    for (name, text) in PROJECTS {
        let project = Project::new(text);
        let found = project.found_edges();
        for edge in found.difference(&project.edges) {
            let _ = writeln!(wrong, "{name}: {edge} is not recorded");
        }
        for edge in project.edges.difference(&found) {
            let _ = writeln!(wrong, "{name}: {edge} is missing");
        }
        for missing in &project.map.graph.missing {
            let _ = writeln!(
                wrong,
                "{name}: {}: {} is called missing",
                missing.path, missing.import
            );
        }
    }
    expect![[""]].assert_eq(&wrong);
}
