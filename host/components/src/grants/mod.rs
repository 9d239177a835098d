//! Grants that the operator gives to components. Pure: compares requests with grants and does no I/O.

pub mod wants;

use serde::Deserialize;
use tollgate_sandbox::bindings::tollgate::host::component::{self, ClientPart, Want};
use tollgate_sandbox::granted::Granted;
use tollgate_sdk::GitAccess;
use tollgate_sdk::permit::Asked;

/// Name that stands for all workspaces, or all budgets.
pub(crate) const ANY: &str = "*";
/// Name of the registered test commands in `grants.process`.
const TESTS: &str = "tests";
/// Name of Git in `grants.process`.
const GIT: &str = "git";
/// Name of a client's model in `grants.client`.
const MODEL: &str = "model";
/// Name of a client's folders in `grants.client`.
const ROOTS: &str = "roots";

/// The `grants` table of one component in the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Workspaces it may use, `*` for all. Writing, git and tests follow each workspace's own table. Default: all for
    /// a built-in pack, none for others.
    pub workspaces: Option<Vec<String>>,
    /// Programs it may run, `tests` for the registered test commands. Default: the programs that a built-in pack
    /// requests, none for others.
    pub process: Option<Vec<String>>,
    /// True if past operations may be queried. Default: true if a built-in pack requests it.
    pub ledger: Option<bool>,
    /// True if artifacts may be kept. Default: true if a built-in pack requests it.
    pub artifacts: Option<bool>,
    /// Named budgets it may reserve from. Default: those that a built-in pack requests, none for others.
    pub budgets: Option<Vec<String>>,
    /// Requests to clients beyond forms: `model` and `roots`. Default: those that a built-in pack requests, none for
    /// others.
    pub client: Option<Vec<String>>,
    /// True if the costs that its tools declare are trusted. Default: true if the pack is built in.
    pub charges: Option<bool>,
}

/// Grants of what a component requests.
pub fn granted(wants: &[Want], grants: &Grants, trust: Trust) -> Granted {
    let mut granted = Granted {
        charges: grants.charges.unwrap_or(trust == Trust::Builtin),
        ..Granted::default()
    };
    for want in wants {
        match want {
            Want::LedgerQuery => granted.ledger_query = grants.ledger(trust),
            Want::Artifacts => granted.artifacts = grants.artifacts(trust),
            Want::Budget(name) if grants.budget(name, trust) => granted.budgets.push(name.clone()),
            Want::Client(ClientPart::Model) => granted.model = grants.client(MODEL, trust),
            Want::Client(ClientPart::Roots) => granted.roots = grants.client(ROOTS, trust),
            Want::Budget(_) => {}
            // Each workspace has its own grants.
            Want::WorkspaceRead(_)
            | Want::WorkspaceWrite(_)
            | Want::Process(_)
            | Want::Tests
            | Want::Git(_) => {}
        }
    }
    granted
}

/// Trust in a component before the operator grants anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Built into this program: gets what it requests.
    Builtin,
    /// From elsewhere: gets nothing.
    Foreign,
}

impl Grants {
    /// True if a component may use a workspace.
    pub fn workspace(&self, name: &str, trust: Trust) -> bool {
        match &self.workspaces {
            Some(granted) => lists(granted, name),
            None => trust == Trust::Builtin,
        }
    }

    fn program(&self, name: &str, trust: Trust) -> bool {
        match &self.process {
            Some(granted) => lists(granted, name),
            None => trust == Trust::Builtin,
        }
    }

    fn ledger(&self, trust: Trust) -> bool {
        self.ledger.unwrap_or(trust == Trust::Builtin)
    }

    fn artifacts(&self, trust: Trust) -> bool {
        self.artifacts.unwrap_or(trust == Trust::Builtin)
    }

    fn budget(&self, name: &str, trust: Trust) -> bool {
        match &self.budgets {
            Some(granted) => lists(granted, name),
            None => trust == Trust::Builtin,
        }
    }

    fn client(&self, part: &str, trust: Trust) -> bool {
        match &self.client {
            Some(granted) => lists(granted, part),
            None => trust == Trust::Builtin,
        }
    }

