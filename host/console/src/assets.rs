//! The three static files of the pages, embedded in the program. Their addresses contain their hashes, so they can be
//! cached forever.

use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tollgate_core::hash::sha256_hex;

use crate::address::Name;

/// A file, its type and its hash.
pub(crate) struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    hash: String,
}

impl Asset {
    fn new(name: &'static str, kind: &'static str, bytes: &'static [u8]) -> Asset {
        let hash = sha256_hex(bytes)[..16].to_owned();
        Asset {
            name,
            kind,
            bytes,
            hash,
        }
    }

    /// Address of the file.
    pub(crate) fn url(&self) -> String {
        format!("/console/assets/{}?{}", self.name, self.hash)
    }
}

/// The script.
pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "console.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../assets/console.js"),
    )
});
/// The stylesheet.
pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "console.css",
        "text/css; charset=utf-8",
        include_bytes!("../assets/console.css"),
    )
});
/// The pictures.
pub(crate) static ICONS: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "icons.svg",
        "image/svg+xml",
        include_bytes!("../assets/icons.svg"),
    )
});

/// Serves a file. Its content does not depend on the sender.
pub(crate) async fn serve(Name(name): Name, headers: HeaderMap) -> Response {
    let all: [&Asset; 3] = [&SCRIPT, &STYLE, &ICONS];
    let Some(asset) = all.into_iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let tag = format!("\"{}\"", asset.hash);
    let kept = [
        (ETAG, tag.clone()),
        (CACHE_CONTROL, "private, max-age=31536000, immutable".to_owned()),
    ];
    let known = headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    if known == Some(tag.as_str()) {
        return (StatusCode::NOT_MODIFIED, kept).into_response();
    }
    (kept, [(CONTENT_TYPE, asset.kind)], asset.bytes).into_response()
}
