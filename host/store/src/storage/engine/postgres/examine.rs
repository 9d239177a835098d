//! Examination of a server: checks everything that a host needs of it, with a remedy for each problem.

use std::time::Instant;

use serde::Serialize;
use tollgate_core::clock::Clock;

use super::error::Failure;
use super::schema::TRIAL_ROW;
use super::server::{Server, ServerError};
use super::settings::{PROPERTIES_QUERY, PropertyCheck, judgements, locks_wait, needed, session};
use super::wire::Wire;
use crate::storage::error::StoreFailure;
use crate::storage::session::Access;

/// Clock difference between two machines from which a warning is given, in milliseconds.
const CLOCK_LIMIT_MS: i64 = 2_000;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// No problem.
    Ok,
    /// A host works, but with limitations.
    Warn,
    /// A host does not start.
    Fail,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Examined {
    /// Weight.
    pub weight: Weight,
    /// Subject of the check.
    pub about: &'static str,
    /// Finding in words.
    pub what: String,
    /// Remedy, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Examined {
    fn ok(about: &'static str, what: impl Into<String>) -> Examined {
        Examined {
            weight: Weight::Ok,
            about,
            what: what.into(),
            remedy: None,
        }
    }

    fn warn(about: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Examined {
        Examined {
            weight: Weight::Warn,
            about,
            what: what.into(),
            remedy: Some(remedy.into()),
        }
    }

    /// Finding from a refusal, whose message ends with the remedy.
    fn fail(about: &'static str, refusal: &ServerError) -> Examined {
        let said = refusal.to_string();
        let (what, remedy) = match said.rsplit_once("; ") {
            Some((what, remedy)) => (what.to_owned(), Some(remedy.to_owned())),
            None => (said, None),
        };
        Examined {
            weight: Weight::Fail,
            about,
            what,
            remedy,
        }
    }
}

/// Settings of the role or the database that a session does not set itself. NULL if the version does not have one.
const OF_THE_ROLE: &str = "SELECT current_setting('server_version'),
    (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
    (SELECT reset_val FROM pg_settings WHERE name = 'statement_timeout'),
    (SELECT reset_val FROM pg_settings WHERE name = 'transaction_timeout'),
    (SELECT reset_val FROM pg_settings WHERE name = 'idle_session_timeout'),
    (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
    has_database_privilege(current_database(), 'CREATE'),
    (SELECT version || ', ' || cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl)";

impl Server {
    /// Checks everything that a host needs of a server. Changes nothing there.
    pub fn examine(&self, clock: &dyn Clock) -> Vec<Examined> {
        let wire = match session(self, Access::Write) {
            Ok(wire) => wire,
            Err(refusal) => return vec![Examined::fail("connection", &refusal)],
        };
        let mut found = vec![Examined::ok("connection", self.to_string())];
        match self.asked(&wire, clock) {
            Ok(more) => found.extend(more),
            Err(failure) if failure.kind() == StoreFailure::NotWritable => found.push(Examined {
                weight: Weight::Fail,
                about: "role",
                what: failure.to_string(),
                remedy: Some(
                    "use the role that owns the host's tables, or create one: tollgate storage init --admin URL".to_owned(),
                ),
            }),
            Err(failure) => found.push(Examined {
                weight: Weight::Fail,
                about: "connection",
                what: failure.to_string(),
                remedy: Some("check the server's log".to_owned()),
            }),
        }
        found
    }

    fn asked(&self, wire: &Wire, clock: &dyn Clock) -> Result<Vec<Examined>, Failure> {
        let judged = judgements(&wire.ask(PROPERTIES_QUERY)?, needed(self));
        let said = wire.ask(OF_THE_ROLE)?;
        let mut found: Vec<Examined> = judged.iter().map(|judged| of_judgement(judged, &said)).collect();
        found.push(match locks_wait(self, wire)? {
            true => Examined::ok("advisory locks", "work: a second connection waits for the first"),
            false => Examined::fail("advisory locks", &ServerError::NoLocks),
        });
        let has_tables = has_tables(wire)?;
        found.push(triggers(wire, has_tables)?);
        found.extend(of_settings(&said, has_tables));
        found.push(self.transport(&said));
        found.push(clock_of(wire, clock)?);
        Ok(found)
    }

    fn transport(&self, said: &[Option<String>]) -> Examined {
        match (said.get(7).and_then(Option::as_deref), self.tls.0.is_some()) {
            (Some(how), _) => Examined::ok("transport", how),
            (None, false) => Examined::ok("transport", "without TLS, on this machine"),
            // A proxy terminates TLS before the server.
            (None, true) => Examined::warn(
                "transport",
                "a proxy ends TLS, and the server sees an unencrypted connection",
                "give the URL of the server itself",
            ),
        }
    }
}

fn of_judgement(judged: &PropertyCheck, said: &[Option<String>]) -> Examined {
    match (&judged.refusal, judged.about) {
        (Some(refusal), about) => Examined::fail(about, refusal),
        (None, "version") => {
            let version = said.first().and_then(Option::as_deref).unwrap_or_default();
            Examined::ok("version", format!("PostgreSQL {version}"))
        }
        (None, about) => Examined::ok(about, judged.said.clone()),
    }
}

/// Checks the effective settings of the role and the database.
fn of_settings(said: &[Option<String>], has_tables: bool) -> Vec<Examined> {
    let text = |at: usize| said.get(at).and_then(Option::as_deref).unwrap_or_default();
    let mut found = vec![match text(1) {
        "off" => Examined::warn(
            "synchronous_commit",
            "off for this role; host sessions set it to on",
            "turn it on for the role: ALTER ROLE … SET synchronous_commit = on",
        ),
        how => Examined::ok("synchronous_commit", how),
    }];
    // Sessions set the statement timeout themselves, but cannot set the others, or not permanently.
    for (name, at, is_fatal) in [
        ("statement_timeout", 2, false),
        ("transaction_timeout", 3, true),
        ("idle_session_timeout", 4, true),
    ] {
        found.push(match (text(at), is_fatal) {
            ("" | "0", _) => Examined::ok(name, "none"),
            (ms, false) => Examined::ok(name, format!("{ms} ms; host sessions set it to 0")),
            (ms, true) => Examined::warn(
                name,
                format!("{ms} ms for this role; the server ends host sessions after this time"),
                format!("turn it off for the role: ALTER ROLE … SET {name} = 0"),
            ),
        });
    }
    found.push(match (text(5), text(6)) {
        ("t", _) => Examined::warn(
            "role",
            "a superuser, so anyone with the URL controls the whole server",
            "use a dedicated role: tollgate storage init --admin URL creates one",
        ),
        (_, "t") => Examined::ok("role", "may create the schemas of components"),
        _ if !has_tables => Examined {
            weight: Weight::Fail,
            ..Examined::warn(
                "role",
                "may not create schemas, and the host's does not exist yet",
                "grant it: GRANT CREATE ON DATABASE … TO …",
            )
        },
        _ => Examined::warn(
            "role",
            "may not create schemas, which newly added components need",
            "grant it: GRANT CREATE ON DATABASE … TO …",
        ),
    });
    found
}

/// True if the host's tables exist.
fn has_tables(wire: &Wire) -> Result<bool, Failure> {
    let found = wire.ask("SELECT to_regclass('core_operations')")?;
    Ok(found.first().and_then(Option::as_deref).is_some())
}

/// Tests the guard trigger of the ledger, if it exists.
fn triggers(wire: &Wire, has_tables: bool) -> Result<Examined, Failure> {
    if !has_tables {
        return Ok(Examined::warn(
            "triggers",
            "not tried: the host's tables do not exist yet",
            "create them: tollgate storage init",
        ));
    }
    let tried = wire.script(&format!("BEGIN; {TRIAL_ROW}"), None);
    wire.script("ROLLBACK", None)?;
    match tried {
        Ok(()) => Ok(Examined::fail("triggers", &ServerError::NoTriggers)),
        Err(failure) if failure.kind() == StoreFailure::Fenced => {
            Ok(Examined::ok("triggers", "an out-of-order ledger row is refused"))
        }
        Err(failure) => Err(failure),
    }
}

fn clock_of(wire: &Wire, clock: &dyn Clock) -> Result<Examined, Failure> {
    let asked = Instant::now();
    let before = clock.now_ms();
    let said = wire.ask("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")?;
    let there: Option<i64> = said
        .first()
        .and_then(Option::as_deref)
        .and_then(|text| text.parse().ok());
    let half = i64::try_from(asked.elapsed().as_millis() / 2).unwrap_or_default();
    let difference = there.map_or(0, |there| there - (before + half));
    let told = format!(
        "{} ms {} this machine's",
        difference.abs(),
        match difference < 0 {
            true => "behind",
            false => "ahead of",
        }
    );
    Ok(match difference.abs() > CLOCK_LIMIT_MS {
        true => Examined::warn(
            "clock",
            told,
            "synchronize both clocks with the same time source, for example with chrony",
        ),
        false => Examined::ok("clock", told),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_end_sessions_are_warned_of() {
        let said = |at: usize, text: &str| {
            let mut said = ["18.1", "on", "0", "0", "0", "f", "t", ""].map(|text| Some(text.to_owned()));
            said[at] = Some(text.to_owned());
            let found = of_settings(&said, true);
            let worst = found.into_iter().find(|found| found.weight > Weight::Ok);
            worst.map(|found| (found.about, found.what))
        };
        assert_eq!(said(0, "17.0"), None);
        assert_eq!(said(2, "500"), None, "sessions set it to 0");
        for (at, text, about, says) in [
            (1, "off", "synchronous_commit", "off for this role"),
            (3, "60000", "transaction_timeout", "60000 ms for this role"),
            (4, "1000", "idle_session_timeout", "1000 ms for this role"),
            (5, "t", "role", "a superuser"),
            (6, "f", "role", "may not create schemas"),
        ] {
            let (found, what) = said(at, text).unwrap();
            assert!(found == about && what.starts_with(says), "{found}: {what}");
        }
        let none = [None, None, None, None, None, None, None, None];
        assert_eq!(of_settings(&none, true).last().unwrap().weight, Weight::Warn);
        assert_eq!(of_settings(&none, false).last().unwrap().weight, Weight::Fail);
    }

    #[test]
    fn a_refusal_is_told_apart_from_its_remedy() {
        let found = Examined::fail("version", &ServerError::TooOld { found: 14 });
        assert_eq!(
            found.what,
            "the server is PostgreSQL 14, but at least 15 is needed"
        );
        assert_eq!(found.remedy.as_deref(), Some("upgrade the server"));
    }

    #[test]
    fn a_server_of_tests_is_as_it_should_be() {
        let Ok(url) = std::env::var("TOLLGATE_TEST_DATABASE") else {
            return;
        };
        let found = Server::from_url(&url)
            .unwrap()
            .examine(&tollgate_core::clock::SystemClock);
        assert!(
            found.iter().all(|found| found.weight < Weight::Fail),
            "{found:#?}"
        );
        assert!(found.iter().any(|found| found.about == "advisory locks"));
        let nobody = Server::from_url("postgres://ada:secret@127.0.0.1:1/t").unwrap();
        let found = nobody.examine(&tollgate_core::clock::SystemClock);
        assert!(found.len() == 1 && found[0].weight == Weight::Fail, "{found:?}");
        assert!(!format!("{found:?}").contains("secret"));
    }
}
