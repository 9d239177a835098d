//! MCP tasks: cost of a task compared with the durable write of the same call, of many waiting tasks, and of a request
//! for one.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{Setup, config_with_tokens};
use crate::http::{Connection, Server};
use crate::machine;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::{Round, Sample, take_turns};
use crate::workload::{self, Kind};

/// Token of the client.
const TOKEN: &str = "ada-0123456789abcdef0123456789abcdef";
/// A policy that asks the client's user about each call with such a title.
const POLICY: &str = r#"[policies.ask]
source = "builtin:cel"
tools = ["task_create"]
config = { when = "arguments.title.startsWith('Held')", then = "ask", message = "Really?", code = "NOT_ALLOWED", remediation = "Get a yes." }
"#;
/// Number of held calls in one round. An owner has at most 2,000 open tasks.
const HELD: usize = 100;
/// Number of waiting tasks, and of those that exist before the measurement.
const WAITING: usize = 1_000;
const WARM: usize = 50;
/// Number of requests in one round. Each task is requested less than ten times a second.
const LOOKS: usize = 500;
/// Maximum ratio of a task's time to that of the same call's durable write.
const OVER_WRITE: f64 = 2.0;
/// Maximum number of threads that a host may start for all waiting tasks.
const THREADS: f64 = 8.0;
/// Maximum memory of all waiting tasks, in MiB.
const MEMORY: f64 = 20.0;
/// Maximum ratio of a task request's time to that of a `task_get`.
const OVER_READ: f64 = 1.1;

/// Measures all of these on one host.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let config = config_with_tokens(dir.path(), &[("ada", TOKEN)], POLICY)?;
    cost(setup, &config, &dir.path().join("cost"), report)?;
    waiting(setup, &config, &dir.path().join("waiting"), report)
}

/// A client with tasks, whose user never answers.
fn patient(server: &Server) -> anyhow::Result<Connection> {
    let can = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {}});
    Ok(server.connect(TOKEN)?.with(can))
}

/// A call that the policy holds.
fn held(number: usize) -> Value {
    let mut request = workload::create(number);
    request.arguments["title"] = json!(format!("Held {number}"));
    json!({"name": request.tool, "arguments": request.arguments})
}

/// Microseconds for each of some held calls, and the tasks that they became.
fn hold(client: &mut Connection, first: usize, tasks: &mut Vec<String>) -> anyhow::Result<f64> {
    let mut all = 0.0;
    for number in first..first + HELD {
        let (result, took) = client.ask("tools/call", "task_create", held(number))?;
        all += took.as_secs_f64() * 1e6;
        tasks.extend(result["taskId"].as_str().map(str::to_owned));
    }
    Ok(all / HELD as f64)
}

/// The same calls, refused and as tasks.
fn cost(setup: &Setup, config: &Path, data: &Path, report: &mut Report) -> anyhow::Result<()> {
    let server = setup.serve(config, data)?;
    let (mut hasty, mut patient) = (server.connect(TOKEN)?, patient(&server)?);
    let (mut refusals, mut made, mut tasks) = (Vec::new(), 0, Vec::new());
    let mut asked = 0;
    let refused: Round<'_> = Box::new(|| {
        made += HELD;
        hold(&mut hasty, made, &mut refusals)
    });
    let as_tasks: Round<'_> = Box::new(|| {
        asked += HELD;
        hold(&mut patient, asked, &mut tasks)
    });
    let [refused, as_tasks] = take_turns(setup.effort.rounds, [refused, as_tasks])?;
    anyhow::ensure!(
        refusals.is_empty() && tasks.len() == (setup.effort.rounds + 1) * HELD,
        "{} calls became tasks, and {} should have",
        tasks.len(),
        (setup.effort.rounds + 1) * HELD
    );
    report.heading("task_create that a policy holds back, durable, over HTTP");
    report.row("refused", &refused, Unit::Microseconds, &refused);
    report.row("as a task", &as_tasks, Unit::Microseconds, &refused);
    let times = Quantity(as_tasks.median() / refused.median(), Unit::Times);
    report.add(Figure {
        name: "a call that becomes a task".to_owned(),
        value: Quantity(as_tasks.median(), Unit::Microseconds),
        baseline: "the same call refused",
        baseline_value: Quantity(refused.median(), Unit::Microseconds),
        target: Some(Target::at_most("takes", times, OVER_WRITE)),
    });
    Ok(())
}

/// Measures waiting tasks and requests for them.
fn waiting(setup: &Setup, config: &Path, data: &Path, report: &mut Report) -> anyhow::Result<()> {
    let server = setup.serve(config, data)?;
    let mut client = patient(&server)?;
    let seeded = workload::seed(&mut client)?;
    let mut begin = |numbers: std::ops::Range<usize>| -> anyhow::Result<Vec<String>> {
        let begun = numbers.map(|number| {
            let (task, _) = client.ask("tools/call", "task_create", held(number))?;
            let id = task["taskId"].as_str().map(str::to_owned);
            id.with_context(|| format!("a held call became no task: {task}"))
        });
        begun.collect()
    };
    begin(0..WARM)?;
    let look = || -> anyhow::Result<[f64; 2]> {
        let process = server.process();
        Ok([machine::threads(process)?, machine::resident_mib(process)?])
    };
    let [threads, memory] = look()?;
    let tasks = begin(WARM..WARM + WAITING)?;
    let [threads_then, memory_then] = look()?;
    for (name, unit, before, after, most) in [
        ("threads", Unit::Count, threads, threads_then, THREADS),
        ("resident memory", Unit::Mebibytes, memory, memory_then, MEMORY),
    ] {
        let more = Quantity(after - before, unit);
        report.text(&format!("  {WAITING} tasks that wait: {more} more {name}"));
        report.add(Figure {
            name: format!("{name} with {WAITING} tasks that wait"),
            value: Quantity(after, unit),
            baseline: "before",
            baseline_value: Quantity(before, unit),
            target: Some(Target::at_most("grow by", more, most)),
        });
    }
    let (mut reader, mut looker) = (server.connect(TOKEN)?, patient(&server)?);
    let mut next = tasks.iter().cycle();
    let reads: Round<'_> = Box::new(|| {
        let times = (0..LOOKS).map(|number| {
            let took = reader.time(&Kind::Get.request(&seeded, number))?;
            Ok(took.as_secs_f64() * 1e6)
        });
        Ok(Sample::of(times.collect::<anyhow::Result<Vec<f64>>>()?).median())
    });
    let looks: Round<'_> = Box::new(|| {
        let times = next.by_ref().take(LOOKS).map(|task| {
            let (_, took) = looker.ask("tasks/get", task, json!({ "taskId": task }))?;
            Ok(took.as_secs_f64() * 1e6)
        });
        Ok(Sample::of(times.collect::<anyhow::Result<Vec<f64>>>()?).median())
    });
    let [reads, looks] = take_turns(setup.effort.rounds, [reads, looks])?;
    report.heading("a look at a task that waits, over HTTP");
    report.row("task_get", &reads, Unit::Microseconds, &reads);
    report.row("tasks/get", &looks, Unit::Microseconds, &reads);
    let times = Quantity(looks.median() / reads.median(), Unit::Times);
    report.add(Figure {
        name: "tasks/get".to_owned(),
        value: Quantity(looks.median(), Unit::Microseconds),
        baseline: "task_get",
        baseline_value: Quantity(reads.median(), Unit::Microseconds),
        target: Some(Target::at_most("takes", times, OVER_READ)),
    });
    Ok(())
}
