//! Life cycle of a policy: published like a pack, added, evaluating calls, and updated.

use serde_json::json;

use super::docker::Docker;
use super::harness::policy_component;
use super::{Party, keys, reworded};

#[test]
fn a_signed_policy_is_published_added_and_updated() {
    let registry = Docker::start();
    let (private, public) = keys();
    let author = Party::with(&registry, "");
    let key = author.file("key.pem", private.as_bytes());
    let to = |tag: &str| format!("oci://{}/team/require-owner:{tag}", registry.host);
    // Nobody else's component has the name of a built-in policy.
    let built_in = std::fs::read(policy_component("require-actor")).unwrap();
    let old = reworded(&built_in, "require-actor", "require-owner");
    author.publish(&old, &to("1.0.0"), &["--sign-key", &key]);
    let host = Party::trusting(&registry, &public);
    let inspected = host.json(&["packs", "inspect", &to("1.0.0")]);
    assert_eq!(
        inspected["registry"]["signature"]["accepted"], true,
        "{inspected:#}"
    );
    host.ok(&["policies", "check", &to("1.0.0")]);
    let opens = |arguments| host.place.call("envelope_open", &arguments).1["error"]["code"].clone();
    assert_eq!(opens(json!({})), json!(null));
    host.ok(&["policies", "add", &to("1.0.0")]);
    assert_eq!(opens(json!({})), "ACTOR_REQUIRED");
    assert_eq!(opens(json!({"actor": "ada"})), json!(null));
    let new = reworded(&old, "the call has no actor", "the call has NO actor");
    let second = author.publish(&new, &to("1.1.0"), &["--sign-key", &key]);
    let outdated = host.ok(&["packs", "outdated"]);
    assert!(
        outdated.contains("policy") && outdated.contains("1.1.0"),
        "{outdated}"
    );
    host.ok(&["policies", "update", "require-owner", "--yes"]);
    assert!(
        host.config().contains(&format!("source = {second:?}")),
        "{}",
        host.config()
    );
    let refusal = host.place.call("envelope_open", &json!({})).1;
    assert!(
        refusal["error"].to_string().contains("the call has NO actor"),
        "{refusal:#}"
    );
}
