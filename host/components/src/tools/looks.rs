//! Scans of the work tree that a tool requests: `x-looks` at the root of its input schema.

use serde::Deserialize;
use serde_json::Value;
use tollgate_core::effect::Effect;

use super::spec::ToolSpec;

/// Key of a schema that requests a scan of the work tree.
const LOOKS: &str = "x-looks";

/// Setting of a pack under which the host scans the work tree before a call of the tool. The setting of a single
/// workspace, `workspaces.NAME.SETTING`, overrides the general one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Looks {
    /// Key in the configuration.
    setting: String,
    /// Value that turns the scan on.
    is: String,
}

impl Looks {
    /// Removes a tool's declaration from its schema and returns it.
    pub(super) fn take(spec: &mut ToolSpec) -> Result<Option<Looks>, String> {
        let declared = spec.input_schema.remove(LOOKS);
        declared.map(|looks| Looks::read(looks, spec.effect)).transpose()
    }

    fn read(looks: Value, effect: Effect) -> Result<Looks, String> {
        match serde_json::from_value(looks) {
            Ok(looks) if effect == Effect::Write => Ok(looks),
            _ => Err(format!(
                "{LOOKS} must be {{\"setting\": KEY, \"is\": VALUE}}, and only in a `write` tool"
            )),
        }
    }

    /// Returns whether a configuration, as JSON, requests scans of the work tree of a workspace.
    pub fn apply(&self, config: &str, workspace: &str) -> bool {
        let Ok(config) = serde_json::from_str::<Value>(config) else {
            return false;
        };
        let own = &config["workspaces"][workspace][&self.setting];
        let general = &config[&self.setting];
        let set = if own.is_null() { general } else { own };
        set.as_str() == Some(self.is.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_workspace_asks_for_itself() {
        let declared = json!({"setting": "evidence", "is": "required"});
        let looks = Looks::read(declared.clone(), Effect::Write).unwrap();
        for (config, one, other) in [
            ("", false, false),
            ("{}", false, false),
            (r#"{"evidence": "required"}"#, true, true),
            (r#"{"evidence": "optional"}"#, false, false),
            (
                r#"{"workspaces": {"one": {"evidence": "required"}}}"#,
                true,
                false,
            ),
            (
                r#"{"evidence": "required", "workspaces": {"one": {"evidence": "optional"}, "other": {}}}"#,
                false,
                true,
            ),
        ] {
            let found = ["one", "other"].map(|workspace| looks.apply(config, workspace));
            assert_eq!(found, [one, other], "{config}");
        }
        assert!(Looks::read(declared, Effect::Read).is_err());
        assert!(Looks::read(json!(true), Effect::Write).is_err());
    }
}
