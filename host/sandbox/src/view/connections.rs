//! `connections`: tells whether a caller's connection, and with it what the caller holds, still exists.

use tollgate_core::effect::Effect;
use tollgate_core::hash;
use tollgate_store::storage::Session;
use wasmtime::component::{HasData, Linker};

use crate::bindings::tollgate::host::connections;
use crate::facts::Facts;

/// Longest name that is looked up.
const MAX_NAME: usize = 100;
/// Characters of the hash in a name.
const HASH_CHARS: usize = 32;

pub(crate) struct View<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) effect: Effect,
    pub(crate) session: &'a Session,
}

impl connections::Host for View<'_> {
    fn current(&mut self) -> wasmtime::Result<Option<String>> {
        let (Some(host), Some(connection)) = (&self.facts.host, &self.facts.connection) else {
            return Ok(None);
        };
        if self.effect != Effect::Write {
            return Ok(None);
        }
        let name = name(host.id(), connection);
        // Recorded in the host before the row is written, so that the end is never missed.
        host.watch(connection);
        let session = self.session;
        session.as_host(|| session.connections().watch(&name, host.id(), connection))?;
        Ok(Some(name))
    }

    fn is_open(&mut self, name: String) -> wasmtime::Result<bool> {
        let Some(host) = self.facts.host.as_ref().filter(|_| name.len() <= MAX_NAME) else {
            return Ok(false);
        };
        let session = self.session;
        let served_by = session.as_host(|| session.connections().host_of(&name))?;
        Ok(served_by.is_some_and(|served_by| served_by == host.id() || host.is_alive(&served_by)))
    }
}

/// Name of a connection. Identifiers of hosts and connections are internal.
fn name(host: &str, connection: &str) -> String {
    let hash = hash::sha256_hex(format!("{host}\n{connection}").as_bytes());
    format!("conn_{}", hash.get(..HASH_CHARS).unwrap_or(&hash))
}

struct HasView;

impl HasData for HasView {
    type Data<'a> = View<'a>;
}

pub(crate) fn add_to_linker<T: 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> wasmtime::Result<()> {
    connections::add_to_linker::<_, HasView>(linker, view)
}
