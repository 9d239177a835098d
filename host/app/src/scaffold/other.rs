//! Folders to start from in other languages than Rust. As in Rust, the SDK of this program is copied into `vendor`.

use super::{File, Kind, Name, Sdk, Template};

/// A language other than Rust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// Python, which componentize-py makes components of.
    Python,
    /// JavaScript or TypeScript, which componentize-js makes components of.
    JavaScript,
}

macro_rules! templates {
    ($folder:literal: $($path:literal),+) => {
        &[$(($path, include_str!(concat!("../../templates/", $folder, "/", $path)))),+]
    };
}

const PYTHON_PACK: &[Template] = templates!(
    "python/pack": ".gitignore", "README.md", "app.py", "requirements.txt", "test_app.py", "tollgate.toml", "workspace/README.md"
);
const PYTHON_POLICY: &[Template] = templates!(
    "python/policy": ".gitignore", "README.md", "app.py", "cases.toml", "requirements.txt", "test_app.py", "tollgate.toml",
    "workspace/README.md"
);
const JAVASCRIPT_PACK: &[Template] = templates!(
    "javascript/pack": ".gitignore", ".npmrc", "README.md", "app.js", "app.test.js", "package.json", "tollgate.toml",
    "workspace/README.md"
);
const JAVASCRIPT_POLICY: &[Template] = templates!(
    "javascript/policy": ".gitignore", ".npmrc", "README.md", "app.js", "app.test.js", "cases.toml", "package.json", "tollgate.toml",
    "workspace/README.md"
);

/// Files of the SDKs below `vendor/tollgate-sdk`.
const PYTHON_SDK: &[Template] = &include!(concat!(env!("OUT_DIR"), "/python_sdk_files.rs"));
const JAVASCRIPT_SDK: &[Template] = &include!(concat!(env!("OUT_DIR"), "/javascript_sdk_files.rs"));

impl Other {
    const fn templates(self, kind: Kind) -> &'static [Template] {
        match (self, kind) {
            (Other::Python, Kind::Pack) => PYTHON_PACK,
            (Other::Python, Kind::Policy) => PYTHON_POLICY,
            (Other::JavaScript, Kind::Pack) => JAVASCRIPT_PACK,
            (Other::JavaScript, Kind::Policy) => JAVASCRIPT_POLICY,
        }
    }

    const fn sdk(self) -> &'static [Template] {
        match self {
            Other::Python => PYTHON_SDK,
            Other::JavaScript => JAVASCRIPT_SDK,
        }
    }

    /// The dependency as the templates have it.
    const fn stand_in(self) -> &'static str {
        match self {
            Other::Python => "./vendor/tollgate-sdk",
            Other::JavaScript => "file:vendor/tollgate-sdk",
        }
    }

    fn dependency(self, sdk: &Sdk) -> String {
        match (self, sdk) {
            (_, Sdk::BuiltIn) => self.stand_in().to_owned(),
            (Other::Python, Sdk::Checkout { folder, .. }) => format!("{folder}/sdk/python"),
            (Other::JavaScript, Sdk::Checkout { folder, .. }) => format!("file:{folder}/sdk/javascript"),
            (Other::Python, Sdk::Version(version)) => format!("tollgate-sdk=={version}"),
            (Other::JavaScript, Sdk::Version(version)) => version.clone(),
        }
    }

    /// Commands from the new folder to a checked component.
    pub fn steps(self, kind: Kind, name: &Name) -> Vec<String> {
        let component = format!("{}.wasm", name.snake());
        let mut steps: Vec<String> = match self {
            Other::Python => vec![
                "python3 -m venv .venv".to_owned(),
                ".venv/bin/pip install -r requirements.txt".to_owned(),
                ".venv/bin/pytest".to_owned(),
                format!(".venv/bin/python -m tollgate_sdk build app -o {component}"),
            ],
            Other::JavaScript => ["npm install", "npm test", "npm run build"]
                .map(str::to_owned)
                .to_vec(),
        };
        steps.push(kind.check(&component));
        steps
    }
}

/// The files of a new folder.
pub fn files(language: Other, kind: Kind, name: &Name, sdk: &Sdk) -> Vec<File> {
    let stand_in = kind.stand_in();
    let own = language.templates(kind).iter().map(|&(path, text)| File {
        path,
        text: text
            .replace(stand_in, name.as_str())
            .replace(&stand_in.replace('-', "_"), &name.snake())
            .replace(language.stand_in(), &language.dependency(sdk)),
    });
    let vendored = language.sdk().iter().filter(|_| *sdk == Sdk::BuiltIn);
    let vendored = vendored.map(|&(path, text)| File {
        path,
        text: text.to_owned(),
    });
    own.chain(vendored).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_template_is_left_and_the_sdk_is_whole() {
        for language in [Other::Python, Other::JavaScript] {
            for kind in [Kind::Pack, Kind::Policy] {
                let name = Name::new("release-notes", kind).unwrap();
                let files = files(language, kind, &name, &Sdk::BuiltIn);
                let own = files.iter().filter(|file| !file.path.starts_with("vendor/"));
                for file in own {
                    for left in ["my-p", "my_p"] {
                        assert!(!file.text.contains(left), "{}: {left}", file.path);
                    }
                }
                let has = |path: &str| files.iter().any(|file| file.path == path);
                let sdk: &[&str] = match language {
                    Other::Python => &[
                        "pyproject.toml",
                        "tollgate_sdk/__init__.py",
                        "tollgate_sdk/wit/pack.wit",
                    ],
                    Other::JavaScript => &[
                        "package.json",
                        "src/index.js",
                        "wit/pack.wit",
                        "bin/tollgate-sdk.js",
                    ],
                };
                for path in sdk.iter().chain(&["README.md", "LICENSE-MIT", "LICENSE-APACHE"]) {
                    assert!(has(&format!("vendor/tollgate-sdk/{path}")), "{path}");
                }
                assert!(!files.iter().any(|file| file.path.contains("__pycache__")));
            }
        }
    }

    #[test]
    fn a_version_and_a_checkout_are_named_as_each_language_names_them() {
        let checkout = Sdk::Checkout {
            folder: "/src/tollgate".to_owned(),
            pins: Vec::new(),
        };
        let version = Sdk::Version("0.1.0".to_owned());
        let name = Name::new("hello", Kind::Pack).unwrap();
        for (language, file, sdk, line) in [
            (
                Other::Python,
                "requirements.txt",
                &checkout,
                "\n/src/tollgate/sdk/python\n",
            ),
            (
                Other::Python,
                "requirements.txt",
                &version,
                "\ntollgate-sdk==0.1.0\n",
            ),
            (
                Other::JavaScript,
                "package.json",
                &checkout,
                "\"file:/src/tollgate/sdk/javascript\"",
            ),
            (
                Other::JavaScript,
                "package.json",
                &version,
                "\"@tollgate/sdk\": \"0.1.0\"",
            ),
        ] {
            let files = files(language, Kind::Pack, &name, sdk);
            let found = files.iter().find(|made| made.path == file).unwrap();
            assert!(found.text.contains(line), "{}", found.text);
            assert!(!files.iter().any(|file| file.path.starts_with("vendor/")));
        }
    }
}
