//! Comparison of the configuration's protections with those that a server last applied.

use std::collections::BTreeSet;
use std::path::Path;

use tollgate_store::data_dir::DataDir;

use super::Finding;
use crate::config::Config;
use crate::config::protections::{self, Records};

/// Checks for protections that a configuration has lost.
pub fn check(data: &DataDir, path: &Path, config: &Config) -> Vec<Finding> {
    let about = "protections";
    let has = config.protections();
    let records =
        Records::open(data).and_then(|records| Ok((records.of(path)?, records.missing(Some(path), &has)?)));
    let (own, missing) = match records {
        Ok(found) => found,
        Err(err) => return vec![Finding::problem(about, tollgate_core::text::chain(&err))],
    };
    let shown = path.display();
    let missing = missing.map(|missing| {
        let what = format!("{shown} {missing}; `tollgate serve` and `tollgate call` refuse to run with this file");
        Finding::problem(about, what).remedy(
            "add these keys to the file, pass the intended file with --config, or accept the difference: tollgate \
             policies accept --missing",
        )
    });
    let Some(own) = own else {
        return Vec::from_iter(missing);
    };
    let lost = protections::lost(&own.protections, &has);
    let gone = protections::policies(&lost);
    if !gone.is_empty() {
        let what = format!(
            "{shown} no longer has the policies {}; running servers still apply them, and a new server does not start",
            list(gone)
        );
        return vec![
            Finding::problem(about, what)
                .remedy("restore [policies.NAME], or confirm each removal: tollgate policies remove NAME"),
        ];
    }
    if !lost.is_empty() {
        let what = format!("{shown} no longer has {}", protections::describe(&lost));
        return vec![Finding::warning(about, what).remedy(
            "restore these keys, or restart the servers if the removal is intended; running servers keep the keys until SIGHUP",
        )];
    }
    if let Some(missing) = missing {
        return vec![missing];
    }
    vec![Finding::ok(
        about,
        "everything that servers loaded is still configured",
    )]
}

fn list(names: BTreeSet<&str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}
