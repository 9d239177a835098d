//! Random operations over several plans and tasks, by two callers, against a model of its own: accepted and
//! refused as the model says, no state that breaks a rule, undo and redo to the byte, and next calls that work.
//!
//! A few thousand operations run always. With the environment variable `TOLLGATE_LONG`, 50,000 run.

mod journal;
mod propose;
mod rules;
mod run;

use run::Run;

/// Operations of one run, after which it starts anew.
const LENGTH: u64 = 120;

#[test]
fn no_operation_leads_to_a_state_that_breaks_a_rule() {
    let runs = match std::env::var_os("TOLLGATE_LONG") {
        Some(_) => 420,
        None => 25,
    };
    let mut accepted = 0;
    let mut reverted = 0;
    for seed in 1..=runs {
        let mut run = Run::new(seed);
        for _ in 0..LENGTH {
            run.step();
        }
        accepted += run.accepted;
        reverted += run.reverted;
    }
    assert!(
        accepted > runs * LENGTH / 3,
        "only {accepted} operations were accepted"
    );
    assert!(
        reverted > runs * LENGTH / 20,
        "only {reverted} were undone or redone"
    );
}
