//! Tests of the chain with policies that return scripted verdicts.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use globset::{Glob, GlobSetBuilder};
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;

use super::chain::{BoundVerdict, Chain, Decision, Hearing, Subject};
use super::member::{Member, Mode, Phase};
use super::policy::Unloaded;
use super::verdict::{Answer, Cause, Fault};

/// `name:words`, the words being `pass`, `deny`, `ask`, `amend`, `mangle`, `trap` or `missing`, `audit`, `open`,
/// `request`, `response` and `=GLOB`.
fn member(text: &str) -> Member<String> {
    let (name, words) = text.split_once(':').unwrap();
    let has = |word: &str| words.split(' ').any(|one| one == word);
    let globs: Vec<String> = words
        .split(' ')
        .filter_map(|word| word.strip_prefix('='))
        .map(str::to_owned)
        .collect();
    let mut tools = GlobSetBuilder::new();
    for glob in &globs {
        tools.add(Glob::new(glob).unwrap());
    }
    Member {
        name: name.to_owned(),
        order: 1,
        mode: if has("audit") { Mode::Audit } else { Mode::Enforce },
        fail_open: has("open"),
        phase: match (has("request"), has("response")) {
            (true, false) => Phase::Request,
            (false, true) => Phase::Response,
            _ => Phase::Both,
        },
        tools: (!globs.is_empty()).then(|| tools.build().unwrap()),
        patterns: globs,
        policy: if has("missing") {
            Err(Unloaded {
                policy: name.to_owned(),
                origin: "x".to_owned(),
                problems: vec!["gone".to_owned()],
            })
        } else {
            Ok(Arc::new(text.to_owned()))
        },
        denials: Arc::default(),
    }
}

fn denial(policy: &str) -> wit::Denial {
    wit::Denial {
        code: policy.split(':').next().unwrap().to_uppercase(),
        reason: "no".to_owned(),
        remediation: "Do not.".to_owned(),
        next_call: None,
    }
}

fn answer<V>(said: Result<V, Cause>, policy: &str) -> Answer<V> {
    let note = wit::Note {
        key: "from".to_owned(),
        value: policy.split(':').next().unwrap().to_owned(),
    };
    Answer {
        said: said.map(|verdict| (verdict, vec![note])).map_err(|cause| Fault {
            cause,
            detail: String::new(),
        }),
        took: Duration::from_micros(1),
    }
}

fn told(decision: &Decision) -> String {
    match decision {
        Decision::Pass => "pass".to_owned(),
        Decision::Ask(question) => format!("ask {:?}, else {}", question.message, question.otherwise.code),
        Decision::Deny(refusal) => {
            let blockers: Vec<&str> = refusal
                .blockers
                .iter()
                .map(|blocker| blocker.code.as_str())
                .collect();
            format!("deny {} {blockers:?}", refusal.code)
        }
    }
}

