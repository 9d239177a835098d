//! Views of a call's state: the part that each capability can access.

use wasmtime::component::Linker;

use crate::state::CallState;
use crate::view::{
    approvals, artifacts, budget, clock_and_ids, connections, judged_call, ledger, log, memory, process,
    storage, workspace,
};
use crate::waiting;

/// Links every capability that this host offers. A component that needs another capability is refused when it is
/// loaded.
pub(super) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    waiting::add_to_linker(linker, of_waiting)?;
    storage::add_to_linker(linker, of_storage)?;
    budget::add_to_linker(linker, of_budget)?;
    ledger::add_to_linker(linker, of_ledger)?;
    approvals::add_to_linker(linker, of_approvals)?;
    memory::add_to_linker(linker, of_memory)?;
    judged_call::add_to_linker(linker, of_ledger)?;
    artifacts::add_to_linker(linker, of_artifacts)?;
    clock_and_ids::add_to_linker(linker, of_clock_and_ids)?;
    connections::add_to_linker(linker, of_connections)?;
    log::add_to_linker(linker, of_log)?;
    workspace::add_to_linker(linker, of_workspace)?;
    process::add_to_linker(linker, of_process)
}

fn of_waiting(state: &mut CallState) -> waiting::View<'_> {
    waiting::View {
        table: &mut state.table,
        deadline: &state.deadline,
    }
}

fn of_storage(state: &mut CallState) -> storage::View<'_> {
    storage::View {
        namespace: &state.namespace,
        session: &state.session,
        transactions: &mut state.transactions,
        commits: &mut state.commits,
        side_effects: &mut state.side_effects,
        deadline: &state.deadline,
        transaction_time: state.transaction_time,
        table: &mut state.table,
    }
}

fn of_budget(state: &mut CallState) -> budget::View<'_> {
    budget::View {
        facts: &state.facts,
        effect: state.effect,
        session: &state.session,
        clock: &*state.clock,
        transactions: state.transactions,
        side_effects: &mut state.side_effects,
        held: &mut state.held,
        table: &mut state.table,
    }
}

fn of_ledger(state: &mut CallState) -> ledger::View<'_> {
    ledger::View {
        facts: &state.facts,
        session: &state.session,
        annotations: &mut state.annotations,
        namespace: &state.namespace,
        clock: &*state.clock,
        access: &state.access,
        launcher: &state.launcher,
        transactions: state.transactions,
    }
}

fn of_approvals(state: &mut CallState) -> approvals::View<'_> {
    approvals::View {
        facts: &state.facts,
        effect: state.effect,
        session: &state.session,
        clock: &*state.clock,
        transactions: state.transactions,
        side_effects: &mut state.side_effects,
        namespace: &state.namespace,
    }
}

fn of_memory(state: &mut CallState) -> memory::View<'_> {
    memory::View {
        facts: &state.facts,
        session: &state.session,
        namespace: &state.namespace,
    }
}

fn of_artifacts(state: &mut CallState) -> artifacts::View<'_> {
    artifacts::View {
        facts: &state.facts,
        effect: state.effect,
        artifacts: &state.artifacts,
    }
}

fn of_clock_and_ids(state: &mut CallState) -> clock_and_ids::View<'_> {
    clock_and_ids::View { clock: &*state.clock }
}

fn of_connections(state: &mut CallState) -> connections::View<'_> {
    connections::View {
        facts: &state.facts,
        effect: state.effect,
        session: &state.session,
    }
}

fn of_log(state: &mut CallState) -> log::View<'_> {
    log::View {
        pack: state.namespace.pack(),
        effect: state.effect,
        progress: &mut state.progress,
    }
}

fn of_workspace(state: &mut CallState) -> workspace::View<'_> {
    workspace::View {
        access: &state.access,
        effect: state.effect,
        side_effects: &mut state.side_effects,
        deferred_writes: &mut state.deferred_writes,
        prefetcher: &mut state.prefetcher,
        deadline: &state.deadline,
    }
}

fn of_process(state: &mut CallState) -> process::View<'_> {
    process::View {
        access: &state.access,
        launcher: &state.launcher,
        effect: state.effect,
        transactions: state.transactions,
        side_effects: &mut state.side_effects,
        deadline: &state.deadline,
        progress: &mut state.progress,
        artifacts: &state.artifacts,
        prefetcher: &mut state.prefetcher,
        session: &state.session,
        programs: state.facts.programs.as_deref(),
    }
}