    /// Granted part of a component's requests for workspaces and programs.
    pub fn asked(&self, wants: &[Want], trust: Trust) -> Asked {
        let mut asked = Asked::default();
        for want in wants {
            match want {
                Want::WorkspaceRead(name) => asked.read.push(name.clone()),
                Want::WorkspaceWrite(prefix) => asked.write.push(prefix.clone()),
                Want::Process(program) if self.program(program, trust) => {
                    asked.programs.push(program.clone())
                }
                Want::Tests => asked.tests |= self.program(TESTS, trust),
                Want::Git(access) if self.program(GIT, trust) => {
                    asked.git = asked.git.max(Some(git_access(*access)));
                }
                Want::Process(_)
                | Want::Git(_)
                | Want::LedgerQuery
                | Want::Budget(_)
                | Want::Artifacts
                | Want::Client(_) => {}
            }
        }
        asked
    }
}

fn git_access(access: component::GitAccess) -> GitAccess {
    match access {
        component::GitAccess::Read => GitAccess::Read,
        component::GitAccess::Write => GitAccess::Write,
    }
}

fn lists(granted: &[String], name: &str) -> bool {
    granted.iter().any(|grant| grant == name || grant == ANY)
}

/// Requests of a component that were not granted, each with the configuration line that grants it. A built-in pack
/// works without what the operator took from it.
pub(crate) fn missing(wants: &[Want], grants: &Grants, trust: Trust) -> Vec<Missing> {
    let wants = wants.iter().filter(|_| trust == Trust::Foreign).map(Wish::of);
    let missing: Vec<Wish> = wants.filter(|wish| !wish.is_granted(grants)).collect();
    Key::ALL
        .into_iter()
        .filter(|key| missing.iter().any(|wish| wish.key == *key))
        .map(|key| {
            let of_key: Vec<&Wish> = missing.iter().filter(|wish| wish.key == key).collect();
            let whats: Vec<&str> = of_key.iter().map(|wish| wish.what.as_str()).collect();
            Missing {
                what: whats.join(" and "),
                line: key.line(grants, of_key.iter().map(|wish| wish.name.as_str())),
            }
        })
        .collect()
}

/// Requests of a component that are not granted, with the configuration lines that grant them.
pub fn missing_grants(table: &str, wants: &[Want], grants: &Grants, trust: Trust) -> Vec<String> {
    missing(wants, grants, trust)
        .into_iter()
        .map(|missing| {
            format!(
                "the request to {} is not granted; to grant the request, set `{}` in [{table}]",
                missing.what, missing.line
            )
        })
        .collect()
}

/// A request that was not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Request in words.
    pub(crate) what: String,
    /// Configuration line that grants it, together with the earlier grants.
    pub(crate) line: String,
}

/// A key of the `grants` table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Workspaces,
    Process,
    Ledger,
    Artifacts,
    Budgets,
    Client,
}

impl Key {
    const ALL: [Key; 6] = [
        Key::Workspaces,
        Key::Process,
        Key::Ledger,
        Key::Artifacts,
        Key::Budgets,
        Key::Client,
    ];

    const fn name(self) -> &'static str {
        match self {
            Key::Workspaces => "workspaces",
            Key::Process => "process",
            Key::Ledger => "ledger",
            Key::Artifacts => "artifacts",
            Key::Budgets => "budgets",
            Key::Client => "client",
        }
    }

    fn granted(self, grants: &Grants) -> &[String] {
        let list = match self {
            Key::Workspaces => &grants.workspaces,
            Key::Process => &grants.process,
            Key::Budgets => &grants.budgets,
            Key::Client => &grants.client,
            Key::Ledger | Key::Artifacts => &None,
        };
        list.as_deref().unwrap_or_default()
    }

    /// Configuration line that grants these names together with those that are granted already.
    fn line<'a>(self, grants: &'a Grants, names: impl Iterator<Item = &'a str>) -> String {
        if matches!(self, Key::Ledger | Key::Artifacts) {
            return format!("grants.{} = true", self.name());
        }
        let mut all: Vec<String> = Vec::new();
        for name in self.granted(grants).iter().map(String::as_str).chain(names) {
            let quoted = format!("{name:?}");
            if !all.contains(&quoted) {
                all.push(quoted);
            }
        }
        format!("grants.{} = [{}]", self.name(), all.join(", "))
    }
}

/// Request of a manifest, in the operator's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    key: Key,
    /// Name that the key's list must contain. `None` if any name satisfies the request.
    name: String,
    any: bool,
    /// Description for people, such as `run git`.
    pub what: String,
}

