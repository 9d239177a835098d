//! Policy whose `describe` traps.

use tollgate_sdk::guest::policy::bindings::exports::tollgate::host::judge::{
    Guest, Manifest, Note, Outcome, Problem, Request, Review, Verdict,
};
use tollgate_sdk::guest::policy::export_component;

struct DescribeTrap;
export_component!(DescribeTrap);

impl Guest for DescribeTrap {
    fn describe() -> Manifest {
        panic!("it says nothing of itself")
    }

    fn configure(_settings: String) -> Result<(), Vec<Problem>> {
        Ok(())
    }

    fn before_call(_request: Request) -> Result<(Verdict, Vec<Note>), String> {
        Ok((Verdict::Pass, Vec::new()))
    }

    fn after_call(_request: Request, _outcome: Outcome) -> Result<(Review, Vec<Note>), String> {
        Ok((Review::Pass, Vec::new()))
    }
}
