//! Instructions for setting up a real server after the demo.

use std::path::Path;

/// Commands that install the program and connect the usual clients.
pub(crate) fn instructions(executable: &Path) -> String {
    let executable = executable.display();
    format!(
        r#"
The demo ran a debug build. Build the one to keep, which is quicker and one file:
    cargo xtask build --release     # target/release/tollgate; put it on your PATH

Add it to a client, for example Claude Code:
    tollgate clients add claude-code     # `tollgate clients add --help` lists the clients

Try a tool without any client:
    {executable} call task_list

Data goes to your data directory unless --data-dir says otherwise.
docs/tutorial.md takes ten minutes, and ends with an agent that is stopped.
"#
    )
}
