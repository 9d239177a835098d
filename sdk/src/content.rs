//! Content of a reply besides or instead of its text.

/// A piece of content, as clients show it.
///
/// ```
/// # use tollgate_sdk::Content;
/// let page = Content::Resource {
///     uri: "notes://today".to_owned(),
///     mime_type: "text/markdown".to_owned(),
///     text: "# Today".to_owned(),
/// };
/// # assert_ne!(page, Content::Text("# Today".to_owned()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Image with its media type.
    Image(Media),
    /// Audio with its media type.
    Audio(Media),
    /// Text with an address.
    Resource {
        /// URI of the text.
        uri: String,
        /// Media type of the text.
        mime_type: String,
        /// Text at the address.
        text: String,
    },
}

/// Bytes with their media type.
///
/// ```
/// # use tollgate_sdk::{Content, Media};
/// let dot = Media { mime_type: "image/svg+xml".to_owned(), data: b"<svg/>".to_vec() };
/// let content = [Content::Image(dot), Content::Text("a dot".to_owned())];
/// # assert_eq!(content.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// Media type, for example `image/png`.
    pub mime_type: String,
    /// Content of the file.
    pub data: Vec<u8>,
}
