//! Every bounded view of random plans at every budget.
//!
//! The tool renders a view once. The view is then shrunk to each budget. Budgets above the view's size change
//! nothing, so a few thousand budgets cover all of them.

use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::Tool;
use tollgate_sdk::native::Session;

use super::{Bounded, View, shrink};
use crate::tools::context::Context;
use crate::tools::next::Next;
use crate::tools::resume::ResumePack;
use crate::tools::views::{ContextPack, Delta, HandoffTool, Radar};

/// Largest budget that the test tries.
const MAX_TRIED_BYTES: usize = 20_000;

/// Access to the view inside a tool's reply.
trait Viewed {
    type View: View;
}

impl<T: View> Viewed for Bounded<T> {
    type View = T;
}

/// Text that needs many bytes: letters, quotes, control characters and characters of two to four bytes.
fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-z \"\\\\\n\täß漢字🦀\u{301}\u{200d}]{1,40}")
        .unwrap()
        .prop_flat_map(|seed| (Just(seed), 1..30_usize))
        .prop_map(|(seed, times)| format!("x{}", seed.repeat(times)).chars().take(480).collect())
}

fn plan(texts: &[String]) -> Session {
    let session = Session::new(&crate::PACK);
    let text = |place: usize| &texts[place % texts.len()];
    let call = |tool: &str, mut arguments: Json| {
        arguments["workspace"] = json!("w");
        let reply = session.call(tool, &arguments.to_string()).unwrap();
        serde_json::from_str::<Json>(&reply.structured).unwrap()
    };
    let steps: Vec<Json> = (0..texts.len())
        .map(|place| json!({"title": text(place), "success_criteria": [text(place + 1)], "tests": [text(place + 2)]}))
        .collect();
    let made = json!({"plan_title": text(0), "task_title": text(1), "description": text(2), "steps": steps});
    call("tasks_bootstrap", made);
    for place in 0..texts.len() {
        let task = json!({"plan": "PLAN-001", "title": text(place), "depends_on": ["TASK-001"]});
        call("tasks_create", task);
        let note = json!({"task": "TASK-001", "note": text(place), "decision": place % 2 == 0});
        call("tasks_note", note);
        let path = format!("s:{place}");
        if place % 3 == 0 {
            let block = json!({"task": "TASK-001", "path": path, "reason": text(place)});
            call("tasks_block", block);
        } else {
            let item = json!({"kind": "cmd_output", "title": text(place), "body": text(place + 1)});
            let evidence = json!({"task": "TASK-001", "path": path, "items": [item]});
            call("tasks_evidence_capture", evidence);
        }
    }
    session
}

/// Checks that a view keeps to every budget and reports its cuts.
fn holds<T: Tool>(session: &Session, target: Option<&str>)
where
    T::Output: Viewed,
{
    let mut arguments = json!({"workspace": "w", "max_chars": 500_000});
    if let Some(target) = target {
        arguments["task"] = json!(target);
    }
    let reply = session.call(T::NAME, &arguments.to_string()).unwrap();
    let mut whole: Map<String, Json> = serde_json::from_str(&reply.structured).unwrap();
    let budget = whole.shift_remove("budget").unwrap();
    assert_eq!(budget["truncated"], false, "{}", T::NAME);
    let size = Json::Object(whole.clone()).to_string().len();
    assert_eq!(budget["used_chars"], size, "{}", T::NAME);
    // Every budget below the size, and the first that the whole view fits. Usually a share of them, from the
    // whole view on down, whose size differs in every run.
    let step = 8 / tollgate_kit_test::cases(8) as usize;
    for max in (2..=size.min(MAX_TRIED_BYTES)).rev().step_by(step) {
        let mut view = whole.clone();
        let (used, warnings) = shrink::<<T::Output as Viewed>::View>(&mut view, max);
        let text = serde_json::to_string(&view).unwrap();
        assert!(text.len() <= max, "{} at {max} has {}", T::NAME, text.len());
        assert_eq!(used, text.len(), "{} at {max}", T::NAME);
        assert_eq!(warnings.is_empty(), view == whole, "{} at {max}", T::NAME);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_view_passes_any_budget(texts in proptest::collection::vec(text(), 3..9)) {
        let session = plan(&texts);
        for target in [Some("TASK-001"), Some("PLAN-001")] {
            holds::<Radar>(&session, target);
            holds::<HandoffTool>(&session, target);
            holds::<Delta>(&session, target);
            holds::<ContextPack>(&session, target);
            holds::<ResumePack>(&session, target);
        }
        holds::<Delta>(&session, None);
        holds::<Context>(&session, None);
        holds::<Next>(&session, None);
    }
}

#[test]
fn no_more_goes_than_has_to() {
    let entries = || vec![json!("aaaa"); 3];
    // An entry has six bytes and a comma, the last one none.
    for (excess, left) in [(1, 2), (7, 2), (8, 1), (14, 1), (15, 0), (20, 0)] {
        let mut some = entries();
        assert!(super::shorten(&mut some, excess));
        assert_eq!(some.len(), left, "{excess}");
    }
    assert!(!super::shorten(&mut entries(), 21));
}
