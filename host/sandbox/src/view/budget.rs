//! `budget`: the envelope of the call, and units of its named budgets.
//!
//! A `write` call holds the write lock, so its reservations are kept in memory and its bookings are part of its
//! transaction. A `run` call holds no lock: its reservation is a row, so that other calls and hosts see it, and so
//! that it is released when the call or its host ends. A policy has only a snapshot, so the judged call takes the
//! units that the policy books, in the call's own commit.

use std::collections::BTreeMap;

use tollgate_core::budget::{Budget, Exhausted, booked};
use tollgate_core::clock::Clock;
use tollgate_core::effect::Effect;
use tollgate_core::envelope::State;
use tollgate_core::text;
use tollgate_store::storage::{self, Session, StoreError};
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};

use crate::bindings::tollgate::host::budget::{self, Counter, Envelope};
use crate::bound_types::{BudgetError, Reservation};
use crate::facts::{Facts, Transactions};
use crate::side_effects::SideEffects;
use crate::sitting::Sitting;

pub(crate) struct View<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) effect: Effect,
    pub(crate) session: &'a Session,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) transactions: Transactions,
    pub(crate) side_effects: &'a mut SideEffects,
    /// Units that a `write` call has reserved, by budget.
    pub(crate) held: &'a mut BTreeMap<String, i64>,
    pub(crate) table: &'a mut ResourceTable,
}

impl budget::Host for View<'_> {
    fn current(&mut self) -> wasmtime::Result<Option<Envelope>> {
        let Some(id) = &self.facts.envelope_id else {
            return Ok(None);
        };
        let standing = self.session.as_host(|| self.session.envelopes().standing(id))?;
        let budgets = self.session.as_host(|| self.session.budgets().list(id, None))?;
        let boot_ms = self.clock.boot_ms();
        let left_ms = || self.session.envelopes().remaining_ms(id, boot_ms);
        let left_ms = self.session.as_host(left_ms)?;
        Ok(standing.map(|standing| {
            let own = [
                ("mutations", standing.mutations, standing.limits.max_mutations),
                ("test_runs", standing.test_runs, standing.limits.max_test_runs),
            ];
            let limit = standing.limits.max_edits;
            let edits = (standing.edits > 0 || limit.is_some()).then_some(("edits", standing.edits, limit));
            let own = own.into_iter().chain(edits).map(|(name, used, limit)| Counter {
                name: name.to_owned(),
                used: unsigned(used),
                limit: limit.map(unsigned),
            });
            let named = budgets.into_iter().map(|(name, budget)| {
                let budget = self.with_held(&name, budget);
                counter(name, budget)
            });
            Envelope {
                id: id.clone(),
                counters: own.chain(named).collect(),
                remaining_seconds: left_ms.map(|left_ms| unsigned(left_ms.saturating_add(999) / 1_000)),
            }
        }))
    }

    fn reserve(&mut self, name: String, amount: u64) -> Result<Resource<Reservation>, BudgetError> {
        if !self.facts.granted.may_reserve(&name) {
            return Err(BudgetError::Unknown(name));
        }
        let Some(envelope) = &self.facts.envelope_id else {
            return Err(BudgetError::NoEnvelope);
        };
        if let Some(sitting) = self.facts.sitting.as_ref().filter(|_| self.facts.is_policy) {
            return self.reserve_for_call(envelope, name, amount, sitting);
        }
        match (self.effect, self.transactions) {
            (Effect::Read, _) => Err(BudgetError::ReadOnly),
            (Effect::Run, Transactions::Open) => Err(BudgetError::TransactionOpen),
            (Effect::Run, _) => self.reserve_in_row(envelope, name, amount),
            (Effect::Write, _) => {
                self.in_call(|| self.reservable(envelope, &name, amount))?;
                self.hold(name, amount)
            }
        }
    }

    fn convert_error(&mut self, err: BudgetError) -> wasmtime::Result<budget::Error> {
        Ok(match err {
            BudgetError::NoEnvelope => budget::Error::NoEnvelope,
            BudgetError::Unknown(name) => budget::Error::Unknown(text::clean(text::cut(&name, 64))),
            BudgetError::Exhausted(name, budget) => budget::Error::Exhausted(counter(name, budget)),
            BudgetError::ReadOnly => budget::Error::ReadOnly,
            BudgetError::TransactionOpen => budget::Error::TransactionOpen,
            BudgetError::Storage(err) => {
                tracing::error!(op_id = self.facts.op_id, %err, "cannot use a component's budget");
                budget::Error::Internal
            }
            BudgetError::Table(err) => return Err(err.into()),
        })
    }
}

