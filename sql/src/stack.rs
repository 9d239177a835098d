//! Room for reading: a stack of its own, so that no text ends a thread of the host, however it is nested.

use crate::refusal::Refusal;

/// Bytes of the stack. Only what a text needs of it is ever touched.
const STACK: usize = 64 << 20;

/// Runs `read` on a stack that is large enough for every text within the limits. `None` if it panicked or no
/// thread could be had, which costs this text and nothing else.
pub(crate) fn apart<T: Send>(read: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("sql-reader".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, read);
        thread.ok()?.join().ok()
    })
}

/// The refusal of a text for which there was no room.
pub(crate) fn unread() -> Refusal {
    Refusal::NotAllowed("the text could not be read".to_owned())
}
