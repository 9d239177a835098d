//! `judged-call`: the judged call's tool, past verdicts of the policy, and its question.

use tollgate_sdk::policy::memory::check_key;
use tollgate_store::storage::SaidByPolicy;
use wasmtime::component::{HasData, Linker};

use super::ledger::View;
use crate::bindings::policy::tollgate::host::judged_call::{
    self, Error, Filter, JudgedOperation, OwnVerdict,
};

/// Longest proposed arguments in bytes of JSON.
const MAX_ARGUMENTS: usize = 1 << 20;

impl judged_call::Host for View<'_> {
    fn input_schema(&mut self) -> wasmtime::Result<Option<String>> {
        let schema = self.facts.judged.as_ref().and_then(|judged| judged.schema());
        Ok(schema)
    }

    fn query(
        &mut self,
        filter: Filter,
        error_code: Option<String>,
    ) -> wasmtime::Result<Result<Vec<JudgedOperation>, Error>> {
        let name = self.facts.judged.as_ref().map(|judged| judged.name.clone());
        let own = |said: &SaidByPolicy| Some(&said.policy) == name.as_ref();
        let found = match self.judged_rows(filter, error_code) {
            Ok(found) => found,
            Err(err) => return Ok(Err(self.wire_error(err))),
        };
        let judged = found.into_iter().map(|(row, operation)| JudgedOperation {
            operation,
            verdicts: row.into_iter().filter(own).map(verdict).collect(),
        });
        Ok(Ok(judged.collect()))
    }

    fn bind_question(&mut self, key: String) -> wasmtime::Result<Result<(), String>> {
        let Some(judged) = &self.facts.judged else {
            return Ok(Err(
                "only a policy that evaluates a call can ask a question".to_owned()
            ));
        };
        Ok(check_key(&key)
            .map(|()| judged.bind(key))
            .map_err(|err| err.to_string()))
    }

    fn propose(&mut self, arguments: String) -> wasmtime::Result<Result<(), String>> {
        let Some(judged) = &self.facts.judged else {
            return Ok(Err(
                "only a policy that evaluates a call can propose arguments".to_owned()
            ));
        };
        if arguments.len() > MAX_ARGUMENTS {
            return Ok(Err(format!(
                "proposed arguments have at most {MAX_ARGUMENTS} bytes"
            )));
        }
        judged.propose(arguments);
        Ok(Ok(()))
    }
}

fn verdict(said: SaidByPolicy) -> OwnVerdict {
    OwnVerdict {
        phase: said.phase,
        mode: said.mode,
        verdict: said.verdict,
        code: said.code,
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
    judged_call::add_to_linker::<_, HasView>(linker, view)
}
