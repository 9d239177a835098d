//! `memory`: state that a policy keeps across all calls that it judges.

use tollgate_sdk::policy::{MemoryChange, MemoryError, Remembered};
use tollgate_store::storage::{Namespace, Session, StoreResult};
use wasmtime::component::{HasData, Linker};

use crate::bindings::policy::tollgate::host::memory::{self, Entry, Error};
use crate::facts::Facts;
use crate::memory::Memory;

pub(crate) struct View<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) session: &'a Session,
    pub(crate) namespace: &'a Namespace,
}

impl memory::Host for View<'_> {
    fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<Entry>, Error>> {
        Ok(self
            .with(|memory, session| memory.get(session, &key))
            .map(|found| found.map(entry)))
    }

    fn list(
        &mut self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<Entry>, Error>> {
        let found =
            self.with(|memory, session| memory.list(session, &prefix, after.as_deref(), limit).map(Ok));
        Ok(found.map(|found| found.into_iter().map(entry).collect()))
    }

    fn put(
        &mut self,
        key: String,
        text: String,
        until_ms: Option<i64>,
    ) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.change(&key, MemoryChange::Put { text, until_ms }).map(drop))
    }

    fn add(
        &mut self,
        key: String,
        amount: i64,
        until_ms: Option<i64>,
    ) -> wasmtime::Result<Result<i64, Error>> {
        Ok(self.change(&key, MemoryChange::Add { amount, until_ms }))
    }

    fn forget(&mut self, key: String) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.change(&key, MemoryChange::Forget).map(drop))
    }
}

impl View<'_> {
    fn change(&self, key: &str, change: MemoryChange) -> Result<i64, Error> {
        self.with(|memory, session| memory.change(session, self.namespace, key, change))
    }

    fn with<T>(
        &self,
        body: impl FnOnce(&Memory, &Session) -> StoreResult<Result<T, MemoryError>>,
    ) -> Result<T, Error> {
        let Some(memory) = &self.facts.memory else {
            return Err(Error::Denied);
        };
        match self.session.as_host(|| body(memory, self.session)) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(err)) => Err(wire(err)),
            Err(err) => {
                tracing::error!(op_id = self.facts.op_id, %err, "cannot read the memory of a policy");
                Err(Error::Internal)
            }
        }
    }
}

fn entry(found: Remembered) -> Entry {
    Entry {
        key: found.key,
        text: found.text,
        number: found.number,
        until: found.until_ms,
    }
}

fn wire(err: MemoryError) -> Error {
    match err {
        MemoryError::Denied => Error::Denied,
        MemoryError::Invalid(why) => Error::Invalid(why),
        MemoryError::Full(bytes) => Error::Full(bytes),
        MemoryError::Internal => Error::Internal,
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
    memory::add_to_linker::<_, HasView>(linker, view)
}
