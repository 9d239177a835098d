//! Work of a workspace or plan by rank.

use std::collections::BTreeMap;

use tollgate_sdk::ToolError;

use super::search::of_steps;
use super::{Outlook, Piece, Wait, dependencies, plan_waits};
use crate::closing;
use crate::model::{Priority, RootKind, Status};
use crate::record::{Meta, Plan, Task};
use crate::scope::Scope;
use crate::store::root::{Head, Rank, Wanted, completable, count_open, page, ranked};

/// Tasks that are read at once.
const PAGE_TASKS: usize = 50;
/// Most tasks that one call examines.
const MAX_EXAMINED: usize = 5_000;
/// Most tasks behind the last ready one that are examined for obstacles.
const MAX_LATE: usize = 100;

/// Most entries of each list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub ready: usize,
    pub waiting: usize,
}

/// Ready and waiting work, each at most as long as asked for.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub ready: Vec<Ready>,
    pub waiting: Vec<(Meta, Vec<Wait>)>,
    /// True if there is more of either.
    pub more: bool,
}

/// A piece of work with its plan or task.
#[derive(Debug)]
pub(crate) struct Ready {
    pub root: Meta,
    pub piece: Piece,
    /// Obstacles in front of the piece, such as steps that others hold.
    pub waits: Vec<Wait>,
}

/// The work of a workspace or plan: ACTIVE tasks first, then higher priority, then lower number. Plans to complete
/// come last. Tasks of parked and finished plans are left out.
pub(crate) fn queue(
    scope: &Scope<'_>,
    plan: Option<&str>,
    owner: Option<&str>,
    limits: Limits,
) -> Result<Queue, ToolError> {
    let mut search = Search {
        scope,
        owner,
        limits,
        plans: BTreeMap::new(),
        queue: Queue::default(),
        examined: 0,
        late: 0,
    };
    for status in [Status::Active, Status::Todo] {
        for priority in Priority::ALL.iter().rev() {
            let rank = Rank {
                status,
                priority: *priority,
                after: 0,
            };
            if !search.rank(plan, rank)? {
                search.queue.more = true;
                return Ok(search.queue);
            }
        }
    }
    search.completions(plan)?;
    Ok(search.queue)
}

struct Search<'a> {
    scope: &'a Scope<'a>,
    owner: Option<&'a str>,
    limits: Limits,
    /// Reasons that stop all tasks of a plan, by plan.
    plans: BTreeMap<String, Vec<Wait>>,
    queue: Queue,
    examined: usize,
    late: usize,
}

impl Search<'_> {
    /// Adds the tasks of one rank. Returns false if both lists are full, or too many tasks were examined.
    fn rank(&mut self, plan: Option<&str>, mut rank: Rank) -> Result<bool, ToolError> {
        loop {
            let heads = ranked(self.scope.db(), &self.scope.workspace, plan, rank, PAGE_TASKS)?;
            let count = heads.len();
            for head in heads {
                rank.after = head.number;
                if self.is_full() || self.examined >= MAX_EXAMINED || self.late >= MAX_LATE {
                    return Ok(false);
                }
                self.task(&head)?;
            }
            if count < PAGE_TASKS {
                return Ok(true);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.queue.ready.len() >= self.limits.ready && self.queue.waiting.len() >= self.limits.waiting
    }

    fn task(&mut self, head: &Head) -> Result<(), ToolError> {
        self.examined += 1;
        let Some(task) = self.scope.get::<Task>(&head.id)? else {
            return Ok(());
        };
        let mut waits = self.plan(&task.plan)?.clone();
        if waits.iter().any(|wait| matches!(wait, Wait::Standing { .. })) {
            return Ok(());
        }
        waits.extend(dependencies(self.scope, &task.meta)?);
        let outlook = if waits.is_empty() {
            self.late += usize::from(self.queue.ready.len() >= self.limits.ready);
            of_steps(self.scope, &task, self.owner)?
        } else {
            Outlook::waiting(waits)
        };
        self.add(task.meta, outlook);
        Ok(())
    }

    fn add(&mut self, root: Meta, outlook: Outlook) {
        let Queue { ready, waiting, more } = &mut self.queue;
        match outlook.piece {
            Some(piece) if ready.len() < self.limits.ready => ready.push(Ready {
                root,
                piece,
                waits: outlook.waits,
            }),
            None if waiting.len() < self.limits.waiting => waiting.push((root, outlook.waits)),
            _ => *more = true,
        }
    }

    /// Adds plans whose tasks are all finished.
    fn completions(&mut self, plan: Option<&str>) -> Result<(), ToolError> {
        let (db, workspace) = (self.scope.db(), &self.scope.workspace);
        let ids: Vec<String> = match plan {
            None => completable(db, workspace, self.limits.ready.saturating_add(1))?
                .into_iter()
                .map(|head| head.id)
                .collect(),
            Some(plan) if self.is_completable(plan)? => vec![plan.to_owned()],
            Some(_) => Vec::new(),
        };
        for id in ids {
            let Some(plan) = self.scope.get::<Plan>(&id)? else {
                continue;
            };
            let mut waits = self.plan(&id)?.clone();
            if closing::proves_nothing(self.scope, &id)? {
                waits.push(Wait::Undone(plan.meta.clone()));
            }
            let piece = waits.is_empty().then(|| Piece::Complete(plan.meta.clone()));
            self.add(plan.meta, Outlook { piece, waits });
        }
        Ok(())
    }

    fn is_completable(&self, plan: &str) -> Result<bool, ToolError> {
        let (db, workspace) = (self.scope.db(), &self.scope.workspace);
        let finished = Wanted {
            kind: RootKind::Task,
            plan: Some(plan),
            statuses: &[Status::Done, Status::Canceled],
            after: 0,
            limit: 1,
        };
        let is_open = matches!(self.scope.head(plan)?.status, Some(Status::Todo | Status::Active));
        Ok(is_open && count_open(db, workspace, plan)? == 0 && !page(db, workspace, &finished)?.is_empty())
    }

    fn plan(&mut self, id: &str) -> Result<&Vec<Wait>, ToolError> {
        if !self.plans.contains_key(id) {
            let waits = match self.scope.get::<Plan>(id)? {
                Some(plan) => plan_waits(self.scope, &plan.meta)?,
                None => Vec::new(),
            };
            self.plans.insert(id.to_owned(), waits);
        }
        Ok(self.plans.entry(id.to_owned()).or_default())
    }
}
