//! Protections of the configuration when a server last applied it, compared with those of now.

use std::collections::BTreeSet;
use std::path::Path;

use tollgate_store::data_dir::DataDir;

use super::Finding;
use crate::config::Config;
use crate::config::protections::{self, Records};

/// Looks for protections that are gone from a configuration.
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
        Finding::problem(about, format!("{shown} {missing}; no host works under it"))
            .remedy("use that configuration, or accept this one as it is: tollgate policies accept --missing")
    });
    let Some(own) = own else {
        return Vec::from_iter(missing);
    };
    let lost = protections::lost(&own.protections, &has);
    let gone = protections::policies(&lost);
    if !gone.is_empty() {
        let what = format!(
            "{shown} no longer has the policies {}; servers that run keep them, none starts",
            list(gone)
        );
        return vec![
            Finding::problem(about, what)
                .remedy("put the configuration back, or take them away: tollgate policies remove NAME"),
        ];
    }
    if !lost.is_empty() {
        let what = format!("{shown} no longer has {}", protections::describe(&lost));
        return vec![Finding::warning(about, what).remedy(
            "servers that run keep it until SIGHUP; put it back, or start them anew if that is meant",
        )];
    }
    if let Some(missing) = missing {
        return vec![missing];
    }
    vec![Finding::ok(about, "what servers took over is still configured")]
}

fn list(names: BTreeSet<&str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}
