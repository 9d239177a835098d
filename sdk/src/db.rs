//! SQL over the pack's own tables.

use thiserror::Error;

#[cfg(target_family = "wasm")]
use crate::Host;
use crate::canonical::json_text;
use crate::host::{HostRef, Transaction};

/// An SQL value.
///
/// ```
/// # use tollgate_sdk::{Value, params};
/// let values: &[Value] = params!["text", 7, true, None::<i64>];
/// assert_eq!(values, [Value::Text("text".to_owned()), Value::Integer(7), Value::Integer(1), Value::Null]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// A 64-bit integer; booleans are 0 and 1.
    Integer(i64),
    /// Double-precision number.
    Real(f64),
    /// Text, including timestamps and JSON.
    Text(String),
    /// Byte string.
    Blob(Vec<u8>),
}

/// Reason why a statement failed. Its effects, if any, are rolled back.
///
/// ```
/// # use tollgate_sdk::{DbError, ToolError};
/// // `?` converts the error in a tool.
/// assert_eq!(ToolError::from(DbError::Full).code, "STORAGE_FULL");
/// ```
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DbError {
    /// The statement is malformed, not allowed, or uses a table of another owner.
    #[error("the statement was refused: {0}")]
    Refused(String),
    /// A constraint or trigger of the pack's own tables failed.
    #[error("a constraint failed: {0}")]
    Constraint(String),
    /// A write in a `Read` tool.
    #[error("this tool is read-only")]
    ReadOnly,
    /// The result exceeds the host's row or byte limit.
    #[error("the result is too large: {0}")]
    TooLarge(String),
    /// The quota or the disk is full.
    #[error("storage is full")]
    Full,
    /// The deadline passed or the call was cancelled.
    #[error("the call ran out of time")]
    Interrupted,
    /// In a `Run` tool: the statement is outside any transaction, or a transaction is already open.
    #[error("wrong transaction state: {0}")]
    TransactionState(String),
    /// A column has a different type than the pack expects.
    #[error("column {column} does not hold {wanted}")]
    Type {
        /// Index in the select list, from 0.
        column: usize,
        /// Expected type.
        wanted: &'static str,
    },
    /// The host failed.
    #[error("storage failed")]
    Internal,
}

/// The values of one row in the order of the select list.
///
/// ```
/// use tollgate_sdk::{DbError, Row};
///
/// struct Note {
///     id: i64,
///     tags: Vec<String>,
/// }
///
/// impl TryFrom<Row> for Note {
///     type Error = DbError;
///
///     fn try_from(row: Row) -> Result<Note, DbError> {
///         Ok(Note { id: row.get(0)?, tags: row.json(1)? })
///     }
/// }
/// # let note = Note::try_from(Row::new(tollgate_sdk::params![1, r#"["a"]"#].to_vec()))?;
/// # assert_eq!((note.id, note.tags), (1, vec!["a".to_owned()]));
/// # Ok::<(), DbError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Row(Vec<Value>);

impl Row {
    /// Creates a row from values, for backends.
    #[must_use]
    pub fn new(values: Vec<Value>) -> Row {
        Row(values)
    }

    /// Value of a column, counted from 0, as the requested type.
    pub fn get<T: FromValue>(&self, column: usize) -> Result<T, DbError> {
        self.0.get(column).and_then(T::from_value).ok_or(DbError::Type {
            column,
            wanted: std::any::type_name::<T>(),
        })
    }

    /// Value of a column of JSON text, counted from 0, as the requested type.
    pub fn json<T: serde::de::DeserializeOwned>(&self, column: usize) -> Result<T, DbError> {
        serde_json::from_str(&self.get::<String>(column)?).map_err(|_| DbError::Type {
            column,
            wanted: std::any::type_name::<T>(),
        })
    }
}

/// Tables of the pack, during one call.
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Pack, params, native::Session};
/// # let (session, call) = (Session::new(&Pack { name: "notes", ..Pack::EMPTY }), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
/// # session.sql("CREATE TABLE notes_notes (id INTEGER PRIMARY KEY, text TEXT)");
/// cx.db.execute("INSERT INTO notes_notes (text) VALUES (?1)", params!["hello"])?;
/// let row = cx.db.query_row("SELECT text FROM notes_notes WHERE id = ?1", params![1])?;
/// let text: Option<String> = row.map(|row| row.get(0)).transpose()?;
/// assert_eq!(text.as_deref(), Some("hello"));
/// # Ok::<(), tollgate_sdk::DbError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Db<'a> {
    storage: Storage<'a>,
}

