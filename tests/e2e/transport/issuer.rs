//! An OAuth 2 issuer on this machine: its metadata, its keys, and tokens of any kind.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::routing::get;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

/// An issuer.
pub(crate) struct Issuer {
    pub(crate) url: String,
    keys: Arc<Mutex<Vec<(String, Ed25519KeyPair)>>>,
}

impl Issuer {
    pub(crate) async fn start() -> Issuer {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let keys = Arc::new(Mutex::new(vec![("first".to_owned(), new_key())]));
        let metadata = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
        let published = Arc::clone(&keys);
        let app = Router::new()
            .route(
                "/.well-known/openid-configuration",
                get(async move || metadata.to_string()),
            )
            .route(
                "/keys",
                get(async move || set(&published.lock().unwrap()).to_string()),
            );
        tokio::spawn(async move { axum::serve(listener, app).await });
        Issuer { url, keys }
    }

    /// Signs with a new key from now on, and publishes it beside the others.
    pub(crate) fn rotate(&self, id: &str) {
        self.keys.lock().unwrap().push((id.to_owned(), new_key()));
    }

    /// Valid claims.
    pub(crate) fn claims(&self, subject: &str, audience: &str) -> Value {
        json!({"iss": self.url, "sub": subject, "aud": audience, "exp": now() + 600, "scope": "tools other"})
    }

    /// A token with the newest key.
    pub(crate) fn token(&self, claims: &Value) -> String {
        let keys = self.keys.lock().unwrap();
        let (id, key) = keys.last().unwrap();
        sign(claims, id, key)
    }
}

/// A token that another key signed, under a key id of the issuer.
pub(crate) fn forged(claims: &Value) -> String {
    sign(claims, "first", &new_key())
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "tokens are about real time")]
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn sign(claims: &Value, id: &str, key: &Ed25519KeyPair) -> String {
    let part = |value: &Value| BASE64.encode(value.to_string());
    let header = json!({"typ": "JWT", "alg": "EdDSA", "kid": id});
    let signed = format!("{}.{}", part(&header), part(claims));
    let signature = key.sign(signed.as_bytes());
    format!("{signed}.{}", BASE64.encode(signature))
}

fn new_key() -> Ed25519KeyPair {
    let mut seed = [0_u8; 32];
    getrandom::fill(&mut seed).unwrap();
    Ed25519KeyPair::from_seed_unchecked(&seed).unwrap()
}

fn set(keys: &[(String, Ed25519KeyPair)]) -> Value {
    let keys = keys.iter().map(|(id, key)| {
        let public = BASE64.encode(key.public_key());
        json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": id, "x": public})
    });
    json!({ "keys": keys.collect::<Vec<_>>() })
}
