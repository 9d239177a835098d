//! Registration of [`functions`] in place of SQLite's own, on one connection.

#![allow(
    unsafe_code,
    reason = "what SQLite makes text of is only to be had from its C interface"
)]

use std::ffi::{CStr, c_int, c_void};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use rusqlite::{Connection, ffi};

use super::memory;
use crate::storage::functions::{self, Ends, Late, Meter, Wildcards};

/// Text encoding in a byte, as functions that return text need it.
const UTF8: u8 = ffi::SQLITE_UTF8.to_le_bytes()[0];

/// Tells a function whether its call's time is up.
pub(in crate::storage) type IsLate = Arc<dyn Fn() -> bool + Send + Sync>;

/// One overload of a function.
struct Function {
    name: &'static CStr,
    arguments: c_int,
    run: fn(&mut Cx<'_>) -> Result<(), Failure>,
}

const FUNCTIONS: &[Function] = &[
    function(c"trim", 1, |cx| trim(cx, Ends::Both)),
    function(c"trim", 2, |cx| trim(cx, Ends::Both)),
    function(c"ltrim", 1, |cx| trim(cx, Ends::Left)),
    function(c"ltrim", 2, |cx| trim(cx, Ends::Left)),
    function(c"rtrim", 1, |cx| trim(cx, Ends::Right)),
    function(c"rtrim", 2, |cx| trim(cx, Ends::Right)),
    function(c"instr", 2, instr),
    function(c"replace", 3, replace),
    function(c"like", 2, like),
    function(c"like", 3, like),
];

const fn function(
    name: &'static CStr,
    arguments: c_int,
    run: fn(&mut Cx<'_>) -> Result<(), Failure>,
) -> Function {
    Function { name, arguments, run }
}

/// One registered function, as SQLite keeps it.
struct Registered {
    run: fn(&mut Cx<'_>) -> Result<(), Failure>,
    is_late: IsLate,
}

/// Registers all functions.
pub(in crate::storage) fn register(db: &Connection, is_late: &IsLate) -> rusqlite::Result<()> {
    for function in FUNCTIONS {
        let registered = Box::new(Registered {
            run: function.run,
            is_late: Arc::clone(is_late),
        });
        // Like SQLite's own: deterministic, and harmless in a schema.
        let flags = ffi::SQLITE_UTF8 | ffi::SQLITE_DETERMINISTIC | ffi::SQLITE_INNOCUOUS;
        // SAFETY: the connection is open. SQLite owns the box from here on, and gives it to `forget` once, even
        // if it does not take the function.
        let code = unsafe {
            ffi::sqlite3_create_function_v2(
                db.handle(),
                function.name.as_ptr(),
                function.arguments,
                flags,
                Box::into_raw(registered).cast(),
                Some(call),
                None,
                None,
                Some(forget),
            )
        };
        if code != ffi::SQLITE_OK {
            return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        }
    }
    Ok(())
}

unsafe extern "C" fn forget(registered: *mut c_void) {
    // SAFETY: SQLite gives back what `register` gave it, once.
    drop(unsafe { Box::from_raw(registered.cast::<Registered>()) });
}

unsafe extern "C" fn call(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: SQLite calls with what was registered, and with as many values as it says.
    let (registered, arguments) = unsafe {
        (
            &*ffi::sqlite3_user_data(context).cast::<Registered>(),
            std::slice::from_raw_parts(values, count),
        )
    };
    let mut cx = Cx {
        context,
        arguments,
        is_late: &*registered.is_late,
    };
    // A panic must not unwind through SQLite. Nothing is half changed: each function sets its result last.
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| (registered.run)(&mut cx)));
    match done {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => cx.fail(failure),
        Err(_) => cx.fail(Failure::Code(ffi::SQLITE_INTERNAL)),
    }
}

/// Reason for which a function has no result.
enum Failure {
    Message(&'static CStr),
    Code(c_int),
    TooLong,
    Memory,
}

impl From<Late> for Failure {
    fn from(_: Late) -> Failure {
        Failure::Code(ffi::SQLITE_INTERRUPT)
    }
}

/// Context of one call of a function.
struct Cx<'a> {
    context: *mut ffi::sqlite3_context,
    arguments: &'a [*mut ffi::sqlite3_value],
    is_late: &'a dyn Fn() -> bool,
}

impl<'a> Cx<'a> {
    /// Argument as text. Every value except NULL can be text.
    fn text(&self, argument: usize) -> Result<Option<&'a [u8]>, Failure> {
        let value = self.arguments[argument];
        // SAFETY: the value is there during the call, and so is its text, as each argument is asked for in one
        // form only. Its length is asked for after the text is made.
        unsafe {
            if ffi::sqlite3_value_type(value) == ffi::SQLITE_NULL {
                return Ok(None);
            }
            let start = if self.is_blob(argument) {
                ffi::sqlite3_value_blob(value).cast::<u8>()
            } else {
                memory::exempt(|| ffi::sqlite3_value_text(value))
            };
            let length = usize::try_from(ffi::sqlite3_value_bytes(value)).unwrap_or(0);
            match (start.is_null(), length) {
                (_, 0) => Ok(Some(&[])),
                (true, _) => Err(Failure::Memory),
                (false, _) => Ok(Some(std::slice::from_raw_parts(start, length))),
            }
        }
    }

