//! The `[telemetry]` table, and checks of its values beyond their types.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use tollgate_gate::telemetry::{HeaderError, Headers, SecretIn, Settings, header_name};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::{Problem, is_url};

/// Default time between exports, in seconds.
const DEFAULT_INTERVAL_SEC: u64 = 30;

/// The `[telemetry]` table. Absent keys use the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    otlp: Option<String>,
    #[serde(deserialize_with = "places")]
    headers: BTreeMap<String, SecretIn>,
    interval_sec: Option<u64>,
    service_name: Option<String>,
    traces: Option<bool>,
    metrics: Option<bool>,
}

impl TelemetryConfig {
    /// Settings of the export, if enabled. `environment` has the variables that headers name.
    pub fn settings(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Settings>, HeaderError> {
        let (traces, metrics) = (self.traces.unwrap_or(true), self.metrics.unwrap_or(true));
        let Some(otlp) = self.otlp.clone().filter(|_| traces || metrics) else {
            return Ok(None);
        };
        Ok(Some(Settings {
            otlp,
            headers: Headers::read(&self.headers, environment)?,
            interval: Duration::from_secs(self.interval_sec.unwrap_or(DEFAULT_INTERVAL_SEC)),
            service_name: self.service_name.clone().unwrap_or_else(|| "tollgate".to_owned()),
            traces,
            metrics,
        }))
    }

    /// Resolves relative paths against a directory.
    pub(super) fn rebase(&mut self, base: &Path) {
        for place in self.headers.values_mut() {
            if let SecretIn::File(path) = place {
                *path = base.join(&*path);
            }
        }
    }
}

/// Every value that telemetry cannot use.
pub(super) fn check(text: &str, whole: &DeTable<'_>) -> Vec<Problem> {
    let Some(DeValue::Table(telemetry)) = whole.get("telemetry").map(Spanned::get_ref) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    if let Some(otlp) = telemetry.get("otlp")
        && let Some(url) = otlp.get_ref().as_str().filter(|url| is_url(url))
        && let Some(problem) = misaddressed(url)
    {
        problems.push(Problem::at(text, otlp.span().start, problem));
    }
    if let Some(DeValue::Table(headers)) = telemetry.get("headers").map(Spanned::get_ref) {
        for (name, place) in headers {
            if header_name(name.get_ref()).is_none() {
                let problem = format!("{:?} is not a header that telemetry can send", name.get_ref());
                problems.push(Problem::at(text, name.span().start, problem));
            }
            if place.get_ref().as_str().and_then(SecretIn::parse).is_none() {
                let problem = format!(
                    "telemetry.headers.{} must say where its value is: \"env:VARIABLE\" or \"file:PATH\"",
                    tollgate_core::text::clean(name.get_ref())
                );
                problems.push(Problem::at(text, place.span().start, problem));
            }
        }
    }
    problems
}

/// Reason why an address cannot be a collector's, if it cannot.
fn misaddressed(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    if !url.username().is_empty() || url.password().is_some() {
        return Some(
            "telemetry.otlp must not have a user or password; put them in telemetry.headers".to_owned(),
        );
    }
    let own = ["/v1/traces", "/v1/metrics"];
    let has_path = own
        .iter()
        .any(|path| url.path().trim_end_matches('/').ends_with(path));
    if has_path || url.query().is_some() {
        return Some(
            "telemetry.otlp is a base address: /v1/traces and /v1/metrics are added to it".to_owned(),
        );
    }
    None
}

fn places<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, SecretIn>, D::Error> {
    let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
    let places = texts.into_iter().map(|(name, text)| {
        let place = SecretIn::parse(&text);
        let place = place.ok_or_else(|| serde::de::Error::custom("neither env:VARIABLE nor file:PATH"))?;
        Ok((name, place))
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::{Config, ConfigError};
    use super::*;

    fn parsed(text: &str) -> Result<Config, ConfigError> {
        Config::parse(text, Path::new("/etc/tollgate.toml"))
    }

    #[test]
    fn every_mistake_is_reported_and_no_secret_repeated() {
        let texts = [
            r#"otlp = "localhost:4318"
            interval_sec = 0
            service_name = ""
            traces = "yes"
            header = {}
            headers = { authorization = "Bearer secret", host = "env:HOST", "a b" = 3 }"#,
            r#"otlp = "http://ada:secret@collector:4318""#,
            r#"otlp = "https://collector/v1/traces/""#,
            r#"otlp = "https://collector/?key=secret""#,
            r#"otlp = "ftp://collector"
            headers = "env:A""#,
        ];
        let mut log = String::new();
        for text in texts {
            match parsed(&format!("[telemetry]\n{text}")) {
                Err(ConfigError::Invalid { problems, .. }) => {
                    for problem in problems {
                        log += &format!("{problem}\n");
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        expect![[r#"
            2:8: telemetry.otlp must be an address that starts with https:// or http://
            3:28: telemetry.interval_sec must be a whole number from 1 to 3600
            4:28: telemetry.service_name must be a non-empty string
            5:22: telemetry.traces must be true or false
            6:13: there is no key telemetry.header; did you mean headers?
            7:41: telemetry.headers.authorization must say where its value is: "env:VARIABLE" or "file:PATH"
            7:58: "host" is not a header that telemetry can send
            7:77: "a b" is not a header that telemetry can send
            7:85: telemetry.headers.a b must say where its value is: "env:VARIABLE" or "file:PATH"
            2:8: telemetry.otlp must not have a user or password; put them in telemetry.headers
            2:8: telemetry.otlp is a base address: /v1/traces and /v1/metrics are added to it
            2:8: telemetry.otlp is a base address: /v1/traces and /v1/metrics are added to it
            2:8: telemetry.otlp must be an address that starts with https:// or http://
            3:23: telemetry.headers must be a table
        "#]]
        .assert_eq(&log);
    }

    #[test]
    fn nothing_is_told_without_an_address_or_anything_to_tell() {
        let settings = |text: &str| {
            let config = parsed(&format!("[telemetry]\n{text}")).unwrap();
            config.telemetry.settings(|_| None)
        };
        assert!(settings("interval_sec = 1").unwrap().is_none());
        let base = "otlp = \"http://127.0.0.1:4318/\"\n";
        let nothing = settings(&format!("{base}traces = false\nmetrics = false"));
        assert!(nothing.unwrap().is_none());
        let some = settings(&format!("{base}metrics = false")).unwrap().unwrap();
        assert!(some.traces && !some.metrics && some.headers.is_empty());
        assert_eq!(
            (some.interval.as_secs(), some.service_name.as_str()),
            (30, "tollgate")
        );
        let missing = settings(&format!(
            "{base}headers = {{ a = \"env:NONE\", b = \"file:none\" }}"
        ));
        expect![[r#"
            telemetry.headers.a: the variable NONE is not set
            telemetry.headers.b: /etc/none: No such file or directory (os error 2)"#]]
        .assert_eq(&missing.unwrap_err().to_string());
    }

    #[test]
    fn a_change_waits_for_the_next_start() {
        let before = parsed("").unwrap();
        let after = parsed("[telemetry]\notlp = \"http://127.0.0.1:4318\"").unwrap();
        assert_eq!(after.waiting_for_a_start(&before), ["telemetry"]);
    }
}
