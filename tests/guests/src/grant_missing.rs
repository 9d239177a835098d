//! Requests capabilities that are not granted.

use tollgate_sdk::{Pack, Want, tools};

guests::hello!("grant_missing_hello");

const PACK: Pack = Pack {
    name: "grant-missing",
    version: "0.1.0",
    summary: "Wants too much.",
    wants: &[Want::Process("cargo"), Want::LedgerQuery, Want::Artifacts],
    tools: tools![Hello],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
