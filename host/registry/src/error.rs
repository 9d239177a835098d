//! Errors of registries. Each message names the subject, the problem, and the value.

use thiserror::Error;

/// Remedy for a server whose certificate has an unknown issuer, or that does not use TLS. Appended to a message. Empty
/// for other failures.
pub fn connection_remedy(source: &ureq::Error) -> &'static str {
    // The error is nested in socket errors, and its type may be from another version of rustls than this crate's.
    let said = source.to_string();
    if said.contains("InvalidContentType") {
        ", because the server does not use TLS; for a registry on this machine, set plain_http = true in \
         [registries.\"HOST:PORT\"]"
    } else if said.contains("UnknownIssuer") {
        ", because this machine does not know the issuer of its certificate; set SSL_CERT_FILE to a PEM file with the certificates \
         of the issuers to trust"
    } else {
        ""
    }
}

/// Reason why a registry operation failed. Nothing was changed.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// The text does not name a component in a registry.
    #[error(
        "{text} is not a reference to a component: {why}; write oci://HOST/NAME:TAG, or oci://HOST/NAME@sha256:DIGEST"
    )]
    BadReference {
        /// Text that was given.
        text: String,
        /// Invalid part.
        why: String,
    },
    /// The registry was not reached, is not trusted, or closed the connection.
    #[error("cannot reach {url}{}", connection_remedy(source))]
    Unreachable {
        /// Address.
        url: String,
        #[source]
        source: Box<ureq::Error>,
    },
    /// The registry answered with an error.
    #[error("{url} returned {status}{said}")]
    Status {
        /// Address.
        url: String,
        /// HTTP status.
        status: u16,
        /// Message of the registry, if any.
        said: String,
    },
    /// The registry has no content under the name.
    #[error(
        "{what} is not in the registry {host}; check the name and the tag, and that the credentials may read it"
    )]
    Missing {
        /// Reference, or content.
        what: String,
        /// Registry.
        host: String,
    },
    /// The registry refuses the credentials, or requires some.
    #[error(
        "{host} refuses access to {what} {with}; run `docker login {host}`, or set registries.\"{host}\".user and password_env"
    )]
    Denied {
        /// Registry.
        host: String,
        /// Reference.
        what: String,
        /// `without credentials`, or the source of the login.
        with: String,
    },
    /// The token service is on a different host than the registry.
    #[error(
        "{host} sends credentials to the token service {realm}, which is another host; if the change is intended, set \
         registries.\"{host}\".token_host = \"{realm}\""
    )]
    TokenHost {
        /// Registry.
        host: String,
        /// Host of its token service.
        realm: String,
    },
    /// Credentials cannot be read.
    #[error("cannot use the credentials for {host}: {why}")]
    Credentials {
        /// Registry.
        host: String,
        /// Reason.
        why: String,
    },
    /// A redirect that is not followed.
    #[error("{from} redirects to {to}, which is not followed: {why}")]
    Redirect {
        /// Requested address.
        from: String,
        /// Target.
        to: String,
        /// Reason.
        why: &'static str,
    },
    /// Plain HTTP is not allowed for this registry.
    #[error(
        "{host} cannot be used over plain HTTP: only a registry on this machine can, with registries.\"{host}\".plain_http = true"
    )]
    PlainHttp {
        /// Registry.
        host: String,
    },
    /// The content exceeds the limit.
    #[error("{what} is larger than the {limit} bytes that are accepted")]
    TooLarge {
        /// Content.
        what: String,
        /// Limit in bytes.
        limit: u64,
    },
    /// The content has another digest.
    #[error("{what} has the digest {found}, not {wanted}")]
    OtherDigest {
        /// Content.
        what: String,
        /// Expected digest.
        wanted: String,
        /// Digest of the received content.
        found: String,
    },
    /// The content is malformed.
    #[error("cannot use {what}: {why}")]
    Malformed {
        /// Content.
        what: String,
        /// Reason.
        why: String,
    },
    /// A key or a root of trust cannot be read.
    #[error("cannot use {what} as {kind}: {why}")]
    Key {
        /// Name of the signer, or the file.
        what: String,
        /// `a public key`, `a signing key` or `a root of trust`.
        kind: &'static str,
        /// Reason.
        why: String,
    },
    /// The component has no accepted signature.
    #[error("{reference} is not trusted: {}", .reasons.join("; "))]
    Untrusted {
        /// Component.
        reference: String,
        /// All reasons.
        reasons: Vec<String>,
    },
    /// The tag to publish is already in use.
    #[error("{reference} already exists, as {digest}; publish under a new tag, or add --overwrite")]
    Taken {
        /// Reference.
        reference: String,
        /// Its digest.
        digest: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_set_is_named() {
        let failed = |why: &str| {
            let source = Box::new(ureq::Error::Io(std::io::Error::other(why.to_owned())));
            let url = "https://localhost:5000/v2/".to_owned();
            RegistryError::Unreachable { url, source }.to_string()
        };
        assert!(failed("invalid peer certificate: UnknownIssuer").contains("SSL_CERT_FILE"));
        assert!(failed("received corrupt message of type InvalidContentType").contains("plain_http"));
        for other in ["invalid peer certificate: NotValidForName", "connection refused"] {
            assert!(!failed(other).contains("SSL_CERT_FILE"), "{other}");
        }
    }
}