#[derive(Clone, Copy)]
enum Storage<'a> {
    /// Transaction or snapshot of the call.
    Call(HostRef<'a>),
    /// Transaction of a `Run` tool.
    Transaction(&'a dyn Transaction),
}

impl<'a> Db<'a> {
    pub(crate) fn of_call(host: HostRef<'a>) -> Db<'a> {
        Db {
            storage: Storage::Call(host),
        }
    }

    pub(crate) fn of_transaction(transaction: &'a dyn Transaction) -> Db<'a> {
        Db {
            storage: Storage::Transaction(transaction),
        }
    }

    /// Rows of a query.
    pub fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError> {
        match self.storage {
            Storage::Call(host) => host.query(sql, params),
            Storage::Transaction(transaction) => transaction.query(sql, params),
        }
    }

    /// Rows of a query, each converted to `T`.
    pub fn query_as<T>(&self, sql: &str, params: &[Value]) -> Result<Vec<T>, DbError>
    where
        T: TryFrom<Row, Error = DbError>,
    {
        self.query(sql, params)?.into_iter().map(T::try_from).collect()
    }

    /// First row of a query, if there is one.
    pub fn query_row(&self, sql: &str, params: &[Value]) -> Result<Option<Row>, DbError> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    /// First row of a query converted to `T`, if there is one.
    pub fn query_one<T>(&self, sql: &str, params: &[Value]) -> Result<Option<T>, DbError>
    where
        T: TryFrom<Row, Error = DbError>,
    {
        self.query_row(sql, params)?.map(T::try_from).transpose()
    }

    /// Runs a statement and returns the number of changed rows.
    pub fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, DbError> {
        match self.storage {
            Storage::Call(host) => host.execute(sql, params),
            Storage::Transaction(transaction) => transaction.execute(sql, params),
        }
    }
}

/// A type that can be a parameter.
///
/// ```
/// use tollgate_sdk::{ToValue, Value, params};
///
/// struct Celsius(f64);
///
/// impl ToValue for Celsius {
///     fn to_value(&self) -> Value {
///         Value::Real(self.0)
///     }
/// }
/// assert_eq!(params![Celsius(21.5)], &[Value::Real(21.5)]);
/// ```
pub trait ToValue {
    /// Converts to an SQL value.
    fn to_value(&self) -> Value;
}

/// A type that a column can be read as.
///
/// ```
/// use tollgate_sdk::{FromValue, Row, Value};
///
/// #[derive(Debug, PartialEq)]
/// struct Celsius(f64);
///
/// impl FromValue for Celsius {
///     fn from_value(value: &Value) -> Option<Celsius> {
///         f64::from_value(value).map(Celsius)
///     }
/// }
/// assert_eq!(Row::new(vec![Value::Real(21.5)]).get(0), Ok(Celsius(21.5)));
/// ```
pub trait FromValue: Sized {
    /// Converts a value to the type, or returns `None` if the column holds another type.
    fn from_value(value: &Value) -> Option<Self>;
}

/// Parameters of a statement: `params![id, state]`.
///
/// ```
/// # use tollgate_sdk::{Value, params};
/// let (id, state) = ("note_1", Some("open"));
/// assert_eq!(params![id, state], &[Value::Text("note_1".to_owned()), Value::Text("open".to_owned())]);
/// ```
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        &[$($crate::ToValue::to_value(&$value)),*]
    };
}

impl ToValue for Value {
    fn to_value(&self) -> Value {
        self.clone()
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Value {
        (**self).to_value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, ToValue::to_value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            other => T::from_value(other).map(Some),
        }
    }
}

impl ToValue for str {
    fn to_value(&self) -> Value {
        Value::Text(self.to_owned())
    }
}

impl ToValue for String {
    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<String> {
        match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl ToValue for bool {
    fn to_value(&self) -> Value {
        Value::Integer(i64::from(*self))
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<bool> {
        match value {
            Value::Integer(number) => Some(*number != 0),
            _ => None,
        }
    }
}

impl ToValue for f64 {
    fn to_value(&self) -> Value {
        Value::Real(*self)
    }
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Option<f64> {
        match value {
            Value::Real(number) => Some(*number),
            _ => None,
        }
    }
}

impl ToValue for [u8] {
    fn to_value(&self) -> Value {
        Value::Blob(self.to_owned())
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: &Value) -> Option<Vec<u8>> {
        match value {
            Value::Blob(bytes) => Some(bytes.clone()),
            _ => None,
        }
    }
}

macro_rules! integers {
    ($($kind:ty),+) => {$(
        impl FromValue for $kind {
            fn from_value(value: &Value) -> Option<$kind> {
                match value {
                    Value::Integer(number) => (*number).try_into().ok(),
                    _ => None,
                }
            }
        }
    )+};
}
integers!(i64, i32, u64, u32, u16, u8, usize);

macro_rules! small_integers {
    ($($kind:ty),+) => {$(
        impl ToValue for $kind {
            fn to_value(&self) -> Value {
                Value::Integer(i64::from(*self))
            }
        }
    )+};
}
small_integers!(i64, i32, u32, u16, u8);

/// JSON objects and arrays are stored in TEXT columns.
impl ToValue for serde_json::Value {
    fn to_value(&self) -> Value {
        Value::Text(json_text(self))
    }
}

impl FromValue for serde_json::Value {
    fn from_value(value: &Value) -> Option<serde_json::Value> {
        match value {
            Value::Text(text) => serde_json::from_str(text).ok(),
            _ => None,
        }
    }
}
