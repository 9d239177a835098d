//! `log`: lines for the operator's log and the client, and progress for the client.

use tollgate_core::effect::Effect;
use wasmtime::component::{HasData, Linker};

use crate::bindings::tollgate::host::log::{self, Level};
use crate::progress::{Progress, Severity};

/// Longest line, in bytes.
const MAX_LINE: usize = 4 << 10;

pub(crate) struct View<'a> {
    pub(crate) pack: &'a str,
    pub(crate) effect: Effect,
    pub(crate) progress: &'a mut Progress,
}

impl log::Host for View<'_> {
    fn write(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        let line = tollgate_core::text::clean(tollgate_core::text::cut(&message, MAX_LINE));
        let pack = self.pack;
        let (severity, is_enabled) = match level {
            Level::Debug => (Severity::Debug, tracing::enabled!(tracing::Level::DEBUG)),
            Level::Info => (Severity::Info, tracing::enabled!(tracing::Level::INFO)),
            Level::Warn => (Severity::Warning, tracing::enabled!(tracing::Level::WARN)),
            Level::Error => (Severity::Error, tracing::enabled!(tracing::Level::ERROR)),
        };
        if is_enabled && self.progress.is_logged(line.len()) {
            match severity {
                Severity::Debug => tracing::debug!(pack, "{line}"),
                Severity::Info => tracing::info!(pack, "{line}"),
                Severity::Warning => tracing::warn!(pack, "{line}"),
                Severity::Error => tracing::error!(pack, "{line}"),
            }
        }
        self.progress.log(severity, pack, &line);
        Ok(())
    }

    fn progress(&mut self, done: u64, total: Option<u64>, message: String) -> wasmtime::Result<()> {
        if self.effect == Effect::Run {
            self.progress.tell(done, total, &message);
        }
        Ok(())
    }
}

struct HasView;

impl HasData for HasView {
    type Data<'a> = View<'a>;
}

pub(crate) fn add_to_linker<T: 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> wasmtime::Result<()> {
    log::add_to_linker::<_, HasView>(linker, view)
}
