//! Judgement of the gate `tests_unchanged`: pure.

use std::sync::LazyLock;

use globset::GlobSet;

use super::decide::some;
use super::known::{Change, GitFacts};
use super::newcomers::Kind;
use super::settings::{TEST_PACKAGES, TEST_SETTINGS};
use super::{Case, glob_set, set_of};

/// Refusal for [`tests_differing`], with what the step or a person can do about each.
pub(super) fn tests_changed(git: &GitFacts, globs: &[String]) -> Option<String> {
    let reasons = tests_differing(git, globs).into_iter();
    let reasons: Vec<String> = reasons.map(|(what, way)| format!("{what}; {way}")).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Existing files with tests that changed or are gone, and files that decide how tests run, new ones as well; each with
/// the way on.
pub(super) fn tests_differing(git: &GitFacts, globs: &[String]) -> Vec<(String, String)> {
    let tests = glob_set(globs);
    let changed = paths_of(git, |change| !change.new && tests.is_match(&change.path));
    let decide = paths_of(git, |change| {
        let is_setting = is_setting(&change.path) && !git.asked.contains(&change.path);
        let decides = is_setting || git.settings.contains_key(&change.path);
        decides && !changed.contains(&change.path)
    });
    let mut reasons = Vec::new();
    if !changed.is_empty() {
        let way = "restore them and test in new files, or let a person give the step another gate with plan_refine_steps";
        reasons.push((
            format!("existing tests changed: {}", some(&changed)),
            way.to_owned(),
        ));
    }
    let owed = git.owed.iter().filter(|path| !git.asked.contains(*path));
    let owed: Vec<String> = owed.cloned().collect();
    if !owed.is_empty() {
        reasons.push((
            format!(
                "an earlier step changed these tests or test settings without being asked to: {}",
                some(&owed)
            ),
            "restore them, or let a person name them in expected_outputs of this step with plan_refine_steps"
                .to_owned(),
        ));
    }
    let data = git
        .data
        .iter()
        .filter(|(path, _)| git.changed.iter().any(|change| change.path == **path));
    let data: Vec<String> = data
        .map(|(path, test)| format!("{path} (named in {test})"))
        .collect();
    if !data.is_empty() {
        reasons.push((
            format!("data that tests read changed: {}", some(&data)),
            "restore these files, or let a person name them in expected_outputs of the step with plan_refine_steps"
                .to_owned(),
        ));
    }
    if !decide.is_empty() {
        let parts = decide.iter().map(|path| match git.settings.get(path) {
            Some(part) if !part.is_empty() => format!("{path} ({part})"),
            _ => path.clone(),
        });
        let parts: Vec<String> = parts.collect();
        let way = match decide.iter().all(|path| is_setting(path)) {
            true => "name them in expected_outputs of the step",
            false => "give the step another gate",
        };
        reasons.push((
            format!("files that decide how tests run changed: {}", some(&parts)),
            format!("restore these files, or let a person {way} with plan_refine_steps"),
        ));
    }
    reasons.extend(newcomers(git, &decide));
    reasons
}

/// New files that may change how tests run, but those that `known` has.
fn newcomers(git: &GitFacts, known: &[String]) -> Option<(String, String)> {
    let newcomers = paths_of(git, |change| {
        let path = &change.path;
        git.newcomers.contains_key(path) && !known.contains(path) && !git.asked.contains(path)
    });
    if newcomers.is_empty() {
        return None;
    }
    let why = |path: &String| {
        let why = git
            .newcomers
            .get(path)
            .map_or("", |newcomer| newcomer.why.as_str());
        format!("{path} ({why})")
    };
    let named: Vec<String> = newcomers.iter().map(why).collect();
    let is_alone = |path: &String| {
        let newcomer = git.newcomers.get(path);
        newcomer.is_some_and(|newcomer| newcomer.kind == Kind::Alone)
    };
    let hint = match newcomers.iter().any(is_alone) {
        true => "import each needed module in code or in its test, or name it in a manifest; otherwise ",
        false => "",
    };
    Some((
        format!("new files may change how tests run: {}", some(&named)),
        format!(
            "{hint}remove or rename them, or let a person name them in expected_outputs of the step with plan_refine_steps"
        ),
    ))
}

/// Checks whether a file decides how tests run, by its path.
pub(super) fn is_setting(path: &str) -> bool {
    TEST_SETTINGS_MATCHER.is_match(path) || TEST_PACKAGES_MATCHER.is_match(path)
}

/// Matcher of [`TEST_SETTINGS`], made once a call.
static TEST_SETTINGS_MATCHER: LazyLock<GlobSet> =
    LazyLock::new(|| set_of(TEST_SETTINGS.iter().copied(), Case::Ignored));

/// Matcher of [`TEST_PACKAGES`], made once a call.
static TEST_PACKAGES_MATCHER: LazyLock<GlobSet> =
    LazyLock::new(|| set_of(TEST_PACKAGES.iter().copied(), Case::Told));

fn paths_of(git: &GitFacts, wanted: impl Fn(&Change) -> bool) -> Vec<String> {
    let changed = git.changed.iter().filter(|change| wanted(change));
    changed.map(|change| change.path.clone()).collect()
}
