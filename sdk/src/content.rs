//! Content beside or instead of the text of a reply.

/// One piece of content, as clients show it.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// For instance `image/png`.
    pub mime_type: String,
    /// The bytes.
    pub data: Vec<u8>,
}
