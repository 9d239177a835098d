//! Traps during instantiation.

use tollgate_sdk::{Pack, tools};

guests::hello!("start_trap_hello");

#[allow(unsafe_code, reason = "what runs at start is found by its section")]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = trap;

extern "C" fn trap() {
    std::process::abort();
}

const PACK: Pack = Pack {
    name: "start-trap",
    version: "0.1.0",
    summary: "Traps at start.",
    tools: tools![Hello],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
