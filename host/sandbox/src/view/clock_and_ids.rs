//! `clock-and-ids`: time and identifiers from the host.

use tollgate_core::clock::Clock;
use wasmtime::component::{HasData, Linker};

use crate::bindings::tollgate::host::clock_and_ids;

/// Longest prefix of an identifier.
const MAX_PREFIX: usize = 16;

pub(crate) struct View<'a> {
    pub(crate) clock: &'a dyn Clock,
}

impl clock_and_ids::Host for View<'_> {
    fn now(&mut self) -> wasmtime::Result<i64> {
        Ok(self.clock.now_ms())
    }

    fn new_id(&mut self, prefix: String) -> wasmtime::Result<String> {
        let clean: String = prefix
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
            .take(MAX_PREFIX)
            .collect();
        Ok(self.clock.new_id(&clean))
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
    clock_and_ids::add_to_linker::<_, HasView>(linker, view)
}
