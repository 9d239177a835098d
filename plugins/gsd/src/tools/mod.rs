//! The tools, grouped by subject, and their shared parts.

pub(crate) mod claim;
pub(crate) mod complete;
pub(crate) mod import;
pub(crate) mod log;
pub(crate) mod milestone;
pub(crate) mod plan;
pub(crate) mod render;
pub(crate) mod reopen;
pub(crate) mod revise;
pub(crate) mod roadmap;
pub(crate) mod show;
pub(crate) mod skip;
pub(crate) mod start;
pub(crate) mod status;

/// Makes a tool of a [`Change`](crate::act::Change). The tool replies with the change, or with what its method `reply`
/// makes of it.
macro_rules! change_tool {
    (@about $name:literal, $title:literal, $tier:ident, $hints:ident $(, alias $alias:literal)?) => {
        const NAME: &'static str = $name;
        const TITLE: &'static str = $title;
        const EFFECT: tollgate_sdk::Effect = tollgate_sdk::Effect::Write;
        const TIER: tollgate_sdk::Tier = tollgate_sdk::Tier::$tier;
        const HINTS: tollgate_sdk::Hints = tollgate_sdk::Hints::$hints;
        const ALIASES: &'static [&'static str] = &[$($alias)?];
    };
    ($tool:ty, $($about:tt)+) => {
        impl tollgate_sdk::Tool for $tool {
            $crate::tools::change_tool!(@about $($about)+);
            type Output = $crate::act::Changed;

            fn run(self, cx: &tollgate_sdk::Cx<'_>) -> Result<$crate::act::Changed, tollgate_sdk::ToolError> {
                $crate::act::change(cx, &self)
            }
        }
    };
    ($tool:ty => $output:ty, $($about:tt)+) => {
        impl tollgate_sdk::Tool for $tool {
            $crate::tools::change_tool!(@about $($about)+);
            type Output = $output;

            fn run(self, cx: &tollgate_sdk::Cx<'_>) -> Result<$output, tollgate_sdk::ToolError> {
                let changed = $crate::act::change(cx, &self)?;
                self.reply(cx, changed)
            }
        }
    };
}
use change_tool;

/// Makes a tool of a type with a method `read`, which changes nothing.
macro_rules! read_tool {
    ($tool:ty => $output:ty, $name:literal, $title:literal) => {
        impl tollgate_sdk::Tool for $tool {
            const NAME: &'static str = $name;
            const TITLE: &'static str = $title;
            const EFFECT: tollgate_sdk::Effect = tollgate_sdk::Effect::Read;
            type Output = $output;

            fn run(self, cx: &tollgate_sdk::Cx<'_>) -> Result<$output, tollgate_sdk::ToolError> {
                self.read(cx)
            }
        }
    };
}
use read_tool;
