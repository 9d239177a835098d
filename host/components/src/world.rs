//! WIT worlds of components.

/// WIT world that a component is loaded into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// The component offers tools.
    ToolPack,
    /// The component judges calls.
    Policy,
}

impl World {
    /// Interface that it exports.
    pub(crate) const fn export(self) -> &'static str {
        match self {
            World::ToolPack => "pack",
            World::Policy => "judge",
        }
    }

    /// Name in the WIT package.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            World::ToolPack => "tool-pack",
            World::Policy => "policy",
        }
    }

    /// Configuration table of such components.
    pub(crate) const fn table(self) -> &'static str {
        match self {
            World::ToolPack => "packs",
            World::Policy => "policies",
        }
    }

    /// The opposite world.
    pub(crate) const fn other(self) -> World {
        match self {
            World::ToolPack => World::Policy,
            World::Policy => World::ToolPack,
        }
    }
}
