//! Pushing: content first, then the manifest that names it.

use url::Url;

use crate::client::{Access, Client, found};
use crate::digest::Digest;
use crate::error::RegistryError;
use crate::http::Ask;
use crate::manifest::{MANIFEST, Manifest, malformed};
use crate::reference::Reference;

impl Client {
    /// Uploads content in one piece, unless the registry already has it.
    pub(crate) fn push_blob(&self, reference: &Reference, bytes: &[u8]) -> Result<(), RegistryError> {
        let digest = Digest::of(bytes);
        let url = self.url(reference, &format!("blobs/{digest}"))?;
        let ask = Ask {
            method: "HEAD",
            url,
            accept: "*/*",
            authorization: None,
            body: None,
        };
        if self.send(reference, Access::Push, ask)?.status == 200 {
            return Ok(());
        }
        let start = self.url(reference, "blobs/uploads/")?;
        let ask = Ask {
            method: "POST",
            url: start.clone(),
            accept: "*/*",
            authorization: None,
            body: Some(("application/octet-stream", b"")),
        };
        let answer = self.send(reference, Access::Push, ask)?;
        if answer.status != 202 {
            return Err(refusal(answer, reference));
        }
        let upload = place(&start, answer.header("location"), &digest)?;
        let ask = Ask {
            method: "PUT",
            url: upload,
            accept: "*/*",
            authorization: None,
            body: Some(("application/octet-stream", bytes)),
        };
        let answer = self.send(reference, Access::Push, ask)?;
        match answer.status {
            201 | 204 => Ok(()),
            _ => Err(refusal(answer, reference)),
        }
    }

    /// Puts a manifest under the tag of a reference.
    pub(crate) fn push_manifest(
        &self,
        reference: &Reference,
        manifest: &Manifest,
    ) -> Result<(Digest, Vec<u8>), RegistryError> {
        let bytes = serde_json::to_vec(manifest).map_err(|err| malformed("the manifest", err.to_string()))?;
        let url = self.url(reference, &format!("manifests/{}", reference.manifest()))?;
        let ask = Ask {
            method: "PUT",
            url,
            accept: "*/*",
            authorization: None,
            body: Some((MANIFEST, &bytes)),
        };
        let answer = self.send(reference, Access::Push, ask)?;
        match answer.status {
            201 => Ok((Digest::of(&bytes), bytes)),
            _ => Err(refusal(answer, reference)),
        }
    }
}

fn refusal(answer: crate::http::Answer, reference: &Reference) -> RegistryError {
    match found(answer, &reference.to_string(), reference) {
        Ok(answer) => answer.refusal(),
        Err(err) => err,
    }
}

/// Upload address of content. Must be on the requested origin, because the credential is sent with it.
fn place(start: &Url, location: Option<&str>, digest: &Digest) -> Result<Url, RegistryError> {
    let joined = location.and_then(|location| start.join(location).ok());
    let url = joined.filter(|url| url.origin() == start.origin());
    let mut url = url.ok_or_else(|| {
        malformed(
            "the upload",
            "the registry returned no upload location on the same host".to_owned(),
        )
    })?;
    url.query_pairs_mut().append_pair("digest", &digest.to_string());
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_goes_to_the_same_origin() {
        let start: Url = "https://registry.example/v2/x/blobs/uploads/".parse().unwrap();
        let digest = Digest::of(b"x");
        let there = place(&start, Some("/v2/x/blobs/uploads/1?_state=a"), &digest).unwrap();
        assert!(
            there.query().unwrap().starts_with("_state=a&digest=sha256%3A"),
            "{there}"
        );
        assert!(place(&start, Some("https://evil.example/"), &digest).is_err());
        assert!(place(&start, Some("http://registry.example/"), &digest).is_err());
        assert!(place(&start, None, &digest).is_err());
    }
}
