//! Manifests: parsing those of a registry, and creating those to publish.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::RegistryError;
use crate::text::plain;

/// Media type of a manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of a list of manifests.
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of docker's list of manifests.
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// Media type of a component.
pub(crate) const WASM: &str = "application/wasm";
/// Media type of the description of a component.
pub(crate) const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// Maximum bytes of a manifest.
pub(crate) const MANIFEST_LIMIT: u64 = 1 << 20;
/// Maximum layers of a manifest.
const LAYERS_LIMIT: usize = 64;

/// A piece of content: its type, digest and size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type.
    pub media_type: String,
    /// Digest, as text from the registry.
    pub digest: String,
    /// Size in bytes.
    pub size: u64,
    /// Type of the artifact that a manifest describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Descriptor of bytes.
    pub(crate) fn of(media_type: &str, bytes: &[u8]) -> Descriptor {
        Descriptor {
            media_type: media_type.to_owned(),
            digest: Digest::of(bytes).to_string(),
            size: bytes.len() as u64,
            artifact_type: None,
            annotations: BTreeMap::new(),
        }
    }

    /// Checked digest.
    pub fn digest(&self) -> Result<Digest, RegistryError> {
        let parsed = self.digest.parse();
        parsed.map_err(|why| malformed("a descriptor", why))
    }
}

/// A manifest of a component, or of a signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    schema_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<String>,
    config: Descriptor,
    /// Layers in order.
    pub layers: Vec<Descriptor>,
    /// Annotations, which are untrusted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Manifest {
    /// Creates a manifest to publish.
    pub(crate) fn new(
        config: Descriptor,
        layers: Vec<Descriptor>,
        annotations: BTreeMap<String, String>,
    ) -> Manifest {
        Manifest {
            schema_version: 2,
            media_type: Some(MANIFEST.to_owned()),
            artifact_type: None,
            config,
            layers,
            annotations,
        }
    }

    /// Parses a manifest. If a digest was requested, the caller has checked it.
    pub fn parse(what: &str, bytes: &[u8]) -> Result<Manifest, RegistryError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            media_type: Option<String>,
            manifests: Option<serde::de::IgnoredAny>,
        }
        let unreadable = |err: serde_json::Error| malformed(what, format!("cannot read its manifest: {err}"));
        let head: Head = serde_json::from_slice(bytes).map_err(unreadable)?;
        let media_type = head.media_type.as_deref().unwrap_or(MANIFEST);
        if head.manifests.is_some() || matches!(media_type, INDEX | DOCKER_LIST) {
            let why = "it is a list of manifests for several platforms; select one of them by its digest";
            return Err(malformed(what, why.to_owned()));
        }
        if media_type != MANIFEST {
            return Err(malformed(
                what,
                format!(
                    "its manifest has the media type {}, not {MANIFEST}",
                    plain(media_type)
                ),
            ));
        }
        let manifest: Manifest = serde_json::from_slice(bytes).map_err(unreadable)?;
        if manifest.schema_version != 2 || manifest.layers.len() > LAYERS_LIMIT {
            let why = format!(
                "its manifest is not supported (version: {}, layers: {}); version 2 and at most {LAYERS_LIMIT} layers \
                 are accepted",
                manifest.schema_version,
                manifest.layers.len()
            );
            return Err(malformed(what, why));
        }
        Ok(manifest)
    }

    /// The one layer that is a component, at any position among the layers.
    pub fn component(&self, what: &str) -> Result<&Descriptor, RegistryError> {
        let mut components = self.layers.iter().filter(|layer| layer.media_type == WASM);
        match (components.next(), components.next()) {
            (Some(one), None) => Ok(one),
            (Some(_), Some(_)) => Err(malformed(
                what,
                format!("it has several layers of type {WASM}; only one is accepted"),
            )),
            (None, _) => {
                let types: Vec<String> = self.layers.iter().map(|layer| plain(&layer.media_type)).collect();
                let found = if types.is_empty() {
                    "no layer".to_owned()
                } else {
                    types.join(", ")
                };
                Err(malformed(
                    what,
                    format!("it has no layer of type {WASM}, which a component needs; found: {found}"),
                ))
            }
        }
    }
}

/// A list of manifests.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Index {
    /// Manifests.
    #[serde(default)]
    pub manifests: Vec<Descriptor>,
}

pub(crate) fn malformed(what: &str, why: String) -> RegistryError {
    RegistryError::Malformed {
        what: what.to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(change: impl FnOnce(&mut Value)) -> Result<Descriptor, String> {
        let digest = Digest::of(b"x").to_string();
        let mut manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": { "mediaType": WASM_CONFIG, "digest": digest, "size": 1 },
            "layers": [{ "mediaType": WASM, "digest": digest, "size": 1 }],
        });
        change(&mut manifest);
        let manifest =
            Manifest::parse("it", manifest.to_string().as_bytes()).map_err(|err| err.to_string())?;
        manifest.component("it").cloned().map_err(|err| err.to_string())
    }

    #[test]
    fn only_a_manifest_with_one_component_is_taken() {
        assert!(read(|_| ()).is_ok());
        assert!(read(|it| drop(it.as_object_mut().unwrap().remove("mediaType"))).is_ok());
        let policy = json!({ "mediaType": "text/plain", "digest": "sha256:0", "size": 1 });
        // A layer before the component must not be mistaken for the component.
        assert_eq!(
            read(|it| it["layers"].as_array_mut().unwrap().insert(0, policy.clone()))
                .unwrap()
                .media_type,
            WASM
        );
        for (change, expected) in [
            (json!({ "mediaType": INDEX }), "list of manifests"),
            (json!({ "manifests": [] }), "list of manifests"),
            (json!({ "mediaType": "text/html" }), "media type text/html"),
            (json!({ "schemaVersion": 1 }), "version: 1"),
            (json!({ "layers": [] }), "no layer"),
            (json!({ "layers": [policy] }), "text/plain"),
            (json!({ "layers": 3 }), "cannot read its manifest"),
        ] {
            let err = read(|it| {
                let whole = it.as_object_mut().unwrap();
                change
                    .as_object()
                    .unwrap()
                    .iter()
                    .for_each(|(key, value)| drop(whole.insert(key.clone(), value.clone())));
            });
            let err = err.unwrap_err();
            assert!(err.contains(expected), "{err}");
        }
        let twice = read(|it| {
            let layer = it["layers"][0].clone();
            it["layers"].as_array_mut().unwrap().push(layer);
        });
        assert!(twice.unwrap_err().contains("several layers"));
    }
}
