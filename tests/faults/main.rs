//! What becomes of the promises when disks fill, writes fail, clocks jump, processes stop and files rot.

mod clock;
mod disk;
mod every_byte;
#[path = "../e2e/harness.rs"]
#[allow(dead_code, reason = "shared with the end-to-end tests, which use more of it")]
mod harness;
mod inject;
mod load;
mod rot;
mod signals;
mod wal;
