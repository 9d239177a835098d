//! Obtains the code of components from the cache, from this program, or from the compiler.

use std::borrow::Cow;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use wasmtime::component::Component;

use super::cache::{How, load_copied};
use super::code_cache::Code;
use super::compile::CompileError;
use super::loader::Loader;
use super::origin::Origin;
use super::problems::one;
use super::version;
use crate::builtin;
use crate::world::World;

/// Compile time above which the operator is told.
const SLOW_COMPILE_LIMIT: Duration = Duration::from_secs(1);

/// Code of a component before it is linked.
pub struct Prepared {
    /// The code.
    pub code: Code,
    /// SHA-256 of the component, in hex.
    pub hash: String,
    /// Its size in bytes.
    pub size: usize,
}

/// Scope of the loading that is done before tools can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Haste {
    /// Components that need neither the compiler nor another machine. The rest is left out for now.
    AtHand,
    /// Descriptions of all components. Code of packs that were described before is loaded on demand.
    Described,
    /// Everything.
    Whole,
}

impl Loader {
    /// Source of the code of the component with a SHA-256, and the time it took to load.
    pub fn brought(&self, hash: &str) -> Option<(How, Duration)> {
        let brought = self.brought.lock().unwrap_or_else(PoisonError::into_inner);
        brought.get(hash).copied()
    }

    /// Loads code from a source: reads the bytes, compares them with the pin, checks them, and compiles them or finds
    /// the code in the cache. `None` if that takes longer than the given time.
    pub async fn prepare(
        &self,
        origin: &Origin,
        pin: Option<&str>,
        world: World,
        haste: Haste,
    ) -> Result<Option<Prepared>, Vec<String>> {
        let Some(bytes) = self.bytes(origin, haste).await? else {
            return Ok(None);
        };
        let hash = pinned(&bytes, pin)?;
        let code = match haste {
            Haste::AtHand => {
                check(&bytes, &hash, world)?;
                match self.code_at_hand(&hash).await {
                    Some(code) => code,
                    None => return Ok(None),
                }
            }
            Haste::Described | Haste::Whole => {
                self.checked(&origin.to_string(), &bytes, &hash, world).await?
            }
        };
        Ok(Some(Prepared {
            code,
            hash,
            size: bytes.len(),
        }))
    }

    /// Bytes of a source. `None` if they are on another machine and there is no time to fetch them.
    pub(crate) async fn bytes(
        &self,
        origin: &Origin,
        haste: Haste,
    ) -> Result<Option<Cow<'static, [u8]>>, Vec<String>> {
        if haste == Haste::AtHand && matches!(origin, Origin::Https { .. } | Origin::Oci { .. }) {
            return Ok(None);
        }
        origin.bytes(&self.downloads).await.map(Some)
    }

    /// Checks a component and loads its code.
    pub(crate) async fn checked(
        &self,
        what: &str,
        bytes: &[u8],
        hash: &str,
        world: World,
    ) -> Result<Code, Vec<String>> {
        check(bytes, hash, world)?;
        let what = builtin::name(hash).unwrap_or(what);
        self.codes.get(hash, self.compiled(what, bytes, hash)).await
    }

    /// Compiles a component, unless its code is at hand.
    async fn compiled(&self, what: &str, bytes: &[u8], hash: &str) -> Result<Component, Vec<String>> {
        if let Some(component) = self.at_hand(hash).await {
            return Ok(component);
        }
        let started = Instant::now();
        let mut compiling = std::pin::pin!(self.compile(bytes, hash));
        let component = match tokio::time::timeout(SLOW_COMPILE_LIMIT, &mut compiling).await {
            Ok(component) => component?,
            Err(_) => {
                tracing::warn!("compiling {what}, once for each release of this program");
                let component = compiling.await?;
                tracing::warn!("compiled {what} in {} s", started.elapsed().as_secs());
                component
            }
        };
        self.note(hash, How::Compiled, started);
        Ok(component)
    }

    /// Compiles a component in a child process, and again without a cache if the code could not be stored.
    async fn compile(&self, bytes: &[u8], hash: &str) -> Result<Component, Vec<String>> {
        let refused = |err: CompileError| one(err);
        let engine = self.sandbox.engine();
        let mut code = None;
        if let Some(home) = self.cache.keeps_in() {
            let settings = tollgate_engine::settings(engine);
            code = self
                .compiler
                .keep(bytes, home, hash, &settings)
                .await
                .map_err(refused)?;
            if let (None, Some(component)) = (&code, self.cache.compiled(engine, hash)) {
                return Ok(component);
            }
        }
        let code = match code {
            Some(code) => code,
            None => self.compiler.compile(bytes).await.map_err(refused)?,
        };
        load_copied(engine, &code).map_err(|err| vec![format!("cannot load its compiled code: {err:#}")])
    }

    /// Manifest of the component with a SHA-256, as JSON, recorded by the build of this program or by an earlier
    /// load.
    pub(crate) fn known_manifest(&self, hash: &str) -> Option<Cow<'static, str>> {
        match builtin::manifest(hash) {
            Some(said) => Some(said.into()),
            None => Some(self.cache.manifest(self.sandbox.engine(), hash)?.into()),
        }
    }

    /// Stores a component's description of itself.
    pub(crate) fn keep_manifest(&self, hash: &str, said: &str) {
        self.cache.keep_manifest(self.sandbox.engine(), hash, said);
    }

    /// Code of a component, if it is at hand.
    pub(crate) async fn code_at_hand(&self, hash: &str) -> Option<Code> {
        let at_hand = async { self.at_hand(hash).await.ok_or(()) };
        self.codes.get(hash, at_hand).await.ok()
    }

    /// Code of a component from the cache or from this binary. Dominates the start time, so components are read in
    /// parallel.
    async fn at_hand(&self, hash: &str) -> Option<Component> {
        let started = Instant::now();
        let (loader, own) = (self.clone(), hash.to_owned());
        let got = tokio::task::spawn_blocking(move || loader.cache.get(loader.sandbox.engine(), &own)).await;
        let (component, how) = got.ok()??;
        self.note(hash, how, started);
        Some(component)
    }

    fn note(&self, hash: &str, how: How, started: Instant) {
        let mut brought = self.brought.lock().unwrap_or_else(PoisonError::into_inner);
        brought.insert(hash.to_owned(), (how, started.elapsed()));
    }
}

/// Checks a component's bytes. Built-in components were checked at build time.
fn check(bytes: &[u8], hash: &str, world: World) -> Result<(), Vec<String>> {
    if builtin::world(hash) == Some(world) {
        return Ok(());
    }
    version::check(bytes, world).map_err(one)
}

/// SHA-256 of a component's bytes, compared with the pin if there is one.
pub(crate) fn pinned(bytes: &[u8], pin: Option<&str>) -> Result<String, Vec<String>> {
    let hash = builtin::sha256(bytes);
    match pin.filter(|pin| !pin.eq_ignore_ascii_case(&hash)) {
        Some(pin) => Err(vec![format!(
            "its SHA-256 is {hash}, but the pinned one is {pin}; pin the new one if you trust the change"
        )]),
        None => Ok(hash),
    }
}
