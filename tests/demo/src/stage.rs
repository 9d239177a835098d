//! Calls that people can watch: each one is printed, checked and recorded.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Map, Value};
use tollgate_sdk::{NextCall, Timestamp, ToolError};

use crate::actor::Actor;
use crate::answer::{Answer, brief};
use crate::console::Console;
use crate::server::{Launch, Server};

/// A call that was made, for the comparison with the ledger.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    pub(crate) tool: String,
    pub(crate) error_code: Option<String>,
}

/// A server, and the calls so far.
pub(crate) struct Stage<'a> {
    console: &'a Console,
    launch: &'a Launch,
    server: Server,
    seen: Vec<Seen>,
}

impl<'a> Stage<'a> {
    /// Starts the server.
    pub(crate) async fn open(console: &'a Console, launch: &'a Launch) -> anyhow::Result<Stage<'a>> {
        let server = Server::start(launch).await?;
        console.say(&format!("It answers: {}.", server.introduction().await?));
        Ok(Stage {
            console,
            launch,
            server,
            seen: Vec::new(),
        })
    }

    /// Prints the prose between calls.
    pub(crate) fn say(&self, prose: &str) {
        self.console.say(prose);
    }

    /// Prints text unchanged.
    pub(crate) fn show(&self, text: &str) {
        self.console.lines(text);
    }

    /// Prints the heading of a part.
    pub(crate) fn scene(&self, title: &str) {
        self.console.scene(title);
    }

    /// Makes a call that must succeed, and prints parts of its result.
    pub(crate) async fn ok(
        &mut self,
        who: Actor,
        tool: &str,
        arguments: Value,
        shown: &[&str],
    ) -> anyhow::Result<Answer> {
        self.unsigned(who, tool, who.signs(arguments), shown).await
    }

    /// Makes a call of a tool of the host, which takes no name and role.
    pub(crate) async fn unsigned(
        &mut self,
        who: Actor,
        tool: &str,
        arguments: Value,
        shown: &[&str],
    ) -> anyhow::Result<Answer> {
        match self.call(who, tool, arguments).await? {
            Ok(answer) => {
                self.console.done(&answer.summary(shown));
                Ok(answer)
            }
            Err(refusal) => {
                self.print(&refusal);
                anyhow::bail!(
                    "{tool} was refused with {}, but it should have worked",
                    refusal.code
                )
            }
        }
    }

    /// Makes a call that must be refused for exactly these reasons, in this order.
    pub(crate) async fn refused(
        &mut self,
        who: Actor,
        tool: &str,
        arguments: Value,
        reasons: &[&str],
    ) -> anyhow::Result<ToolError> {
        let code = reasons.first().copied().unwrap_or_default();
        let refusal = self.refused_as(code, who, tool, arguments).await?;
        let found: Vec<&str> = refusal
            .blockers
            .iter()
            .map(|blocker| blocker.code.as_str())
            .collect();
        anyhow::ensure!(
            found == reasons,
            "expected the blockers {reasons:?}, but got {found:?}"
        );
        Ok(refusal)
    }

    /// Makes a call that must be refused with a code, whatever the blockers are.
    pub(crate) async fn refused_as(
        &mut self,
        code: &str,
        who: Actor,
        tool: &str,
        arguments: Value,
    ) -> anyhow::Result<ToolError> {
        let refusal = match self.call(who, tool, who.signs(arguments)).await? {
            Ok(answer) => anyhow::bail!(
                "{tool} should have been refused with {code}, but returned {}",
                answer.0
            ),
            Err(refusal) => *refusal,
        };
        self.print(&refusal);
        let remedied = !refusal.message.is_empty() && !refusal.remediation.is_empty();
        anyhow::ensure!(refusal.code == code, "expected {code}, but got {}", refusal.code);
        anyhow::ensure!(remedied, "{code} does not say what to do");
        Ok(refusal)
    }

    /// Makes the exact call that a reply or refusal suggests.
    pub(crate) async fn follow(&mut self, next: &NextCall, shown: &[&str]) -> anyhow::Result<Answer> {
        let who = Actor::of_call(&next.arguments).context("the ready call names nobody the demo knows")?;
        self.ok(who, &next.tool, Value::Object(next.arguments.clone()), shown)
            .await
    }

    /// Kills the server and starts it again.
    pub(crate) async fn crash(&mut self) -> anyhow::Result<()> {
        self.server.kill().await?;
        self.console
            .lines("\n(the server is killed with SIGKILL, and started again)");
        self.server = Server::start(self.launch).await?;
        Ok(())
    }

    /// Sleeps until the time that the server returned.
    pub(crate) async fn sleep_until(&self, instant: &str) -> anyhow::Result<()> {
        let until = Timestamp::parse(instant).with_context(|| format!("{instant} is no timestamp"))?;
        #[allow(
            clippy::disallowed_methods,
            reason = "the server's instants are those of the real clock"
        )]
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let until = Duration::from_millis(until.as_ms().try_into()?);
        self.console.lines(&format!("\n(waiting until {instant})"));
        tokio::time::sleep(until.saturating_sub(now)).await;
        Ok(())
    }

    /// Stops the server and returns the calls.
    pub(crate) async fn close(self) -> anyhow::Result<Vec<Seen>> {
        self.server.stop().await?;
        Ok(self.seen)
    }

    async fn call(
        &mut self,
        who: Actor,
        tool: &str,
        arguments: Value,
    ) -> anyhow::Result<Result<Answer, Box<ToolError>>> {
        let printed = without(&arguments, &["actor", "actor_role"]);
        self.console
            .call(&format!("{} ({})", who.name, who.role), tool, &brief(&printed));
        let Value::Object(arguments) = arguments else {
            anyhow::bail!("the arguments of {tool} are no object");
        };
        let result = self.server.call(tool, arguments).await?;
        let structured = result
            .structured_content
            .context("the result is not structured")?;
        let outcome: Result<Answer, Box<ToolError>> = if result.is_error == Some(true) {
            let refusal = structured
                .get("error")
                .cloned()
                .context("the refusal has no error")?;
            Err(serde_json::from_value(refusal).context("the refusal does not have the usual shape")?)
        } else {
            Ok(Answer(structured))
        };
        self.seen.push(Seen {
            tool: tool.to_owned(),
            error_code: outcome.as_ref().err().map(|refusal| refusal.code.clone()),
        });
        Ok(outcome)
    }

    /// Prints every part of a refusal.
    fn print(&self, refusal: &ToolError) {
        self.console.refused(&refusal.code, &refusal.message);
        for blocker in &refusal.blockers {
            let field = blocker
                .field
                .as_deref()
                .map(|field| format!(" [{field}]"))
                .unwrap_or_default();
            let next = blocker
                .next_call
                .as_ref()
                .map(|next| format!(" -> {}", next.tool))
                .unwrap_or_default();
            self.console.detail(
                "blocker",
                format_args!("{}{field}: {}{next}", blocker.code, blocker.message),
            );
        }
        if !refusal.context.is_empty() {
            self.console
                .detail("facts", brief(&Value::Object(refusal.context.clone())));
        }
        self.console.detail("what to do", &refusal.remediation);
        if let Some(next) = &refusal.next_call {
            let arguments = brief(&Value::Object(next.arguments.clone()));
            self.console
                .detail("ready to call", format_args!("{} {arguments}", next.tool));
        }
    }
}

fn without(arguments: &Value, names: &[&str]) -> Value {
    let members = arguments.as_object().into_iter().flatten();
    let kept: Map<String, Value> = members
        .filter(|(name, _)| !names.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Value::Object(kept)
}
