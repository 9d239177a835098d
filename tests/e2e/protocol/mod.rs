//! Features of MCP: listing and arguments of tools, resources, elicitation, and tasks.

mod arguments;
mod compact_tool_list;
mod mcp_tasks;
mod policy_elicitation;
mod resources;
mod tool_elicitation;
mod tool_list;
