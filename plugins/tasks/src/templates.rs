//! The built-in templates.

use crate::model::RootKind;
use crate::record::{Template, TemplateStep, TemplateTask};

/// A step: title, criterion, test.
type Line = (&'static str, &'static str, &'static str);

const BASIC: &[Line] = &[
    (
        "Understand the request",
        "The goal and its limits are written down",
        "Another person agrees with the text",
    ),
    (
        "Do it",
        "The change fulfils the request",
        "The tests that cover it pass",
    ),
    (
        "Check and hand over",
        "Nothing else broke and the reader knows what changed",
        "The whole test suite passes",
    ),
];
const PRINCIPAL: &[Line] = &[
    (
        "Frame the problem",
        "Goal, non-goals, constraints and risks are written down",
        "The owner has confirmed these points",
    ),
    (
        "Compare designs",
        "At least two designs were weighed and one chosen, with reasons",
        "The decision is noted with decision=true",
    ),
    (
        "Build the smallest end-to-end version",
        "One path works from end to end",
        "A test drives that path",
    ),
    (
        "Complete it",
        "All required behaviour is there, failures included",
        "Tests cover each requirement and its failures",
    ),
    (
        "Prove it",
        "Security, performance and documentation were reviewed",
        "Evidence is attached for each",
    ),
    (
        "Release and look back",
        "The change is in use, and its lessons are written down",
        "The release was checked after it went out",
    ),
];
const BUG_FIX: &[Line] = &[
    (
        "Reproduce the bug",
        "The failure can be shown at will",
        "A test fails because of it",
    ),
    (
        "Find the cause",
        "The cause is explained, not only the symptom",
        "A note names the line and the reason",
    ),
    (
        "Fix it",
        "The test passes and the fix touches no more than it must",
        "The failing test passes now",
    ),
    (
        "Guard against its return",
        "Similar code was checked",
        "The whole test suite passes",
    ),
];
const REFACTOR: &[Line] = &[
    (
        "Pin the behaviour",
        "Tests describe what must not change",
        "The tests pass before the first change",
    ),
    (
        "Change the structure in small steps",
        "Each step keeps the tests green",
        "The tests pass after each step",
    ),
    (
        "Remove what is left over",
        "No dead code and no old names remain",
        "Lint and the whole test suite pass",
    ),
];
const RELEASE: &[Line] = &[
    (
        "Freeze the scope",
        "What goes out is listed and agreed",
        "The list matches the changes since the last release",
    ),
    (
        "Verify the candidate",
        "The candidate passed every check",
        "The whole suite ran on the candidate itself",
    ),
    (
        "Write the notes",
        "Changes, upgrades and known problems are described",
        "Somebody followed the upgrade as written",
    ),
    (
        "Publish",
        "The release is published and can be installed",
        "A fresh installation works",
    ),
    (
        "Watch",
        "Nothing unexpected happened after it went out",
        "Reports since the release were read",
    ),
];

/// All built-in templates, by name.
pub(crate) fn all() -> Vec<Template> {
    let plan = |name, description, tasks| template(name, RootKind::Plan, description, tasks);
    let task = |name, description, tasks| template(name, RootKind::Task, description, tasks);
    vec![
        task(
            "basic-task",
            "Three steps: understand, do, hand over.",
            &[("Task", BASIC)],
        ),
        plan(
            "basic-plan",
            "Prepare, build, deliver.",
            &[("Prepare", BASIC), ("Build", BASIC), ("Deliver", BASIC)],
        ),
        task("bug-fix", "Reproduce, explain, fix, guard.", &[("Fix", BUG_FIX)]),
        plan(
            "principal-plan",
            "Demanding work: design, build, release.",
            &[("Design and build", PRINCIPAL), ("Release", RELEASE)],
        ),
        task(
            "principal-task",
            "Demanding work, from framing to retrospective.",
            &[("Task", PRINCIPAL)],
        ),
        task(
            "refactor",
            "Change structure, keep behaviour.",
            &[("Refactor", REFACTOR)],
        ),
        task(
            "release",
            "From frozen scope to monitoring.",
            &[("Release", RELEASE)],
        ),
    ]
}

/// The built-in template with a name.
pub(crate) fn find(name: &str) -> Option<Template> {
    all().into_iter().find(|template| template.name == name)
}

fn template(name: &str, kind: RootKind, description: &str, tasks: &[(&str, &[Line])]) -> Template {
    Template {
        name: name.to_owned(),
        kind,
        description: description.to_owned(),
        tasks: tasks
            .iter()
            .map(|(title, steps)| TemplateTask {
                title: (*title).to_owned(),
                steps: steps.iter().copied().map(step).collect(),
            })
            .collect(),
    }
}

fn step((title, criterion, test): Line) -> TemplateStep {
    TemplateStep {
        title: title.to_owned(),
        success_criteria: vec![criterion.to_owned()],
        tests: vec![test.to_owned()],
    }
}
