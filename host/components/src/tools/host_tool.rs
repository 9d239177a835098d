//! The host's own tools as the catalog knows them: names, definitions and kinds. The gate runs them.

use super::spec::ToolSpec;

/// Pack name of the host's tools.
pub const PACK: &str = "core";

/// One of the host's own tools.
#[derive(Debug, Clone, Copy)]
pub struct HostTool {
    /// Name of the tool.
    pub name: &'static str,
    /// Definition of the tool.
    pub spec: fn() -> ToolSpec,
    /// True if it finds or calls other tools. Such tools are enabled whenever some tools are not listed.
    pub discovers: bool,
    /// True if a pack may name the tool to list values of an argument: it reads, and shows its caller nothing new.
    pub lists_values: bool,
}

/// All of the host's own tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostTools(pub &'static [HostTool]);

impl HostTools {
    /// Tool with a name.
    pub fn get(self, name: &str) -> Option<&'static HostTool> {
        self.0.iter().find(|tool| tool.name == name)
    }

    /// Discovery tools, which find and call others.
    pub fn discovery(self) -> impl Iterator<Item = &'static HostTool> {
        self.0.iter().filter(|tool| tool.discovers)
    }

    /// Tools other than discovery tools.
    pub fn ordinary(self) -> impl Iterator<Item = &'static HostTool> {
        self.0.iter().filter(|tool| !tool.discovers)
    }

    /// Names of the tools that a pack may name to list values.
    pub fn listing(self) -> impl Iterator<Item = &'static str> {
        self.0
            .iter()
            .filter(|tool| tool.lists_values)
            .map(|tool| tool.name)
    }
}
