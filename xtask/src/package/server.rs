//! `server.json`, the file with which MCP's registry lists a server.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::release::{Release, VERSION};

const TEMPLATE: &str = include_str!("../../../packaging/server.json");

/// Text of the file for a release.
pub(crate) fn text(release: &Release) -> anyhow::Result<String> {
    let mut server: Value = serde_json::from_str(TEMPLATE).context("packaging/server.json")?;
    server["name"] = release.server_name().into();
    server["version"] = VERSION.into();
    if let Some(repository) = &release.repository {
        server["repository"] = json!({"url": repository.url, "source": repository.service()});
    }
    for package in server["packages"].as_array_mut().into_iter().flatten() {
        package["version"] = match package["registryType"].as_str() {
            Some("pypi") => super::wheel::version(VERSION)?.into(),
            _ => VERSION.into(),
        };
        package["transport"] = json!({"type": "stdio"});
        package["packageArguments"] = arguments();
    }
    Ok(format!("{server:#}\n"))
}

/// Arguments of the program: a server on standard input and output, with a readable directory for packs.
fn arguments() -> Value {
    json!([
        {"type": "positional", "value": "serve"},
        {
            "type": "named",
            "name": "--workspace",
            "description": "Directory that packs may read, under the name default, usually a Git repository",
            "value": "default={directory}",
            "variables": {
                "directory": {"description": "Absolute path of the directory", "format": "filepath", "isRequired": true}
            },
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules of the schema named in the file, and of the registry.
    #[test]
    fn the_registrys_file_keeps_to_its_schema() {
        let release = Release::new(Some("https://github.com/owner/tollgate"), false).unwrap();
        let server: Value = serde_json::from_str(&text(&release).unwrap()).unwrap();
        let length = |key: &str| server[key].as_str().unwrap().chars().count();
        assert_eq!(server["name"], "io.github.owner/tollgate");
        assert_eq!(server["version"], VERSION);
        assert!(
            (1..=100).contains(&length("description")),
            "{}",
            length("description")
        );
        assert!((1..=100).contains(&length("title")));
        assert_eq!(server["repository"]["source"], "github");
        let packages = server["packages"].as_array().unwrap();
        let identifiers: Vec<_> = packages
            .iter()
            .map(|package| package["identifier"].as_str().unwrap())
            .collect();
        assert_eq!(identifiers, [super::super::npm::NAME, super::super::wheel::NAME]);
        for package in packages {
            assert_eq!(package["transport"]["type"], "stdio");
            assert_eq!(package["packageArguments"][0]["value"], "serve");
        }
    }

    #[test]
    fn a_release_without_a_repository_has_a_name_that_no_registry_takes() {
        let release = Release {
            repository: None,
            is_published: false,
        };
        let server: Value = serde_json::from_str(&text(&release).unwrap()).unwrap();
        assert_eq!(server["name"], "com.example/tollgate");
        assert!(server.get("repository").is_none());
    }
}
