//! Findings about the data directory: its owner, its free disk space, and other hosts on it.

use tollgate_core::text::counted;
use tollgate_store::data_dir::DataDir;
use tollgate_store::liveness::Host;

use super::{Finding, mib};

/// Free space below which a busy host may stop within a day.
const LOW_SPACE_BYTES: u64 = 1 << 30;
/// Free space below which writes will soon fail.
const CRITICAL_SPACE_BYTES: u64 = 64 << 20;
/// Size above which a cache mostly contains unused code.
const LARGE_CACHE: u64 = 1 << 30;

/// Checks the directory, and which other hosts use it.
pub fn check(data: &DataDir, new_host_id: String) -> Vec<Finding> {
    let mut found = vec![rights(data), space(data), cache(data)];
    found.push(match Host::join(data, new_host_id) {
        Err(err) => Finding::problem("hosts", tollgate_core::text::chain(&err)),
        Ok(host) => match host.others_alive() {
            Err(err) => Finding::problem("hosts", err.to_string()),
            Ok(others) if others.is_empty() => Finding::ok("hosts", "no other host uses this directory"),
            Ok(others) => Finding::ok(
                "hosts",
                format!(
                    "this directory is also used by {}: {}",
                    counted(others.len(), "other host"),
                    others.join(", ")
                ),
            ),
        },
    });
    found
}

fn rights(data: &DataDir) -> Finding {
    let path = data.path().display();
    match data.exposed_entries() {
        Err(err) => Finding::problem("data directory", format!("{path} cannot be listed: {err}")),
        Ok(exposed) if exposed.is_empty() => {
            Finding::ok("data directory", format!("only you can access {path}"))
        }
        Ok(exposed) => Finding::problem(
            "data directory",
            format!("other users can access parts of {path}: {}", exposed.join(", ")),
        )
        .remedy(format!("chown -R $USER {path}; chmod -R go-rwx {path}")),
    }
}

fn space(data: &DataDir) -> Finding {
    match data.free_bytes() {
        Err(err) => Finding::problem("disk", format!("cannot determine the free space: {err}")),
        Ok(free) if free < CRITICAL_SPACE_BYTES => {
            Finding::problem("disk", format!("{} of free space", mib(free)))
                .remedy("free space, or move data_dir; calls that write are refused when it is full")
        }
        Ok(free) if free < LOW_SPACE_BYTES => {
            Finding::warning("disk", format!("{} of free space", mib(free)))
                .remedy("free space, or move data_dir")
        }
        Ok(free) => Finding::ok("disk", format!("{} of free space", mib(free))),
    }
}

fn cache(data: &DataDir) -> Finding {
    match data.usage("cache") {
        Err(err) => Finding::problem("cache", err.to_string())
            .remedy("remove the directory `cache` in the data directory; tollgate creates a new one"),
        Ok((files, bytes)) if bytes > LARGE_CACHE => Finding::warning(
            "cache",
            format!("{}, {}", counted(files, "compiled component"), mib(bytes)),
        )
        .remedy(
            "remove the directory `cache` in the data directory; components are compiled again when needed",
        ),
        Ok((files, bytes)) => Finding::ok(
            "cache",
            format!("{}, {}", counted(files, "compiled component"), mib(bytes)),
        ),
    }
}
