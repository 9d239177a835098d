//! A separate stack for parsing, so that no text can overflow the stack of a host thread, however deeply it is
//! nested.

use crate::refusal::Refusal;

/// Size of the stack in bytes. Only the part that a text needs is touched.
const STACK: usize = 64 << 20;

/// Runs `read` on a stack that is large enough for every text within the limits. `None` if it panicked or no thread
/// could be started, which affects only this text.
pub(crate) fn apart<T: Send>(read: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("sql-reader".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, read);
        thread.ok()?.join().ok()
    })
}

/// Refusal of a text that could not be read on a separate stack.
pub(crate) fn unread() -> Refusal {
    Refusal::NotAllowed("the text could not be read".to_owned())
}
