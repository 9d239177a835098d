//! Checks of the schemas of a pack's tools.

use super::entry::compiled;
use crate::packs::{LoadError, Pack};
use crate::tools::{HostTools, Values, declared, headers, task_mode, values, views};

/// Checks that every input schema can be compiled into a validator. For built-in packs a test checks this.
pub(super) fn check_schemas(pack: &Pack, host_tools: HostTools) -> Result<(), LoadError> {
    let is_builtin = pack.is_builtin();
    let mut problems = Vec::new();
    for spec in &pack.manifest.tools {
        if !is_builtin && let Err(err) = compiled(&spec.input_schema) {
            problems.push(format!(
                "tool {}: its input schema is not valid JSON Schema: {err}",
                spec.name
            ));
        }
        let faults = headers::faults(&spec.input_schema).into_iter();
        problems.extend(faults.map(|fault| format!("tool {}: {fault}", spec.name)));
        let mut rest = spec.clone();
        let task = task_mode::take(&mut rest.input_schema, spec.effect).err();
        problems.extend(task.map(|fault| format!("tool {}: {fault}", spec.name)));
        match declared::take(&pack.manifest.name, &mut rest) {
            Ok(declared) => {
                let view = declared.view.as_ref();
                let opened =
                    view.map(|view| views::check_opens(&pack.manifest.name, &pack.manifest.tools, view));
                problems.extend(
                    opened
                        .and_then(Result::err)
                        .map(|why| format!("tool {}: {why}", spec.name)),
                );
                let bad = |values: &Values| match values {
                    Values::Listed(source) => {
                        values::check_source(&pack.manifest.tools, host_tools, source).err()
                    }
                    Values::Words(_) => None,
                };
                let bad = declared
                    .values
                    .iter()
                    .filter_map(|(name, values)| Some((name, bad(values)?)));
                problems.extend(bad.map(|(name, why)| format!("tool {}: argument {name}: {why}", spec.name)));
            }
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(LoadError::new(&pack.manifest.name, &pack.origin, problems))
    }
}
