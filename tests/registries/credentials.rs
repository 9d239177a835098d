//! Logins and certificates: without valid ones, access is refused with the reason.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::docker::{Docker, PASSWORD, USER};
use super::harness::Place;
use super::{Party, pack, said};

/// A party without a login in its configuration, and with one in docker's, if it has one.
fn party(registry: &Docker, login: Option<&str>) -> Party {
    let party = Party {
        place: Place::new(),
        ca: registry.ca(),
    };
    if let Some(login) = login {
        let folder = party.place.path().join("docker");
        std::fs::create_dir(&folder).unwrap();
        let auth = json!({ "auths": { &registry.host: { "auth": STANDARD.encode(login) } } });
        std::fs::write(folder.join("config.json"), auth.to_string()).unwrap();
    }
    party
}

#[test]
fn wrong_logins_are_refused_for_reading_and_writing() {
    let registry = Docker::start();
    let to = format!("oci://{}/sql-access:1.0.0", registry.host);
    let right = party(&registry, Some(&format!("{USER}:{PASSWORD}")));
    right.publish(&pack(), &to, &[]);
    let none = party(&registry, None);
    let wrong = party(&registry, Some("ada:wrong"));
    let unknown = party(&registry, Some(&format!("eve:{PASSWORD}")));
    let with = |party: &Party, how: &str| {
        let file = party.file("component.wasm", &pack());
        for command in [
            ["packs", "add", &to].as_slice(),
            &["packs", "inspect", &to],
            &["packs", "publish", &file, &format!("{to}-new")],
        ] {
            let refused = party.refused(command);
            assert!(
                refused.contains("refuses access") && refused.contains(how),
                "{refused}"
            );
            assert!(
                !refused.contains(PASSWORD) && !refused.contains("wrong"),
                "{refused}"
            );
        }
    };
    with(&none, "without credentials");
    with(&wrong, "as ada");
    with(&unknown, "as eve");
    // The variable that the configuration names goes before docker's.
    let config = format!(
        "[registries.{:?}]\nuser = {USER:?}\npassword_env = \"REGISTRY_PASSWORD\"\n",
        registry.host
    );
    std::fs::write(wrong.place.config(), config).unwrap();
    wrong.ok(&["packs", "add", &to]);
    right.ok(&["packs", "add", &to]);
}

#[test]
fn a_registry_that_nobody_vouches_for_is_not_used() {
    let registry = Docker::start();
    let to = format!("oci://{}/sql-access:1.0.0", registry.host);
    Party::with(&registry, "").publish(&pack(), &to, &[]);
    let host = Party::with(&registry, "");
    // The system's certificates do not know the CA.
    let mut add = host.command(&["packs", "add", &to]);
    let output = add.env_remove("SSL_CERT_FILE").output().unwrap();
    let refused = said(&output);
    assert!(
        !output.status.success() && refused.contains("cannot reach"),
        "{refused}"
    );
    assert!(refused.contains("set SSL_CERT_FILE to a PEM file"), "{refused}");
    // The certificate is for another name.
    let by_number = to.replace("localhost", "127.0.0.1");
    let refused = host.refused(&["packs", "add", &by_number]);
    assert!(refused.to_lowercase().contains("certificate"), "{refused}");
    // No login leaves in plain text.
    let plain = format!("[registries.{:?}]\nplain_http = true\n", registry.host);
    let unencrypted = Party {
        place: Place::with(&plain),
        ca: registry.ca(),
    };
    let refused = unencrypted.refused(&["packs", "add", &to]);
    assert!(refused.contains("returned 400"), "{refused}");
}
