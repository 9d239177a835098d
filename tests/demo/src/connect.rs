//! How a reader connects a client of their own.

use std::path::Path;

use serde_json::json;

/// What to type or write for the usual clients.
pub(crate) fn instructions(executable: &Path) -> String {
    let executable = executable.display().to_string();
    let quoted = json!(executable);
    format!(
        r#"
Claude Code:
    claude mcp add --transport stdio tollgate -- {executable} serve

or, for everybody who works on a project, in its .mcp.json:
    {{
      "mcpServers": {{
        "tollgate": {{ "type": "stdio", "command": {quoted}, "args": ["serve"], "env": {{}} }}
      }}
    }}

Cursor: the same in .cursor/mcp.json.

Without any client:
    {executable} call task_list

Data goes to your data directory unless --data-dir says otherwise.
"#
    )
}