impl budget::HostReservation for View<'_> {
    fn commit(&mut self, this: Resource<Reservation>, used: u64) -> Result<(), BudgetError> {
        let reservation = self.table.delete(this)?;
        let Some(envelope) = &self.facts.envelope_id else {
            return Err(BudgetError::NoEnvelope);
        };
        let units = booked(reservation.units, used);
        let name = reservation.name.as_str();
        if let Some(sitting) = self.facts.sitting.as_ref().filter(|_| self.facts.is_policy) {
            self.release_held(&reservation);
            sitting.reserve(name, units).map_err(|_| BudgetError::ReadOnly)?;
            return Ok(());
        }
        self.side_effects.change_rows(self.transactions);
        match &reservation.id {
            None => {
                self.release_held(&reservation);
                self.in_call(|| Ok(self.session.budgets().book(envelope, name, units)?))?;
            }
            Some(id) => self.in_transaction(|| {
                // The row is deleted with the envelope, or with a host that was declared dead.
                if !self.session.budgets().give_back(id)? {
                    return Err(BudgetError::NoEnvelope);
                }
                Ok(self.session.budgets().book(envelope, name, units)?)
            })?,
        }
        if used > unsigned(reservation.units) {
            let budget = self
                .session
                .as_host(|| self.session.budgets().get(envelope, name))?;
            let budget = budget.ok_or(BudgetError::NoEnvelope)?;
            return Err(BudgetError::Exhausted(reservation.name, budget));
        }
        Ok(())
    }

    fn drop(&mut self, this: Resource<Reservation>) -> wasmtime::Result<()> {
        let reservation = self.table.delete(this)?;
        match &reservation.id {
            None => self.release_held(&reservation),
            // Units that cannot be released now are released at the end of the call.
            Some(id) => {
                if let Err(err) = self.in_transaction(|| Ok(self.session.budgets().give_back(id)?)) {
                    tracing::warn!(op_id = self.facts.op_id, %err, "a reservation stays until the end of its call");
                }
            }
        }
        Ok(())
    }
}

