//! Projects in languages other than Rust. As in Rust, the SDK of this program is copied into `vendor`.

use super::{File, Kind, Name, Sdk, Template};

/// A language other than Rust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// C, compiled with clang.
    C,
    /// Python, built with componentize-py.
    Python,
    /// JavaScript or TypeScript, built with componentize-js.
    JavaScript,
}

macro_rules! templates {
    ($folder:literal: $($path:literal),+) => {
        &[$(($path, include_str!(concat!("../../templates/", $folder, "/", $path)))),+]
    };
}

const C_PACK: &[Template] = templates!(
    "c/pack": ".gitignore", "Makefile", "README.md", "app.c", "tollgate.toml", "workspace/README.md"
);
const C_POLICY: &[Template] = templates!(
    "c/policy": ".gitignore", "Makefile", "README.md", "app.c", "cases.toml", "tollgate.toml", "workspace/README.md"
);
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

/// A file of an SDK, with its content.
type Vendored = (&'static str, &'static [u8]);

/// Files of the SDKs below `vendor/tollgate-sdk`.
const C_SDK: &[Vendored] = &include!(concat!(env!("OUT_DIR"), "/c_sdk_files.rs"));
const PYTHON_SDK: &[Vendored] = &include!(concat!(env!("OUT_DIR"), "/python_sdk_files.rs"));
const JAVASCRIPT_SDK: &[Vendored] = &include!(concat!(env!("OUT_DIR"), "/javascript_sdk_files.rs"));

impl Other {
    const fn templates(self, kind: Kind) -> &'static [Template] {
        match (self, kind) {
            (Other::C, Kind::Pack) => C_PACK,
            (Other::C, Kind::Policy) => C_POLICY,
            (Other::Python, Kind::Pack) => PYTHON_PACK,
            (Other::Python, Kind::Policy) => PYTHON_POLICY,
            (Other::JavaScript, Kind::Pack) => JAVASCRIPT_PACK,
            (Other::JavaScript, Kind::Policy) => JAVASCRIPT_POLICY,
        }
    }

    const fn sdk(self) -> &'static [Vendored] {
        match self {
            Other::C => C_SDK,
            Other::Python => PYTHON_SDK,
            Other::JavaScript => JAVASCRIPT_SDK,
        }
    }

    /// SDK dependency in the templates.
    const fn stand_in(self) -> &'static str {
        match self {
            Other::C => "vendor/tollgate-sdk",
            Other::Python => "./vendor/tollgate-sdk",
            Other::JavaScript => "file:vendor/tollgate-sdk",
        }
    }

    fn dependency(self, sdk: &Sdk) -> String {
        match (self, sdk) {
            // There is no registry for C. Its bindings work with all hosts of the same version.
            (_, Sdk::BuiltIn) | (Other::C, Sdk::Version(_)) => self.stand_in().to_owned(),
            (Other::C, Sdk::Checkout { folder, .. }) => format!("{folder}/sdk/c"),
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
            Other::C => vec!["make".to_owned()],
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

/// Files of a new folder.
pub fn files(language: Other, kind: Kind, name: &Name, sdk: &Sdk) -> Vec<File> {
    let stand_in = kind.stand_in();
    let own = language.templates(kind).iter().map(|&(path, text)| File {
        path,
        content: text
            .replace(stand_in, name.as_str())
            .replace(&stand_in.replace('-', "_"), &name.snake())
            .replace(language.stand_in(), &language.dependency(sdk))
            .into(),
    });
    let is_copied = *sdk == Sdk::BuiltIn || matches!((language, sdk), (Other::C, Sdk::Version(_)));
    let vendored = language.sdk().iter().filter(|_| is_copied);
    let vendored = vendored.map(|&(path, content)| File {
        path,
        content: content.into(),
    });
    own.chain(vendored).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(file: &File) -> &str {
        std::str::from_utf8(&file.content).unwrap()
    }

    #[test]
    fn nothing_of_the_template_is_left_and_the_sdk_is_whole() {
        for language in [Other::C, Other::Python, Other::JavaScript] {
            for kind in [Kind::Pack, Kind::Policy] {
                let name = Name::new("release-notes", kind).unwrap();
                let files = files(language, kind, &name, &Sdk::BuiltIn);
                let own = files.iter().filter(|file| !file.path.starts_with("vendor/"));
                for file in own {
                    for left in ["my-p", "my_p"] {
                        assert!(!text_of(file).contains(left), "{}: {left}", file.path);
                    }
                }
                let has = |path: &str| files.iter().any(|file| file.path == path);
                let sdk: &[&str] = match language {
                    Other::C => &["json.h", "policy.c", "policy.h", "tool_pack_component_type.o"],
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
            (Other::C, "Makefile", &checkout, "SDK = /src/tollgate/sdk/c\n"),
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
            assert!(text_of(found).contains(line), "{}", text_of(found));
            assert!(!files.iter().any(|file| file.path.starts_with("vendor/")));
        }
    }
}
