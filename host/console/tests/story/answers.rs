//! A gate that knows one rule: the first answer counts.

use std::path::Path;

use futures::future::BoxFuture;
use tollgate_console::{Answering, PersonAnswer, Refusal};
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_sdk::ApprovalStatus;
use tollgate_store::data_dir::DataDir;
use tollgate_store::storage::{Answered, Database};

/// Answers go into the store of a data directory.
pub(crate) struct FirstCounts(Database);

impl FirstCounts {
    pub(crate) fn over(path: &Path) -> FirstCounts {
        let data = DataDir::open(path).unwrap();
        FirstCounts(Database::open(&data.database()).unwrap())
    }
}

impl Answering for FirstCounts {
    fn answer(&self, given: PersonAnswer) -> BoxFuture<'_, Result<(), Refusal>> {
        let session = self.0.write_session().unwrap();
        session.begin_write().unwrap();
        let identity = given.identity.map(|identity| identity.as_str().to_owned());
        let answer = Answered {
            status: match given.approves {
                true => ApprovalStatus::Approved,
                false => ApprovalStatus::Rejected,
            },
            by: Some(identity.clone().unwrap_or("owner".to_owned())),
            identity,
            op_id: "op_answer".to_owned(),
            note: given.note,
            at_ms: SystemClock.now_ms(),
        };
        let is_first = session.approvals().answer(&given.approval_id, &answer).unwrap();
        session.commit().unwrap();
        let said = is_first.then_some(()).ok_or_else(|| Refusal {
            code: "APPROVAL_ANSWERED".to_owned(),
            message: format!("the request {} is answered", given.approval_id),
            remediation: "An answer is final.".to_owned(),
        });
        Box::pin(async move { said })
    }
}
