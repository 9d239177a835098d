//! Values and statements as components send them to a database, independent of the engine.

/// A value of a column or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `NULL`.
    Null,
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// A statement with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Text of the statement.
    pub sql: String,
    /// Values of `?1`, `?2` and so on.
    pub params: Vec<Value>,
}
