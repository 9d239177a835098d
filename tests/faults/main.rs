//! Promises of hosts during faults: full disks, failing writes, clock jumps, stopped processes and bit rot.

mod clock;
mod disk;
mod every_byte;
#[path = "../e2e/harness.rs"]
#[allow(dead_code, reason = "shared with the end-to-end tests, which use more of it")]
mod harness;
mod inject;
mod load;
mod rot;
mod share;
mod signals;
mod wal;
