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
        Finding::problem(about, format!("{shown} {missing}; no host starts with it"))
            .remedy("use that configuration, or accept this one as it is: tollgate policies accept --missing")
    });
    let Some(own) = own else {
        return Vec::from_iter(missing);
    };
    let lost = protections::lost(&own.protections, &has);
    let gone = protections::policies(&lost);
    if !gone.is_empty() {
        let what = format!(
            "{shown} no longer has the policies {}; running servers keep them, and no server starts",
            list(gone)
        );
        return vec![
            Finding::problem(about, what)
                .remedy("put the configuration back, or remove them: tollgate policies remove NAME"),
        ];
    }
    if !lost.is_empty() {
        let what = format!("{shown} no longer has {}", protections::describe(&lost));
        return vec![Finding::warning(about, what).remedy(
            "running servers keep it until SIGHUP; put it back, or restart them if that is intended",
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
