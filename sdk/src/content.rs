//! Content beside or instead of the text of a reply.

/// One piece of content, as clients show it.
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
    /// A text.
    Text(String),
    /// A picture.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// A text that has an address.
    Resource {
        /// The address.
        uri: String,
        /// What the text is.
        mime_type: String,
        /// The text.
        text: String,
    },
}

/// Bytes, and what they are.
///
/// ```
/// # use tollgate_sdk::{Content, Media};
/// let dot = Media { mime_type: "image/svg+xml".to_owned(), data: b"<svg/>".to_vec() };
/// let content = [Content::Image(dot), Content::Text("a dot".to_owned())];
/// # assert_eq!(content.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// For instance `image/png`.
    pub mime_type: String,
    /// The bytes.
    pub data: Vec<u8>,
}
