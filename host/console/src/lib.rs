//! The console: web pages that show what happens at the gate, why calls were stopped, and what needs a person.
//!
//! Everything is rendered on the server. One script makes pages live, and they also work without it. The pages read the
//! store as the command line does, and leave no rows in the ledger.

mod access;
mod address;
mod answers;
pub mod app;
mod assets;
mod charts;
mod diff;
mod envelope;
mod figures;
mod filter;
mod guard;
mod headers;
mod host;
mod kept_parts;
mod layout;
mod pages;
mod reader;
mod rows;
mod structured;
mod tail;
mod timeline;
mod views;
mod visible;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tollgate_core::clock::Clock;
use tollgate_store::consoles::Consoles;

pub use access::{ConsoleSettings, Prove, Proven};
pub use answers::{Answering, PersonAnswer, Refusal};
pub use host::{Finding, HostFacts, HostView, PackRow, PolicyRow, Severity};
pub use reader::Reader;
pub use views::{PackPage, PackPages, Replied};

use access::Access;
use figures::Counting;
use kept_parts::Parts;
use tail::Tail;

/// Path of the console.
pub const CONSOLE_PATH: &str = "/console/";

/// Dependencies of a console.
pub struct ConsoleDependencies {
    /// Reads the store.
    pub reader: Reader,
    /// Source of facts about the host.
    pub host: Arc<dyn HostView>,
    /// Passes answers to the gate.
    pub answering: Arc<dyn Answering>,
    /// Pages of packs.
    pub packs: Arc<dyn PackPages>,
    /// One-time tokens of the data directory.
    pub consoles: Consoles,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Identities with access on a server that requires tokens. Changes apply to open sessions immediately.
    pub settings: watch::Receiver<ConsoleSettings>,
}

/// The console of one data directory.
struct Console {
    access: Access,
    reader: Reader,
    tail: Tail,
    figures: Counting,
    host: Arc<dyn HostView>,
    answering: Arc<dyn Answering>,
    packs: Arc<dyn PackPages>,
    clock: Arc<dyn Clock>,
    parts: Arc<Parts>,
    /// Ends streams when the server stops.
    stop: CancellationToken,
}

/// Routes of the console. `prove` checks tokens of identities, and `stop` ends streams and counting. Must be called in
/// a runtime.
pub fn router(
    dependencies: ConsoleDependencies,
    prove: Option<Prove>,
    stop: CancellationToken,
) -> Result<Router, getrandom::Error> {
    let clock = dependencies.clock;
    let access = Access::new(
        dependencies.settings,
        dependencies.consoles,
        prove,
        Arc::clone(&clock),
    )?;
    let parts = Arc::new(Parts::default());
    let console = Arc::new(Console {
        access,
        tail: Tail::new(dependencies.reader.clone(), Arc::clone(&parts)),
        figures: Counting::start(dependencies.reader.clone(), Arc::clone(&clock), stop.clone()),
        reader: dependencies.reader,
        host: dependencies.host,
        answering: dependencies.answering,
        packs: dependencies.packs,
        clock,
        parts,
        stop,
    });
    let inside = Router::new()
        .route("/console/", get(pages::live::show))
        .route("/console/live", get(pages::live::stream))
        .route("/console/parts", get(pages::parts::show))
        .route("/console/envelopes", get(pages::envelopes::list))
        .route("/console/envelopes/{id}", get(pages::envelopes::one))
        .route("/console/operations/{id}", get(pages::operation::show))
        .route("/console/approvals", get(pages::approvals::list))
        .route(
            "/console/approvals/{id}",
            get(pages::approvals::one).post(pages::approvals::answer),
        )
        .route("/console/policies", get(pages::policies::show))
        .route("/console/tests", get(pages::tests::show))
        .route("/console/stats", get(pages::stats::show))
        .route("/console/views", get(pages::views::first))
        .route("/console/views/{tool}", get(pages::views::one))
        .route("/console/host", get(pages::host::show))
        .route("/console/logout", post(pages::login::log_out))
        .route("/console/{*rest}", get(address::missing))
        .route_layer(from_fn_with_state(Arc::clone(&console), guard::admit));
    Ok(Router::new()
        .route("/console", get(async || guard::see_other(CONSOLE_PATH, None)))
        .route(
            "/console/login",
            get(pages::login::show).post(pages::login::log_in),
        )
        .route("/console/assets/{name}", get(assets::serve))
        .merge(inside)
        .layer(from_fn(headers::add))
        .with_state(console))
}
