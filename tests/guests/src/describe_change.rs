//! Policy whose `describe` returns something else each time.

use std::hash::{BuildHasher, RandomState};

use tollgate_sdk::guest::policy::bindings::exports::tollgate::host::judge::{
    Guest, Manifest, Note, Outcome, Phase, Problem, Request, Review, Verdict,
};
use tollgate_sdk::guest::policy::export_component;

struct DescribeChange;
export_component!(DescribeChange);

impl Guest for DescribeChange {
    fn describe() -> Manifest {
        Manifest {
            name: "describe-change".to_owned(),
            version: RandomState::new().hash_one(0).to_string(),
            summary: "Says something else each time.".to_owned(),
            phase: Phase::Both,
            wants: Vec::new(),
            migrations: Vec::new(),
            config_schema: None,
        }
    }

    guests::passes!();
}
