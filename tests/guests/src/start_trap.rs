//! Traps during instantiation.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Pack, Tool, ToolError, tools};

/// Say hello.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hello {}

impl Tool for Hello {
    const NAME: &'static str = "start_trap_hello";
    const TITLE: &'static str = "Hello";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, _cx: &Cx<'_>) -> Result<Done, ToolError> {
        Ok(Done::new("hello"))
    }
}

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
