//! Policy whose `describe` never returns.

use tollgate_sdk::guest::policy::bindings::exports::tollgate::host::judge::{
    Guest, Manifest, Note, Outcome, Problem, Request, Review, Verdict,
};
use tollgate_sdk::guest::policy::export_component;

struct DescribeHang;
export_component!(DescribeHang);

impl Guest for DescribeHang {
    fn describe() -> Manifest {
        let mut count = 0_u64;
        loop {
            count = std::hint::black_box(count.wrapping_add(1));
        }
    }

    guests::passes!();
}