fn verdicts(hearing: &Hearing) -> String {
    let verdicts = serde_json::to_value(&hearing.verdicts).unwrap();
    let words = verdicts.as_array().unwrap().iter().map(|verdict| {
        let times = verdict
            .get("times")
            .map(|times| format!("*{times}"))
            .unwrap_or_default();
        format!(
            "{}={}{times}",
            verdict["policy"].as_str().unwrap(),
            verdict["verdict"].as_str().unwrap()
        )
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Judges `a_tool` with `{}`, then its result with a call of `b_tool` inside.
fn judge(members: &[&str]) -> String {
    let chain = Chain::new(members.iter().map(|text| member(text)).collect());
    let mut hearing = Hearing::default();
    let subject = Subject {
        tool: "a_tool",
        place: None,
    };
    let seen = std::cell::RefCell::new(Vec::new());
    let ask = |policy: &String, amended: Option<&str>, _: &[wit::Note]| {
        seen.borrow_mut().push(format!(
            "{}{}",
            policy.split(':').next().unwrap(),
            amended.unwrap_or("")
        ));
        let has = |word: &str| policy.split([':', ' ']).any(|one| one == word);
        let verdict = match () {
            () if has("deny") => Ok(wit::Verdict::Deny(denial(policy))),
            () if has("ask") => Ok(wit::Verdict::Ask(wit::Question {
                message: "May it?".to_owned(),
                otherwise: denial(policy),
            })),
            () if has("amend") => Ok(wit::Verdict::Amend(format!("{}!", amended.unwrap_or("")))),
            () if has("mangle") => Ok(wit::Verdict::Amend("bad".to_owned())),
            () if has("trap") => Err(Cause::Crash),
            () => Ok(wit::Verdict::Pass),
        };
        answer(verdict.map(BoundVerdict::from), policy)
    };
    let accept = |json: &str| {
        if json == "bad" {
            Err("it is bad".to_owned())
        } else {
            Ok(json.to_owned())
        }
    };
    let amended = chain.before(&mut hearing, subject, ask, accept);
    let before = format!(
        "{} {:?} {}",
        told(&hearing.decision()),
        amended,
        verdicts(&hearing)
    );
    let mut after = Hearing::with_notes(hearing.notes);
    chain.after(&mut after, &["a_tool", "b_tool", "b_tool"], |policy, place, _| {
        seen.borrow_mut()
            .push(format!("{}@{place}", policy.split(':').next().unwrap()));
        let has = |word: &str| policy.split([':', ' ']).any(|one| one == word);
        answer(
            if has("deny") {
                Ok(wit::Review::Deny(denial(policy)))
            } else {
                Ok(wit::Review::Pass)
            },
            policy,
        )
    });
    let notes: Vec<&str> = after.notes.iter().map(|note| note.value.as_str()).collect();
    format!(
        "before: {before}\nafter: {} {}\nasked: {}\nnotes: {}",
        told(&after.decision()),
        verdicts(&after),
        seen.take().join(" "),
        notes.join(" ")
    )
}

fn check(members: &[&str], expected: Expect) {
    expected.assert_eq(&judge(members));
}

#[test]
fn all_that_pass_let_it_pass() {
    check(
        &["b:pass", "a:pass request", "c:pass response"],
        expect![[r#"
        before: pass None a=pass b=pass
        after: pass b=pass c=pass
        asked: a b b@0 c@0
        notes: a b b c"#]],
    );
}

#[test]
fn every_denial_is_heard() {
    check(
        &["a:deny request", "b:deny request", "c:ask request"],
        expect![[r#"
            before: deny A ["A", "B"] None a=deny b=deny c=ask
            after: pass 
            asked: a b c
            notes: a b c"#]],
    );
}

#[test]
fn amendments_add_up_and_bad_ones_deny() {
    check(
        &["a:amend request", "b:amend request", "c:pass request"],
        expect![[r#"
            before: pass Some("!!") a=amend b=amend c=pass
            after: pass 
            asked: a b! c!!
            notes: a b c"#]],
    );
    check(
        &["a:amend request", "b:mangle request"],
        expect![[r#"
        before: deny POLICY_FAILED [] Some("!") a=amend b=failed
        after: pass 
        asked: a b!
        notes: a"#]],
    );
}

#[test]
fn those_who_watch_change_nothing() {
    check(
        &[
            "a:deny audit",
            "b:amend audit request",
            "c:trap audit request",
            "d:missing audit",
        ],
        expect![[r#"
            before: pass None a=deny b=amend c=failed d=failed
            after: pass a=deny d=failed
            asked: a b c a@0
            notes: a b a"#]],
    );
}

#[test]
fn failing_denies_unless_it_may_fail_open() {
    check(
        &["a:trap request"],
        expect![[r#"
        before: deny POLICY_FAILED [] None a=failed
        after: pass 
        asked: a
        notes: "#]],
    );
    check(
        &["a:missing request", "b:pass request"],
        expect![[r#"
        before: deny POLICY_FAILED [] None a=failed b=pass
        after: pass 
        asked: b
        notes: b"#]],
    );
    check(
        &["a:trap open request", "b:missing open"],
        expect![[r#"
        before: pass None a=failed b=failed
        after: pass b=failed
        asked: a
        notes: "#]],
    );
}

#[test]
fn a_question_is_put_once_and_only_if_nobody_denies() {
    check(
        &["a:ask request", "b:ask request"],
        expect![[r#"
        before: ask "May it?", else A None a=ask b=ask
        after: pass 
        asked: a b
        notes: a b"#]],
    );
}

#[test]
fn results_are_judged_for_the_calls_inside_too() {
    check(
        &["a:deny response =b_*", "b:pass response", "c:pass =c_*"],
        expect![[r#"
            before: pass None 
            after: deny A ["A", "A"] a=deny*2 b=pass
            asked: a@1 a@2 b@0
            notes: a a b"#]],
    );
}
