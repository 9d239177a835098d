//! `storage`: SQL over the component's own tables.

use std::time::Duration;

use tollgate_core::deadline::Deadline;
use tollgate_store::storage::{Namespace, Session, SqlError, Statement, Value};
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};

use crate::bindings::tollgate::host::storage::{self, Error, Statement as WireStatement, Value as WireValue};
use crate::bound_types::Transaction;
use crate::facts::Transactions;
use crate::side_effects::SideEffects;

pub(crate) struct View<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) session: &'a Session,
    pub(crate) transactions: &'a mut Transactions,
    pub(crate) commits: &'a mut u32,
    pub(crate) side_effects: &'a mut SideEffects,
    /// Deadline of the call, or of its open transaction.
    pub(crate) deadline: &'a Deadline,
    pub(crate) transaction_time: Duration,
    pub(crate) table: &'a mut ResourceTable,
}

impl View<'_> {
    /// Checks that the call's own transaction is open, which a statement outside `transaction` needs.
    fn whole_call(&self) -> Result<(), SqlError> {
        match self.transactions {
            Transactions::WholeCall => Ok(()),
            Transactions::None | Transactions::Open => Err(SqlError::TransactionState(
                "a `run` tool can access storage only in a transaction".to_owned(),
            )),
        }
    }
}

impl View<'_> {
    fn rows(&mut self, sql: &str, params: Vec<WireValue>) -> Result<Vec<Vec<WireValue>>, SqlError> {
        let (namespace, params) = (self.namespace, values(params));
        let rows = self.watched(|session| session.components().query(namespace, sql, &params))?;
        let wire = |row: Vec<Value>| row.into_iter().map(WireValue::from).collect();
        Ok(rows.into_iter().map(wire).collect())
    }

    fn change(&mut self, sql: &str, params: Vec<WireValue>) -> Result<u64, SqlError> {
        let (namespace, params) = (self.namespace, values(params));
        self.watched(|session| session.components().execute(namespace, sql, &params))
    }

    /// Runs a statement of the component, and records whether it changed rows. A statement may do so and still fail,
    /// for example if it returns too many of them.
    fn watched<T>(&mut self, run: impl FnOnce(&Session) -> Result<T, SqlError>) -> Result<T, SqlError> {
        let before = self.session.row_changes();
        let result = run(self.session);
        if self.session.row_changes() != before {
            self.side_effects.change_rows(*self.transactions);
        }
        result
    }
}

fn values(params: Vec<WireValue>) -> Vec<Value> {
    params.into_iter().map(Value::from).collect()
}

impl From<WireValue> for Value {
    fn from(value: WireValue) -> Value {
        match value {
            WireValue::Null => Value::Null,
            WireValue::Integer(number) => Value::Integer(number),
            WireValue::Real(number) => Value::Real(number),
            WireValue::Text(text) => Value::Text(text),
            WireValue::Blob(bytes) => Value::Blob(bytes),
        }
    }
}

impl From<Value> for WireValue {
    fn from(value: Value) -> WireValue {
        match value {
            Value::Null => WireValue::Null,
            Value::Integer(number) => WireValue::Integer(number),
            Value::Real(number) => WireValue::Real(number),
            Value::Text(text) => WireValue::Text(text),
            Value::Blob(bytes) => WireValue::Blob(bytes),
        }
    }
}

impl From<WireStatement> for Statement {
    fn from(statement: WireStatement) -> Statement {
        Statement {
            sql: statement.sql,
            params: values(statement.params),
        }
    }
}

impl storage::Host for View<'_> {
    fn query(&mut self, sql: String, params: Vec<WireValue>) -> Result<Vec<Vec<WireValue>>, SqlError> {
        self.whole_call()?;
        self.rows(&sql, params)
    }

    fn execute(&mut self, sql: String, params: Vec<WireValue>) -> Result<u64, SqlError> {
        self.whole_call()?;
        self.change(&sql, params)
    }

    fn batch(&mut self, statements: Vec<WireStatement>) -> Result<Vec<u64>, SqlError> {
        self.whole_call()?;
        let statements: Vec<_> = statements.into_iter().map(Statement::from).collect();
        let namespace = self.namespace;
        self.watched(|session| session.components().batch(namespace, &statements))
    }

    fn convert_error(&mut self, err: SqlError) -> wasmtime::Result<Error> {
        Ok(match err {
            SqlError::Refused(why) => Error::Refused(why),
            SqlError::Constraint(why) => Error::Constraint(why),
            SqlError::ReadOnly => Error::ReadOnly,
            SqlError::TooLarge(why) => Error::TooLarge(why),
            SqlError::Full => Error::Full,
            SqlError::Interrupted => Error::Interrupted,
            SqlError::Memory => Error::TooLarge(err.to_string()),
            SqlError::TransactionState(why) => Error::TransactionState(why),
            SqlError::Internal(err) => {
                tracing::error!(pack = self.namespace.pack(), %err, "a component's statement failed");
                Error::Internal
            }
        })
    }
}

impl storage::HostTransaction for View<'_> {
    fn begin(&mut self) -> Result<Resource<Transaction>, SqlError> {
        match self.transactions {
            Transactions::None => {}
            Transactions::WholeCall => {
                return Err(SqlError::TransactionState(
                    "the call already runs in a transaction".to_owned(),
                ));
            }
            Transactions::Open => {
                return Err(SqlError::TransactionState(
                    "a transaction is already open".to_owned(),
                ));
            }
        }
        let handle = self
            .table
            .push(Transaction(()))
            .map_err(|_| SqlError::TooLarge("the call has reached its limit of open resources".to_owned()))?;
        let begun = self
            .session
            .as_host(|| self.session.begin_write_before(self.deadline));
        if let Err(err) = begun {
            self.table.delete(handle).ok();
            return Err(match self.deadline.is_over() {
                true => SqlError::Interrupted,
                false => err.into(),
            });
        }
        // All writers wait for this transaction, so it lasts no longer than a `write` call. A guest that takes longer
        // is stopped wherever it is: in its own code, in SQL, asleep, or waiting for a program.
        self.deadline.narrow(self.transaction_time);
        *self.transactions = Transactions::Open;
        Ok(handle)
    }

    fn query(
        &mut self,
        _this: Resource<Transaction>,
        sql: String,
        params: Vec<WireValue>,
    ) -> Result<Vec<Vec<WireValue>>, SqlError> {
        self.rows(&sql, params)
    }

    fn execute(
        &mut self,
        _this: Resource<Transaction>,
        sql: String,
        params: Vec<WireValue>,
    ) -> Result<u64, SqlError> {
        self.change(&sql, params)
    }

    fn commit(&mut self, this: Resource<Transaction>) -> Result<(), SqlError> {
        self.table
            .delete(this)
            .map_err(|_| SqlError::TransactionState("the transaction has ended".to_owned()))?;
        *self.transactions = Transactions::None;
        self.side_effects.commit();
        let committed = self.session.as_host(|| self.session.commit());
        self.deadline.widen();
        committed?;
        *self.commits += 1;
        Ok(())
    }

    fn drop(&mut self, this: Resource<Transaction>) -> wasmtime::Result<()> {
        self.table.delete(this)?;
        *self.transactions = Transactions::None;
        self.side_effects.roll_back();
        if self.session.in_transaction() {
            self.session.as_host(|| self.session.rollback())?;
        } else {
            self.session.end_turn();
        }
        self.deadline.widen();
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
    storage::add_to_linker::<_, HasView>(linker, view)
}
