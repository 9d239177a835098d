//! `tollgate init`

use std::process::ExitCode;

use clap::Args;
use tollgate::config::Config;
use tollgate::config::template::template;
use tollgate_components::builtin;
use tollgate_core::text;

use super::{Global, file, out};

/// Packs that keep tasks, and the use that each is for.
const TASK_SYSTEMS: &[(&str, &str)] = &[
    (
        "task-store",
        "a pipeline of phases with reviews between roles, for several agents",
    ),
    (
        "tasks",
        "a tree of steps with checkpoints and evidence, for one agent and its successors",
    ),
    (
        "gsd",
        "milestones, slices and tasks with one writer each, for a plan that many work on",
    ),
    (
        "conductor",
        "jobs planned in one thread and executed in another, with gates that check Git",
    ),
];

/// Writes the file that `--config` names, or the user's own. An existing file is not changed.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// Print the configuration instead of writing it
    #[arg(long)]
    print: bool,
    /// Switch on only these of the built-in packs
    #[arg(long, value_delimiter = ',', value_name = "PACK,…", value_parser = pack)]
    packs: Vec<String>,
}

impl Init {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let text = self.text();
        if self.print {
            out::print(text.trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        let path = Config::file(global.config.as_deref())?;
        file::create(&path, &text)?;
        out::print(&format!(
            "wrote {}; to check the file, run `tollgate doctor`; to connect your clients, run `tollgate clients add`",
            path.display()
        ));
        if self.packs.is_empty() {
            let rows: Vec<Vec<String>> = TASK_SYSTEMS
                .iter()
                .map(|(name, what)| vec![(*name).to_owned(), (*what).to_owned()])
                .collect();
            out::print(&format!(
                "\nAll packs are on. Four of them manage tasks, and a model works best with only one of these. To keep \
                 one, remove the file and run\n`tollgate init --packs tasks,convergence`, for example:\n\n{}",
                out::table(&["PACK", "KEEPS TASKS AS"], &rows)
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Template without the unwanted packs.
    fn text(&self) -> String {
        let mut text = template().to_owned();
        if self.packs.is_empty() {
            return text;
        }
        text.push_str("\n# Switched off by `tollgate init --packs`.\n");
        for name in builtin::names().filter(|name| !self.packs.iter().any(|wanted| wanted == name)) {
            text.push_str(&format!("[packs.{name}]\nenabled = false\n"));
        }
        text
    }
}

/// The name of a built-in pack.
fn pack(name: &str) -> Result<String, String> {
    if builtin::component(name).is_some() {
        return Ok(name.to_owned());
    }
    let all: Vec<&str> = builtin::names().collect();
    Err(match text::nearest(name, all.iter().copied()) {
        Some(near) => format!("not a built-in pack; did you mean {near}?"),
        None => format!("not a built-in pack; the built-in packs are {}", all.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_init_writes_has_the_packs_that_were_asked_for() {
        let init = Init {
            print: false,
            packs: vec!["tasks".to_owned(), "convergence".to_owned()],
        };
        let config = Config::parse(&init.text(), Path::new("x.toml")).unwrap();
        let is_on = |name: &str| {
            config
                .packs
                .get(name)
                .is_none_or(|pack| pack.enabled != Some(false))
        };
        let on: Vec<&str> = builtin::names().filter(|name| is_on(name)).collect();
        assert_eq!(on, ["tasks", "convergence"]);
        assert!(
            TASK_SYSTEMS
                .iter()
                .all(|(name, _)| builtin::component(name).is_some())
        );
    }
}
