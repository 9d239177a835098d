//! Publishing a component in the CNCF's layout, with a signature if there is a key.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::annotations::{
    DESCRIPTION, GRANTS, KIND, LICENSES, SETTINGS, SETTINGS_LIMIT, SOURCE, TITLE, VERSION,
};
use crate::client::Client;
use crate::digest::Digest;
use crate::error::RegistryError;
use crate::manifest::{Descriptor, Manifest, WASM, WASM_CONFIG, malformed};
use crate::reference::Reference;
use crate::signature::sign::SigningKey;

/// A component to publish.
#[derive(Debug, Clone, Default)]
pub struct Publication {
    /// `pack` or `policy`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// One line about it.
    pub description: String,
    /// Interfaces that it exports.
    pub exports: Vec<String>,
    /// Interfaces that it imports.
    pub imports: Vec<String>,
    /// Lines of the requested grants.
    pub grants: Vec<String>,
    /// Settings that its publisher suggests.
    pub settings: Option<Value>,
    /// Licence, as an SPDX expression.
    pub licence: Option<String>,
    /// Address of its source.
    pub source: Option<String>,
    /// Time of the build, in RFC 3339.
    pub created: String,
    /// Replace the tag's content.
    pub overwrite: bool,
}

/// Result of publishing.
#[derive(Debug, Clone)]
pub struct Published {
    /// Reference, pinned to the manifest.
    pub reference: Reference,
    /// True if the same bytes were already published.
    pub is_same: bool,
    /// True if the manifest has a signature of the key.
    pub is_signed: bool,
}

impl Publication {
    fn annotations(&self) -> Result<BTreeMap<String, String>, RegistryError> {
        let settings = self.settings.as_ref().map(Value::to_string);
        if settings
            .as_ref()
            .is_some_and(|settings| settings.len() > SETTINGS_LIMIT)
        {
            let why = format!("they are larger than the {SETTINGS_LIMIT} bytes that an annotation may have");
            return Err(malformed("the suggested settings", why));
        }
        let grants = (!self.grants.is_empty()).then(|| json!(self.grants).to_string());
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let all = [
            (TITLE, text(&self.name)),
            (VERSION, text(&self.version)),
            (DESCRIPTION, text(&self.description)),
            (LICENSES, self.licence.clone()),
            (SOURCE, self.source.clone()),
            (KIND, text(&self.kind)),
            (GRANTS, grants),
            (SETTINGS, settings),
        ];
        Ok(all
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect())
    }

    fn config(&self, layer: &Descriptor) -> Vec<u8> {
        let config = json!({
            "created": self.created,
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [layer.digest],
            "component": { "exports": self.exports, "imports": self.imports, "target": null },
        });
        config.to_string().into_bytes()
    }
}

impl Client {
    /// Publishes a component under the tag of a reference. A tag with other content is not moved.
    pub fn publish(
        &self,
        reference: &Reference,
        component: &[u8],
        publication: &Publication,
        key: Option<&SigningKey>,
    ) -> Result<Published, RegistryError> {
        if reference.tag().is_none() || reference.digest().is_some() {
            return Err(RegistryError::BadReference {
                text: reference.to_string(),
                why: "publish a component under a tag, without a digest".to_owned(),
            });
        }
        let layer = Descriptor::of(WASM, component);
        let annotations = publication.annotations()?;
        let there = self.beside(reference)?;
        let same = there.as_ref().filter(|there| {
            let is_layer = there.component().is_ok_and(|there| there.digest == layer.digest);
            is_layer && there.manifest.annotations == annotations
        });
        if let Some(same) = same {
            let is_signed = self.sign(reference, &same.digest, key)?;
            return Ok(Published {
                reference: same.reference.clone(),
                is_same: true,
                is_signed,
            });
        }
        if let Some(there) = there.filter(|_| !publication.overwrite) {
            return Err(RegistryError::Taken {
                reference: reference.to_string(),
                digest: there.digest.to_string(),
            });
        }
        let config = publication.config(&layer);
        let manifest = Manifest::new(Descriptor::of(WASM_CONFIG, &config), vec![layer], annotations);
        self.push_blob(reference, component)?;
        self.push_blob(reference, &config)?;
        let (digest, _) = self.push_manifest(reference, &manifest)?;
        let is_signed = self.sign(reference, &digest, key)?;
        Ok(Published {
            reference: reference.pinned(&digest),
            is_same: false,
            is_signed,
        })
    }

    /// Adds a signature to the existing ones, unless this key has already signed.
    fn sign(
        &self,
        reference: &Reference,
        digest: &Digest,
        key: Option<&SigningKey>,
    ) -> Result<bool, RegistryError> {
        let Some(key) = key else {
            return Ok(false);
        };
        self.push_signature(reference, digest, key)?;
        Ok(true)
    }
}
