//! Credentials for registries: environment variables named in the configuration, docker's configuration, and its
//! helpers.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::error::RegistryError;
use crate::text::plain;

/// Time limit of a credential helper.
const HELPER_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum bytes of a helper's answer.
const HELPER_LIMIT: u64 = 64 << 10;
/// Name under which docker keeps credentials of Docker Hub.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";

/// Settings of one registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostSettings {
    /// Use plain HTTP, which is permitted only for a registry on this machine.
    pub plain_http: bool,
    /// Host of the token service, if credentials may go there.
    pub token_host: Option<String>,
    /// User to log in as.
    pub user: Option<String>,
    /// Variable that holds the password or the token.
    pub password_env: Option<String>,
}

/// User and secret for one registry.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub(crate) user: String,
    pub(crate) secret: String,
    /// Description of where the login comes from.
    pub(crate) origin: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Login({}, from {})", self.user, self.origin)
    }
}

/// Credentials in docker's configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Docker {
    auths: BTreeMap<String, Auth>,
    creds_store: Option<String>,
    cred_helpers: BTreeMap<String, String>,
}

/// One entry of `auths`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Auth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Auth")
    }
}

/// Lookup of environment variables.
type Variables = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Sources of logins.
pub struct Credentials {
    hosts: BTreeMap<String, HostSettings>,
    docker: Docker,
    /// Reason why docker's configuration cannot be read, reported when it matters.
    unreadable: Option<String>,
    variables: Variables,
}

impl Credentials {
    /// Loads the credentials from the operator's settings, and from the text of docker's configuration if there is one.
    pub fn new(
        hosts: BTreeMap<String, HostSettings>,
        docker: Option<&str>,
        variables: Variables,
    ) -> Credentials {
        let (docker, unreadable) = match docker.map(serde_json::from_str::<Docker>) {
            Some(Ok(docker)) => (docker, None),
            // The error names a position in the file, and none of its content.
            Some(Err(err)) => {
                let at = format!(
                    "Docker's configuration is invalid at line {}, column {}",
                    err.line(),
                    err.column()
                );
                (Docker::default(), Some(at))
            }
            None => (Docker::default(), None),
        };
        Credentials {
            hosts,
            docker,
            unreadable,
            variables,
        }
    }

    /// Creates empty credentials and settings.
    pub fn none() -> Credentials {
        Credentials::new(BTreeMap::new(), None, Box::new(|_| None))
    }

    /// Settings of a registry.
    pub(crate) fn settings(&self, host: &str) -> HostSettings {
        self.hosts.get(host).cloned().unwrap_or_default()
    }

    /// Finds the login for a registry. The operator's configuration takes precedence over docker's.
    pub(crate) fn find(&self, host: &str) -> Result<Option<Login>, RegistryError> {
        let failed = |why: String| RegistryError::Credentials {
            host: host.to_owned(),
            why,
        };
        let settings = self.settings(host);
        if let Some(variable) = &settings.password_env {
            let secret = (self.variables)(variable).filter(|secret| !secret.is_empty());
            let secret = secret.ok_or_else(|| failed(format!("the variable {variable} is not set")))?;
            // Token services accept any name with a token.
            let user = settings.user.unwrap_or_else(|| "token".to_owned());
            return Ok(Some(Login {
                user,
                secret,
                origin: format!("the variable {variable}"),
            }));
        }
        if let Some(why) = &self.unreadable {
            return Err(failed(why.clone()));
        }
        let names = names(host);
        let helper = names
            .iter()
            .find_map(|name| self.docker.cred_helpers.get(name).map(|helper| (name, helper)));
        if let Some((name, helper)) = helper {
            return ask_helper(helper, name).map_err(failed);
        }
        for name in &names {
            if let Some(login) = self
                .docker
                .auths
                .get(name)
                .map(login)
                .transpose()
                .map_err(failed)?
                .flatten()
            {
                return Ok(Some(login));
            }
        }
        match &self.docker.creds_store {
            Some(helper) => names
                .iter()
                .find_map(|name| ask_helper(helper, name).transpose())
                .transpose()
                .map_err(failed),
            None => Ok(None),
        }
    }
}

/// Names under which docker may keep credentials of a host.
fn names(host: &str) -> Vec<String> {
    let mut names = vec![host.to_owned(), format!("https://{host}")];
    if host == "registry-1.docker.io" {
        names.extend(["docker.io".to_owned(), DOCKER_HUB.to_owned()]);
    }
    names
}