impl Wish {
    pub fn of(want: &Want) -> Wish {
        let wish = |key, name: &str, any, what: String| Wish {
            key,
            name: tollgate_core::text::clean(name),
            any,
            what: tollgate_core::text::clean(&what),
        };
        match want {
            Want::WorkspaceRead(name) if name == ANY => {
                wish(Key::Workspaces, "default", true, "read workspaces".to_owned())
            }
            Want::WorkspaceRead(name) => {
                wish(Key::Workspaces, name, false, format!("read workspace `{name}`"))
            }
            Want::WorkspaceWrite(prefix) => wish(
                Key::Workspaces,
                "default",
                true,
                format!("write below `{prefix}` in its workspaces"),
            ),
            Want::Process(name) => wish(Key::Process, name, false, format!("run `{name}`")),
            Want::Tests => wish(Key::Process, TESTS, false, "run registered tests".to_owned()),
            Want::Git(_) => wish(Key::Process, GIT, false, "run git".to_owned()),
            Want::LedgerQuery => wish(Key::Ledger, "", false, "query the ledger".to_owned()),
            Want::Artifacts => wish(Key::Artifacts, "", false, "keep artifacts".to_owned()),
            Want::Budget(name) => wish(Key::Budgets, name, false, format!("reserve from budget `{name}`")),
            Want::Client(ClientPart::Model) => {
                wish(Key::Client, MODEL, false, "ask clients' models".to_owned())
            }
            Want::Client(ClientPart::Roots) => wish(
                Key::Client,
                ROOTS,
                false,
                "ask clients for their folders".to_owned(),
            ),
        }
    }

    /// Configuration line that grants only this request.
    pub(crate) fn line(&self) -> String {
        self.key
            .line(&Grants::default(), std::iter::once(self.name.as_str()))
    }

    fn is_granted(&self, grants: &Grants) -> bool {
        match self.key {
            Key::Ledger => grants.ledger == Some(true),
            Key::Artifacts => grants.artifacts == Some(true),
            key if self.any => !key.granted(grants).is_empty(),
            key => lists(key.granted(grants), &self.name),
        }
    }

    /// True if a name under a key is granted because of this request.
    fn explains(&self, key: Key, name: &str) -> bool {
        self.key == key && (self.any || self.name == name || name == ANY)
    }
}

impl Grants {
    /// Adds the grant of a flag: `KEY=NAME,…`, `ledger` or `artifacts`.
    pub fn add(&mut self, flag: &str) -> Result<(), String> {
        let (key, names) = flag.split_once('=').unwrap_or((flag, ""));
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(str::to_owned).collect();
        let list = match key {
            "workspaces" => &mut self.workspaces,
            "process" => &mut self.process,
            "budgets" => &mut self.budgets,
            "client" => &mut self.client,
            "ledger" | "artifacts" | "charges" if names.is_empty() || names == ["true"] => {
                let is_granted = match key {
                    "ledger" => &mut self.ledger,
                    "artifacts" => &mut self.artifacts,
                    _ => &mut self.charges,
                };
                *is_granted = Some(true);
                return Ok(());
            }
            _ => {
                return Err(format!(
                    "{flag:?} is not a grant; write workspaces=NAME,… process=NAME,… budgets=NAME,… client=model,roots \
                     ledger, artifacts or charges"
                ));
            }
        };
        if names.is_empty() {
            return Err(format!("{flag:?} contains no name; write {key}=NAME,…"));
        }
        list.get_or_insert_default().extend(names);
        Ok(())
    }

    /// Grants all requests, in all workspaces where any will do.
    pub fn add_all(&mut self, wishes: &[Wish]) {
        for wish in wishes {
            if wish.is_granted(self) {
                continue;
            }
            let name = if wish.any { ANY } else { &wish.name }.to_owned();
            match wish.key {
                Key::Workspaces => self.workspaces.get_or_insert_default().push(name),
                Key::Process => self.process.get_or_insert_default().push(name),
                Key::Budgets => self.budgets.get_or_insert_default().push(name),
                Key::Client => self.client.get_or_insert_default().push(name),
                Key::Ledger => self.ledger = Some(true),
                Key::Artifacts => self.artifacts = Some(true),
            }
        }
    }

