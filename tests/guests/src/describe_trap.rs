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

    guests::passes!();
}
