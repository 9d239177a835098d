//! Packs and policies in Debian's `docker-registry`, over TLS, exchanged with `wkg`. `cargo xtask registries` runs
//! these tests.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

mod credentials;
mod docker;
#[allow(dead_code, reason = "the end-to-end tests use all of it")]
#[path = "../e2e/harness.rs"]
mod harness;
mod packs;
mod policies;
mod signatures;
mod wkg;

use std::path::PathBuf;
use std::process::{Command, Output};

use docker::{Docker, PASSWORD, USER};
use harness::{Place, guest};
use serde_json::Value;

/// Media type of a manifest.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Somebody who uses a registry: an author, or a host.
struct Party {
    place: Place,
    ca: PathBuf,
}

impl Party {
    /// A party that may read and write in the registry.
    fn with(registry: &Docker, config: &str) -> Party {
        let login = format!(
            "[registries.{:?}]\nuser = {USER:?}\npassword_env = \"REGISTRY_PASSWORD\"\n",
            registry.host
        );
        Party {
            place: Place::with(&format!("{login}{config}")),
            ca: registry.ca(),
        }
    }

    /// A party that trusts what a key signs, and nothing else.
    fn trusting(registry: &Docker, public_key: &str) -> Party {
        let party = Party::with(
            registry,
            "[trust]\nunsigned = \"refuse\"\n[trust.signers.team]\nkey = \"team.pub\"\n",
        );
        std::fs::write(party.place.path().join("team.pub"), public_key).unwrap();
        party
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command
            .env("SSL_CERT_FILE", &self.ca)
            .env("DOCKER_CONFIG", self.place.path().join("docker"))
            .env("REGISTRY_PASSWORD", PASSWORD);
        command
    }

    /// Text of a command that must succeed.
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        said(&output)
    }

    /// JSON of a command that must succeed.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(&[&["--json"], arguments].concat()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Text of a command that must fail without a change of the configuration.
    fn refused(&self, arguments: &[&str]) -> String {
        let before = self.config();
        let output = self.command(arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}: {}", said(&output));
        assert_eq!(self.config(), before, "{arguments:?}");
        said(&output)
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.place.config()).unwrap()
    }

    /// A file of the party.
    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.place.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Publishes a component, signed if there is a key, and returns the pinned reference.
    fn publish(&self, component: &[u8], reference: &str, flags: &[&str]) -> String {
        let file = self.file("component.wasm", component);
        let publish = ["packs", "publish", &file, reference];
        let published = self.json(&[&publish, flags].concat());
        published["published"].as_str().unwrap().to_owned()
    }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Bytes of the pack of these tests.
fn pack() -> Vec<u8> {
    std::fs::read(guest("sql-access")).unwrap()
}

/// The same component with other words of the same length.
fn reworded(component: &[u8], old: &str, new: &str) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let mut bytes = component.to_vec();
    let places: Vec<usize> = (0..=bytes.len() - old.len())
        .filter(|&at| bytes[at..].starts_with(old.as_bytes()))
        .collect();
    assert!(!places.is_empty(), "{old}");
    for at in places {
        bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
    }
    bytes
}

/// A key pair: private and public, in PEM.
fn keys() -> (String, String) {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    (pair.serialize_pem(), pair.public_key_pem())
}
