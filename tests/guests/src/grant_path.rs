//! Requests a program by its path.

use tollgate_sdk::{Pack, Want, tools};

guests::hello!("grant_path_hello");

const PACK: Pack = Pack {
    name: "grant-path",
    version: "0.1.0",
    summary: "Wants a path.",
    wants: &[Want::Process("/bin/sh")],
    tools: tools![Hello],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
