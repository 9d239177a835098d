//! An OAuth 2 issuer on this machine: its metadata, its keys, and tokens of any kind.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::routing::get;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

/// What an Ed25519 key in PKCS #8 starts with; 32 random bytes follow.
const PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// An issuer.
pub(crate) struct Issuer {
    pub(crate) url: String,
    keys: Arc<Mutex<Vec<(String, EncodingKey)>>>,
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

    /// Begins to sign with another key, and publishes it beside the others.
    pub(crate) fn rotate(&self, id: &str) {
        self.keys.lock().unwrap().push((id.to_owned(), new_key()));
    }

    /// Claims that are right in every way.
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

/// A token that somebody else signed, under a name that the issuer uses.
pub(crate) fn forged(claims: &Value) -> String {
    sign(claims, "first", &new_key())
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "tokens are about real time")]
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn sign(claims: &Value, id: &str, key: &EncodingKey) -> String {
    let mut header = Header::new(Algorithm::EdDSA);
    header.kid = Some(id.to_owned());
    jsonwebtoken::encode(&header, claims, key).unwrap()
}

fn new_key() -> EncodingKey {
    let mut der = PKCS8.to_vec();
    let mut seed = [0_u8; 32];
    getrandom::fill(&mut seed).unwrap();
    der.extend(seed);
    EncodingKey::from_ed_der(&der)
}

fn set(keys: &[(String, EncodingKey)]) -> Value {
    let keys = keys.iter().map(|(id, key)| {
        let mut jwk = Jwk::from_encoding_key(key, Algorithm::EdDSA).unwrap();
        jwk.common.key_id = Some(id.clone());
        jwk
    });
    json!({ "keys": keys.collect::<Vec<_>>() })
}