fn login(auth: &Auth) -> Result<Option<Login>, String> {
    let origin = "Docker's configuration".to_owned();
    if auth.identitytoken.as_ref().is_some_and(|token| !token.is_empty()) {
        return Err(
            "Docker keeps an identity token, which is not supported; set registries.HOST.password_env"
                .to_owned(),
        );
    }
    if let (Some(user), Some(secret)) = (&auth.username, &auth.password) {
        return Ok(Some(Login {
            user: user.clone(),
            secret: secret.clone(),
            origin,
        }));
    }
    let Some(encoded) = auth.auth.as_ref().filter(|auth| !auth.is_empty()) else {
        return Ok(None);
    };
    let decoded = STANDARD
        .decode(encoded)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let pair = decoded.as_deref().and_then(|text| text.split_once(':'));
    let (user, secret) = pair.ok_or("an entry of Docker's configuration is not base64 of user:password")?;
    Ok(Some(Login {
        user: user.to_owned(),
        secret: secret.to_owned(),
        origin,
    }))
}

/// Runs `docker-credential-NAME`, as docker does. The helper's name cannot lead to another program.
fn ask_helper(helper: &str, name: &str) -> Result<Option<Login>, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if helper.is_empty() || !helper.bytes().all(is_name) {
        return Err(format!(
            "{} is not the name of a credential helper",
            plain(helper)
        ));
    }
    let program = format!("docker-credential-{helper}");
    let mut child = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|err| format!("cannot start {program}: {err}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // If the helper has ended, the missing answer is reported below.
        let _ = stdin.write_all(name.as_bytes());
    }
    let (bytes, is_success) = output(&mut child)
        .ok_or_else(|| format!("{program} did not answer within {} s", HELPER_TIMEOUT.as_secs()))?;
    if !is_success {
        // Helpers fail like this for unknown hosts.
        return match bytes.windows(9).any(|window| window == b"not found") {
            true => Ok(None),
            false => Err(format!("{program} failed")),
        };
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Got {
        username: String,
        secret: String,
    }
    let got: Got = serde_json::from_slice(&bytes).map_err(|_| format!("{program} did not return JSON"))?;
    if got.username == "<token>" {
        return Err(format!(
            "{program} keeps an identity token, which is not supported; set registries.HOST.password_env"
        ));
    }
    Ok(Some(Login {
        user: got.username,
        secret: got.secret,
        origin: program,
    }))
}

/// Output of a child process, and whether it succeeded. `None` if it took too long and was killed.
fn output(child: &mut Child) -> Option<(Vec<u8>, bool)> {
    let stdout = child.stdout.take()?;
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(HELPER_LIMIT).read_to_end(&mut bytes);
        // After a timeout there is no receiver any more.
        let _ = send.send(read.map(|_| bytes));
    });
    let bytes = receive.recv_timeout(HELPER_TIMEOUT).ok().and_then(Result::ok);
    if bytes.is_none() {
        // Fails if the child has already ended.
        let _ = child.kill();
    }
    let status = child.wait().ok()?;
    Some((bytes?, status.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(docker: &str) -> Credentials {
        let host = HostSettings {
            user: Some("ada".into()),
            password_env: Some("TOKEN".into()),
            ..HostSettings::default()
        };
        let hosts = BTreeMap::from([("own.example".to_owned(), host)]);
        Credentials::new(
            hosts,
            Some(docker),
            Box::new(|name| (name == "TOKEN").then(|| "secret".to_owned())),
        )
    }

    #[test]
    fn logins_belong_to_one_host() {
        let auth = STANDARD.encode("grace:pass:word");
        let credentials = with(&format!(
            r#"{{"auths": {{"registry.example": {{"auth": "{auth}"}}}}}}"#
        ));
        let found = credentials.find("registry.example").unwrap().unwrap();
        assert_eq!(
            (found.user.as_str(), found.secret.as_str()),
            ("grace", "pass:word")
        );
        assert_eq!(credentials.find("own.example").unwrap().unwrap().secret, "secret");
        for host in [
            "registry.example:5000",
            "example",
            "x.registry.example",
            "registry.example.evil",
        ] {
            assert_eq!(credentials.find(host).unwrap(), None, "{host}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let login = Login {
            user: "ada".into(),
            secret: "hunter2".into(),
            origin: "x".into(),
        };
        assert!(!format!("{login:?}").contains("hunter2"));
        let err = with(r#"{"auths": {"h.example": "hunter2"}}"#)
            .find("h.example")
            .unwrap_err();
        assert!(!err.to_string().contains("hunter2"), "{err}");
    }

    #[test]
    fn a_helper_is_no_path() {
        for helper in ["../../bin/sh", "a b", "", "x;y"] {
            let docker = serde_json::json!({ "credHelpers": { "h.example": helper } }).to_string();
            let err = with(&docker).find("h.example").unwrap_err().to_string();
            assert!(err.contains("is not the name of a credential helper"), "{err}");
        }
    }

    #[test]
    fn a_missing_variable_is_said() {
        let credentials = Credentials::new(
            BTreeMap::from([(
                "h.example".to_owned(),
                HostSettings {
                    password_env: Some("NO".into()),
                    ..Default::default()
                },
            )]),
            None,
            Box::new(|_| None),
        );
        assert!(
            credentials
                .find("h.example")
                .unwrap_err()
                .to_string()
                .contains("the variable NO is not set")
        );
    }
}