    fn is_blob(&self, argument: usize) -> bool {
        // SAFETY: the value is there during the call.
        unsafe { ffi::sqlite3_value_type(self.arguments[argument]) == ffi::SQLITE_BLOB }
    }

    fn meter(&self, text: &[u8]) -> Meter<'a> {
        Meter::new(text.len(), self.is_late)
    }

    /// Current limit of the connection.
    fn limit(&self, limit: c_int) -> usize {
        // SAFETY: the context is that of a call, and so has a connection. A negative value changes nothing.
        let now = unsafe { ffi::sqlite3_limit(ffi::sqlite3_context_db_handle(self.context), limit, -1) };
        usize::try_from(now).unwrap_or(0)
    }

    fn give_text(&self, text: &[u8]) {
        // SAFETY: SQLite copies as many bytes as the text has before it returns.
        unsafe {
            ffi::sqlite3_result_text64(
                self.context,
                text.as_ptr().cast(),
                text.len() as u64,
                ffi::SQLITE_TRANSIENT(),
                UTF8,
            );
        }
    }

    fn give_number(&self, number: usize) {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        // SAFETY: the context is that of this call.
        unsafe { ffi::sqlite3_result_int64(self.context, number) }
    }

    fn fail(&self, failure: Failure) {
        // SAFETY: the context is that of this call. SQLite copies the message.
        unsafe {
            match failure {
                Failure::Message(message) => ffi::sqlite3_result_error(self.context, message.as_ptr(), -1),
                Failure::Code(code) => ffi::sqlite3_result_error_code(self.context, code),
                Failure::TooLong => ffi::sqlite3_result_error_toobig(self.context),
                Failure::Memory => ffi::sqlite3_result_error_nomem(self.context),
            }
        }
    }
}

// A function without a result returns NULL.

fn trim(cx: &mut Cx<'_>, ends: Ends) -> Result<(), Failure> {
    let Some(text) = cx.text(0)? else {
        return Ok(());
    };
    let set = match cx.arguments.len() {
        1 => Some(&b" "[..]),
        _ => cx.text(1)?,
    };
    if let Some(set) = set {
        cx.give_text(functions::trim(text, set, ends, &mut cx.meter(text))?);
    }
    Ok(())
}

fn instr(cx: &mut Cx<'_>) -> Result<(), Failure> {
    let is_text = !(cx.is_blob(0) && cx.is_blob(1));
    if let (Some(haystack), Some(needle)) = (cx.text(0)?, cx.text(1)?) {
        cx.meter(haystack).spend(1)?;
        cx.give_number(functions::instr(haystack, needle, is_text));
    }
    Ok(())
}

fn replace(cx: &mut Cx<'_>) -> Result<(), Failure> {
    let (Some(text), Some(pattern)) = (cx.text(0)?, cx.text(1)?) else {
        return Ok(());
    };
    if pattern.first().is_none_or(|&first| first == 0) {
        cx.give_text(text);
        return Ok(());
    }
    if let Some(with) = cx.text(2)? {
        cx.meter(text).spend(1)?;
        let limit = cx.limit(ffi::SQLITE_LIMIT_LENGTH);
        let replaced = functions::replace(text, pattern, with, limit).map_err(|_| Failure::TooLong)?;
        cx.give_text(&replaced);
    }
    Ok(())
}

fn like(cx: &mut Cx<'_>) -> Result<(), Failure> {
    let pattern = cx.text(0)?;
    if pattern.is_some_and(|pattern| pattern.len() > cx.limit(ffi::SQLITE_LIMIT_LIKE_PATTERN_LENGTH)) {
        return Err(Failure::Message(c"LIKE or GLOB pattern too complex"));
    }
    let wildcards = match cx.arguments.len() {
        2 => Wildcards::PLAIN,
        _ => match cx.text(2)? {
            None => return Ok(()),
            Some(escape) => Wildcards::escaped_by(escape)
                .ok_or(Failure::Message(c"ESCAPE expression must be a single character"))?,
        },
    };
    if let (Some(pattern), Some(text)) = (pattern, cx.text(1)?) {
        let alike = functions::like(pattern, text, wildcards, &mut cx.meter(text))?;
        cx.give_number(usize::from(alike));
    }
    Ok(())
}
