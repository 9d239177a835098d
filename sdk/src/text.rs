//! Enums and identifiers that are text in JSON and in SQL, declared once.

use thiserror::Error;

/// An identifier with its own type, declared with [`id!`](crate::id).
///
/// ```
/// use tollgate_sdk::{Id, id};
///
/// id!(/** A note. */ NoteId, "note");
/// assert_eq!(NoteId::PREFIX, "note");
/// ```
pub trait Id {
    /// Prefix of the text, before the underscore.
    const PREFIX: &'static str;
    /// Wraps text from the host or a row.
    fn from_text(text: String) -> Self;
}

/// Text that is not a variant of an enum.
///
/// ```
/// tollgate_sdk::text_enum! {
///     /// Status of a note.
///     pub enum State { Draft = "draft", Published = "published" }
/// }
/// let err = "lost".parse::<State>().unwrap_err();
/// assert_eq!(err.to_string(), "`lost` is not one of draft, published");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not one of {legal}")]
pub struct ParseTextError {
    /// Text that was parsed.
    pub text: String,
    /// Valid texts, separated by commas.
    pub legal: String,
}

/// Declares an identifier type: `id!(/// A task. TaskId, "tsk");`
///
/// A third argument is the description of the type in schemas. A field of the type without a doc comment has this
/// description: `id!(/// A task. TaskId, "tsk", "Task id from task_create, for example tsk_01K…");`
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Pack, native::Session};
/// # let (session, call) = (Session::new(&Pack::EMPTY), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
///
/// tollgate_sdk::id!(
///     /// A note.
///     NoteId,
///     "note"
/// );
/// let id: NoteId = cx.new_id();
/// assert!(id.as_str().starts_with("note_"));
/// ```
#[macro_export]
macro_rules! id {
    ($(#[$meta:meta])* $name:ident, $prefix:literal) => {
        $crate::id!(@type $(#[$meta])* $name, $prefix, {"type": "string"});
    };
    ($(#[$meta:meta])* $name:ident, $prefix:literal, $description:literal) => {
        $crate::id!(@type $(#[$meta])* $name, $prefix, {"type": "string", "description": $description});
    };
    (@type $(#[$meta:meta])* $name:ident, $prefix:literal, $schema:tt) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash,
            $crate::reexport::serde::Serialize, $crate::reexport::serde::Deserialize)]
        #[serde(crate = "tollgate_sdk::reexport::serde", transparent)]
        pub struct $name(String);

        impl $name {
            /// Text of the identifier.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl $crate::Id for $name {
            const PREFIX: &'static str = $prefix;
            fn from_text(text: String) -> Self {
                Self(text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl $crate::ToValue for $name {
            fn to_value(&self) -> $crate::Value {
                $crate::Value::Text(self.0.clone())
            }
        }

        impl $crate::FromValue for $name {
            fn from_value(value: &$crate::Value) -> Option<Self> {
                <String as $crate::FromValue>::from_value(value).map(Self)
            }
        }

        $crate::__text_schema!($name, $schema);
    };
}

/// Implements `JsonSchema` with a fixed schema for a type that is text.
#[doc(hidden)]
#[macro_export]
macro_rules! __text_schema {
    ($name:ident, $schema:tt) => {
        impl $crate::reexport::schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(
                _: &mut $crate::reexport::schemars::SchemaGenerator,
            ) -> $crate::reexport::schemars::Schema {
                $crate::reexport::schemars::json_schema!($schema)
            }
        }
    };
}

/// Declares an enum that is text: `text_enum! { pub enum Phase { Draft = "draft", Done = "done" } }`.
///
/// The enum has `ALL`, `as_str`, `FromStr`, `Display`, serde, a plain string schema, and column conversions.
///
/// ```
/// tollgate_sdk::text_enum! {
///     /// Status of a note.
///     pub enum State { Draft = "draft", Published = "published" }
/// }
/// assert_eq!(State::ALL.len(), 2);
/// assert_eq!("draft".parse(), Ok(State::Draft));
/// assert_eq!(serde_json::to_string(&State::Published).unwrap(), r#""published""#);
/// ```
#[macro_export]
macro_rules! text_enum {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name { $($(#[$variant_meta])* $variant),+ }

        impl $name {
            /// Variants in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Text of a variant.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::ParseTextError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok($name::$variant),)+
                    _ => Err($crate::ParseTextError {
                        text: text.to_owned(),
                        legal: [$($text),+].join(", "),
                    }),
                }
            }
        }

        impl $crate::reexport::serde::Serialize for $name {
            fn serialize<S: $crate::reexport::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> $crate::reexport::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::reexport::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as $crate::reexport::serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err($crate::reexport::serde::de::Error::custom)
            }
        }

        $crate::__text_schema!($name, {"type": "string", "enum": [$($text),+]});

        impl $crate::ToValue for $name {
            fn to_value(&self) -> $crate::Value {
                $crate::Value::Text(self.as_str().to_owned())
            }
        }

        impl $crate::FromValue for $name {
            fn from_value(value: &$crate::Value) -> Option<Self> {
                match value {
                    $crate::Value::Text(text) => text.parse().ok(),
                    _ => None,
                }
            }
        }
    };
}
