//! `log`: lines for the operator's log and the client, and progress for the client.

use wasmtime::component::{HasData, Linker};

use crate::packs::Effect;
use crate::progress::{Progress, Severity};
use crate::sandbox::CallState;
use crate::sandbox::bindings::tollgate::host::log::{self, Level};

/// Longest line, in bytes.
const MAX_LINE: usize = 4 << 10;

struct View<'a> {
    pack: &'a str,
    effect: Effect,
    progress: &'a mut Progress,
}

impl log::Host for View<'_> {
    fn write(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        let line = crate::text::clean(crate::text::cut(&message, MAX_LINE));
        let pack = self.pack;
        let severity = match level {
            Level::Debug => {
                tracing::debug!(pack, "{line}");
                Severity::Debug
            }
            Level::Info => {
                tracing::info!(pack, "{line}");
                Severity::Info
            }
            Level::Warn => {
                tracing::warn!(pack, "{line}");
                Severity::Warning
            }
            Level::Error => {
                tracing::error!(pack, "{line}");
                Severity::Error
            }
        };
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

pub(super) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    log::add_to_linker::<_, HasView>(linker, |state| View {
        pack: state.namespace.pack(),
        effect: state.effect,
        progress: &mut state.progress,
    })
}
