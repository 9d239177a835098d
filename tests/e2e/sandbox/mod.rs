//! Sandbox of components: isolation, time limits, SQL, programs, Git and workspaces.

mod cancellation;
mod git;
mod hostile_guests;
mod isolation;
mod programs;
mod sql_limits;
mod wait_deadlines;
mod workspaces;
