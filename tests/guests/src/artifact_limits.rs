//! Keeps artifacts of any size and number, in failing calls and in read calls, and looks for artifacts of others.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{ArtifactKind, Cx, Effect, Pack, Tool, ToolError, Want, tools};

/// Artifacts to keep, and the end of the call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    /// Size in bytes of each artifact to keep.
    sizes: Vec<usize>,
    /// Keep diffs instead of logs. Default false.
    #[serde(default)]
    diff: bool,
    /// Fail at the end of the call. Default false.
    #[serde(default)]
    fail: bool,
    /// Trap at the end of the call. Default false.
    #[serde(default)]
    trap: bool,
}

impl Keep {
    /// Returns the result for each artifact: an id, `nothing`, or the error.
    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let kind = if self.diff {
            ArtifactKind::Diff
        } else {
            ArtifactKind::Log
        };
        let said = self.sizes.iter().enumerate().map(|(place, &size)| {
            let letter = u8::try_from(place).unwrap_or_default().wrapping_add(b'a');
            match cx.keep_artifact(kind, &vec![letter; size]) {
                Ok(Some(id)) => id,
                Ok(None) => "nothing".to_owned(),
                Err(err) => err.to_string(),
            }
        });
        let said = said.collect::<Vec<_>>().join("\n");
        assert!(!self.trap, "asked to trap");
        if self.fail {
            return Err(ToolError::new("ASKED_TO_FAIL", said));
        }
        Ok(Done::new(said))
    }
}

macro_rules! keeper {
    ($tool:ident, $name:literal, $effect:ident) => {
        /// Keep artifacts of the given sizes.
        #[derive(Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $tool(Keep);

        impl Tool for $tool {
            const NAME: &'static str = $name;
            const TITLE: &'static str = "Keep";
            const EFFECT: Effect = Effect::$effect;
            type Output = Done;

            fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
                self.0.run(cx)
            }
        }
    };
}

keeper!(Writes, "artifact_limits_write", Write);
keeper!(Reads, "artifact_limits_read", Read);
keeper!(Runs, "artifact_limits_run", Run);

/// Run SQL on tables of the host.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Look {
    /// Statement to run on the tables.
    sql: String,
}

impl Tool for Look {
    const NAME: &'static str = "artifact_limits_sql";
    const TITLE: &'static str = "Look";
    const EFFECT: Effect = Effect::Write;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        Ok(Done::new(match cx.db.execute(&self.sql, &[]) {
            Ok(changed) => format!("{changed} changed"),
            Err(err) => err.to_string(),
        }))
    }
}

const PACK: Pack = Pack {
    name: "artifact-limits",
    version: "0.1.0",
    summary: "Keeps too much.",
    wants: &[Want::Artifacts],
    tools: tools![Writes, Reads, Runs, Look],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