    /// Grants without a request, which are usually typing mistakes.
    pub(crate) fn unasked(&self, wishes: &[Wish]) -> Vec<String> {
        let lists = [Key::Workspaces, Key::Process, Key::Budgets, Key::Client].into_iter();
        let names = lists.flat_map(|key| key.granted(self).iter().map(move |name| (key, name.as_str())));
        let flags = [(Key::Ledger, self.ledger), (Key::Artifacts, self.artifacts)];
        let flags = flags
            .into_iter()
            .filter(|(_, is_granted)| *is_granted == Some(true));
        names
            .chain(flags.map(|(key, _)| (key, "")))
            .filter(|(key, name)| !wishes.iter().any(|wish| wish.explains(*key, name)))
            .map(|(key, name)| match name {
                "" => key.name().to_owned(),
                name => format!("{}={name}", key.name()),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants() -> [Want; 8] {
        [
            Want::Client(ClientPart::Model),
            Want::WorkspaceRead("*".into()),
            Want::WorkspaceWrite(".gsd/".into()),
            Want::Process("cargo".into()),
            Want::Tests,
            Want::LedgerQuery,
            Want::Artifacts,
            Want::Budget("approvals".into()),
        ]
    }

    #[test]
    fn everything_that_is_missing_is_named_with_its_line() {
        let grants = Grants {
            budgets: Some(vec!["approvals".to_owned()]),
            process: Some(vec!["make".to_owned()]),
            ..Grants::default()
        };
        let told: Vec<String> = missing(&wants(), &grants, Trust::Foreign)
            .into_iter()
            .map(|missing| format!("{}: {}", missing.what, missing.line))
            .collect();
        assert_eq!(
            told,
            [
                "read workspaces and write below `.gsd/` in its workspaces: grants.workspaces = [\"default\"]",
                "run `cargo` and run registered tests: grants.process = [\"make\", \"cargo\", \"tests\"]",
                "query the ledger: grants.ledger = true",
                "keep artifacts: grants.artifacts = true",
                "ask clients' models: grants.client = [\"model\"]",
            ]
        );
    }

    #[test]
    fn flags_grant_what_is_asked_for_and_nothing_else_goes_unnoticed() {
        let wishes: Vec<Wish> = wants().iter().map(Wish::of).collect();
        let mut grants = Grants::default();
        for flag in [
            "workspaces=main",
            "process=cargo,tests",
            "process=make",
            "ledger",
            "artifacts",
            "budgets=approvals",
            "client=model",
        ] {
            grants.add(flag).unwrap();
        }
        assert!(missing(&wants(), &grants, Trust::Foreign).is_empty());
        assert_eq!(grants.unasked(&wishes), ["process=make"]);
        for flag in ["process", "process=", "colour=red", "ledger=x", ""] {
            assert!(grants.clone().add(flag).is_err(), "{flag}");
        }
        let mut all = Grants::default();
        all.add_all(&wishes);
        assert!(missing(&wants(), &all, Trust::Foreign).is_empty());
        assert!(all.unasked(&wishes).is_empty());
        assert_eq!(all.workspaces.as_deref(), Some(&["*".to_owned()][..]));
        all.add_all(&wishes);
        assert_eq!(all.process, Some(vec!["cargo".to_owned(), "tests".to_owned()]));
    }

    #[test]
    fn a_built_in_pack_gets_what_it_asks_for_unless_the_operator_says_otherwise() {
        let default = Grants::default();
        assert!(default.asked(&wants(), Trust::Builtin).tests);
        assert!(default.workspace("default", Trust::Builtin));
        assert!(!default.asked(&wants(), Trust::Foreign).tests);
        assert!(!default.workspace("default", Trust::Foreign));
        let less = Grants {
            workspaces: Some(vec!["main".to_owned()]),
            process: Some(vec!["cargo".to_owned()]),
            ..Grants::default()
        };
        let asked = less.asked(&wants(), Trust::Builtin);
        assert_eq!((asked.programs, asked.tests), (vec!["cargo".to_owned()], false));
        assert!(!less.workspace("default", Trust::Builtin));
        assert!(missing(&wants(), &less, Trust::Builtin).is_empty());
        assert!(granted(&wants(), &default, Trust::Builtin).may_reserve("approvals"));
        assert_eq!(granted(&wants(), &default, Trust::Foreign), Granted::default());
        let less = Grants {
            ledger: Some(false),
            ..Grants::default()
        };
        let granted = granted(&wants(), &less, Trust::Builtin);
        assert_eq!((granted.ledger_query, granted.artifacts), (false, true));
    }
}