impl View<'_> {
    /// Reserves units that the judged call will take, if the snapshot has them. The call's commit decides.
    fn reserve_for_call(
        &mut self,
        envelope: &str,
        name: String,
        amount: u64,
        sitting: &Sitting,
    ) -> Result<Resource<Reservation>, BudgetError> {
        let standing = self
            .session
            .as_host(|| self.session.envelopes().standing(envelope))?;
        if standing.is_none_or(|standing| standing.state != State::Open) {
            return Err(BudgetError::NoEnvelope);
        }
        let budget = self
            .session
            .as_host(|| self.session.budgets().get(envelope, &name))?;
        let mut budget = budget.ok_or_else(|| BudgetError::Unknown(name.clone()))?;
        budget.reserved = budget.reserved.saturating_add(sitting.reserved(&name));
        if let Err(Exhausted(budget)) = self.with_held(&name, budget).reserve(amount) {
            return Err(BudgetError::Exhausted(name, budget));
        }
        self.hold(name, amount)
    }

    /// Checks that this many units can be reserved, inside the transaction that reserves them.
    fn reservable(&self, envelope: &str, name: &str, amount: u64) -> Result<(), BudgetError> {
        let standing = self.session.envelopes().standing(envelope)?;
        if standing.is_none_or(|standing| standing.state != State::Open) {
            return Err(BudgetError::NoEnvelope);
        }
        let unknown = || BudgetError::Unknown(name.to_owned());
        let budget = self.session.budgets().get(envelope, name)?.ok_or_else(unknown)?;
        let Err(Exhausted(_)) = self.with_held(name, budget).reserve(amount) else {
            return Ok(());
        };
        // Dead hosts may hold some of the units.
        for host in self
            .session
            .budgets()
            .hosts_of_reservations(Some((envelope, name)))?
        {
            if self.facts.host.as_ref().is_some_and(|own| !own.is_alive(&host)) {
                self.session.budgets().give_back_of_host(&host)?;
            }
        }
        let budget = self.session.budgets().get(envelope, name)?.ok_or_else(unknown)?;
        self.with_held(name, budget)
            .reserve(amount)
            .map(drop)
            .map_err(|Exhausted(budget)| BudgetError::Exhausted(name.to_owned(), budget))
    }

    fn reserve_in_row(
        &mut self,
        envelope: &str,
        name: String,
        amount: u64,
    ) -> Result<Resource<Reservation>, BudgetError> {
        let row = storage::Reservation {
            id: self.clock.new_id("rsv"),
            envelope_id: envelope.to_owned(),
            units: signed(amount),
            op_id: self.facts.op_id.clone(),
            host_id: self.facts.host_id().to_owned(),
            name,
        };
        self.in_transaction(|| {
            self.reservable(envelope, &row.name, amount)?;
            Ok(self.session.budgets().set_aside(&row)?)
        })?;
        Ok(self.table.push(Reservation {
            name: row.name,
            units: row.units,
            id: Some(row.id),
        })?)
    }

    /// Runs `body` inside the `write` call's own transaction, which SQLite may have rolled back.
    fn in_call<T>(&self, body: impl FnOnce() -> Result<T, BudgetError>) -> Result<T, BudgetError> {
        if !self.session.in_transaction() {
            return Err(StoreError::no_session().into());
        }
        self.session.as_host(body)
    }

    /// Runs `body` in the `run` call's open transaction, or otherwise in a short one of its own.
    fn in_transaction<T>(&self, body: impl FnOnce() -> Result<T, BudgetError>) -> Result<T, BudgetError> {
        if self.transactions == Transactions::Open {
            return self.in_call(body);
        }
        self.session.as_host(|| {
            self.session.begin_write()?;
            let result = body().and_then(|value| {
                self.session.commit()?;
                Ok(value)
            });
            if self.session.in_transaction() {
                self.session.rollback()?;
            }
            result
        })
    }

    fn with_held(&self, name: &str, budget: Budget) -> Budget {
        let held = self.held.get(name).copied().unwrap_or_default();
        Budget {
            reserved: budget.reserved.saturating_add(held),
            ..budget
        }
    }

    /// Adds units to those that the call holds until its row is written.
    fn hold(&mut self, name: String, amount: u64) -> Result<Resource<Reservation>, BudgetError> {
        let units = signed(amount);
        let resource = self.table.push(Reservation {
            name: name.clone(),
            units,
            id: None,
        })?;
        *self.held.entry(name).or_default() += units;
        Ok(resource)
    }

    fn release_held(&mut self, reservation: &Reservation) {
        if let Some(held) = self.held.get_mut(&reservation.name) {
            *held -= reservation.units;
        }
    }
}

fn counter(name: String, budget: Budget) -> Counter {
    Counter {
        name,
        used: unsigned(budget.used.saturating_add(budget.reserved)),
        limit: Some(unsigned(budget.limit)),
    }
}

fn unsigned(units: i64) -> u64 {
    u64::try_from(units).unwrap_or_default()
}

fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

struct HasView;

impl HasData for HasView {
    type Data<'a> = View<'a>;
}

pub(crate) fn add_to_linker<T: 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> wasmtime::Result<()> {
    budget::add_to_linker::<_, HasView>(linker, view)
}
