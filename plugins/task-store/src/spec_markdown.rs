//! Reads the parts of a spec from Markdown headings.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use tollgate_kit::is_blank;

use crate::spec::Spec;

/// The parts of a spec, as far as headings name them.
///
/// A part ends at the next heading of the same or a higher level, or at the next heading that names a part.
/// Each list item or paragraph is one entry.
pub(crate) fn parse(markdown: &str) -> Spec {
    let mut reader = Reader::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TASKLISTS) {
        reader.on(event);
    }
    reader.end_block();
    reader.spec
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Goal,
    ScopeIn,
    ScopeOut,
    Inputs,
    Outputs,
    Acceptance,
    Risks,
}

impl Part {
    /// The part that a heading names, in any of the usual spellings.
    fn named(heading: &str) -> Option<Part> {
        Some(match heading {
            "goal" | "goals" | "objective" | "objectives" | "purpose" | "aim" | "aims" => Part::Goal,
            "scope" | "in scope" | "scope in" | "inclusions" => Part::ScopeIn,
            "out of scope" | "scope out" | "not in scope" | "non goal" | "non goals" | "nongoals"
            | "exclusions" => Part::ScopeOut,
            "input" | "inputs" => Part::Inputs,
            "output" | "outputs" | "deliverable" | "deliverables" => Part::Outputs,
            "acceptance"
            | "acceptance criteria"
            | "acceptance criterion"
            | "acceptance tests"
            | "success criteria"
            | "definition of done"
            | "done when" => Part::Acceptance,
            "risk" | "risks" | "risks mitigations" | "risks and mitigations" => Part::Risks,
            _ => return None,
        })
    }

    /// The part that a label within the scope names, such as `In:`.
    fn within_scope(label: &str) -> Option<Part> {
        match label {
            "in" | "included" | "includes" => Some(Part::ScopeIn),
            "out" | "excluded" | "excludes" => Some(Part::ScopeOut),
            other => Part::named(other).filter(|part| part.is_scope()),
        }
    }

    const fn is_scope(self) -> bool {
        matches!(self, Part::ScopeIn | Part::ScopeOut)
    }
}

/// State of the reader.
#[derive(Default)]
struct Reader {
    spec: Spec,
    part: Option<Part>,
    /// The level of the heading that named the part.
    level: Option<HeadingLevel>,
    /// The text of the block being read.
    block: String,
}

impl Reader {
    fn on(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.block.push_str(&text),
            Event::Code(code) => {
                self.block.push('`');
                self.block.push_str(&code);
                self.block.push('`');
            }
            Event::SoftBreak | Event::HardBreak => self.block.push(' '),
            Event::Start(Tag::Heading { .. } | Tag::Item | Tag::Paragraph | Tag::CodeBlock(_))
            | Event::End(TagEnd::Item | TagEnd::Paragraph | TagEnd::CodeBlock) => self.end_block(),
            Event::End(TagEnd::Heading(level)) => {
                let heading = std::mem::take(&mut self.block);
                self.enter(level, &heading);
            }
            _ => {}
        }
    }

    fn enter(&mut self, level: HeadingLevel, heading: &str) {
        let (name, rest) = heading.split_once(':').unwrap_or((heading, ""));
        let part = self.part_named(name);
        if part.is_some() {
            self.part = part;
            self.level = Some(level);
            self.add(rest);
        } else if self.level.is_some_and(|above| level <= above) {
            self.part = None;
        }
    }

    /// The part that a heading names, with or without its parenthesis.
    fn part_named(&self, heading: &str) -> Option<Part> {
        let bare = heading.split('(').next().unwrap_or_default();
        let in_scope = self.part.is_some_and(Part::is_scope);
        [heading, bare].into_iter().map(normal).find_map(|name| {
            let part = if in_scope { Part::within_scope(&name) } else { None };
            part.or_else(|| Part::named(&name))
        })
    }

    fn end_block(&mut self) {
        let text = std::mem::take(&mut self.block);
        let labelled = match self.part {
            Some(part) if part.is_scope() => text.split_once(':'),
            _ => None,
        };
        match labelled.and_then(|(label, rest)| Some((Part::within_scope(&normal(label))?, rest))) {
            Some((part, rest)) => {
                self.part = Some(part);
                self.add(rest);
            }
            None => self.add(&text),
        }
    }

    fn add(&mut self, text: &str) {
        let text = text.trim();
        let Some(part) = self.part.filter(|_| !is_blank(text)) else {
            return;
        };
        let spec = &mut self.spec;
        let list = match part {
            Part::Goal => {
                let goal = spec.goal.get_or_insert_default();
                if !goal.is_empty() {
                    goal.push('\n');
                }
                goal.push_str(text);
                return;
            }
            Part::ScopeIn => &mut spec.scope_in,
            Part::ScopeOut => &mut spec.scope_out,
            Part::Inputs => return spec.inputs.push(text.to_owned()),
            Part::Outputs => return spec.outputs.push(text.to_owned()),
            Part::Acceptance => &mut spec.acceptance,
            Part::Risks => &mut spec.risks,
        };
        list.push(text.to_owned());
    }
}

/// A heading in lower case, without numbering and punctuation.
fn normal(heading: &str) -> String {
    let lower = heading.to_lowercase();
    lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty() && !word.chars().all(|c| c.is_ascii_digit()))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::parse;

    fn check(markdown: &str, expected: Expect) {
        expected.assert_eq(&serde_json::to_string_pretty(&parse(markdown)).unwrap());
    }

    #[test]
    fn an_entry_that_shows_nothing_is_none() {
        let spec =
            parse("## Goal\n\u{2060}\n\n## Acceptance\n- \u{200b}\n- [ ] \u{feff}\u{ad}\n* \u{2800}\n");
        assert_eq!((spec.goal, spec.acceptance), (None, Vec::new()));
        let spec = parse("## Acceptance\n- \u{200b}it runs\n");
        assert_eq!(spec.acceptance.len(), 1);
    }

    #[test]
    fn every_part_under_its_plain_heading() {
        check(
            "# Ship it\nAn introduction.\n\n## Goal\nShip the thing\nto everybody.\n\n## Scope\n### In\n- a\n- b\n### Out\n- c\n\n\
             ## Inputs\n1. a `file`\n2. a token\n\n## Outputs\nA binary.\n\n## Acceptance\n- [ ] it runs\n- [x] it stops\n\n\
             ## Risks\n* none\n\n## History\n- not a risk\n",
            expect![[r#"
                {
                  "goal": "Ship the thing to everybody.",
                  "scope_in": [
                    "a",
                    "b"
                  ],
                  "scope_out": [
                    "c"
                  ],
                  "inputs": [
                    "a `file`",
                    "a token"
                  ],
                  "outputs": [
                    "A binary."
                  ],
                  "acceptance": [
                    "it runs",
                    "it stops"
                  ],
                  "risks": [
                    "none"
                  ]
                }"#]],
        );
    }

    #[test]
    fn other_spellings_and_levels() {
        check(
            "Objective\n=========\nFirst.\n\nSecond.\n\n##### 2. IN-SCOPE:\n- a\n\n###### Non-Goals\n- b\n\n\
             # Deliverables (all of them)\n- c\n\n## Definition of Done\n### Functional\n- d\n  - e\n### Other\n- f\n\n# Risks & Mitigations\n- g\n",
            expect![[r#"
                {
                  "goal": "First.\nSecond.",
                  "scope_in": [
                    "a"
                  ],
                  "scope_out": [
                    "b"
                  ],
                  "outputs": [
                    "c"
                  ],
                  "acceptance": [
                    "d",
                    "e",
                    "f"
                  ],
                  "risks": [
                    "g"
                  ]
                }"#]],
        );
    }

    #[test]
    fn scope_by_labels() {
        check(
            "## Scope\nIn:\n- a\n\nOut:\n- b: with a colon\n\n## Goal: one line\n",
            expect![[r#"
                {
                  "goal": "one line",
                  "scope_in": [
                    "a"
                  ],
                  "scope_out": [
                    "b: with a colon"
                  ]
                }"#]],
        );
        check(
            "## Scope\n- In scope: a\n- Out of scope: b\n- In: c\n",
            expect![[r#"
                {
                  "scope_in": [
                    "a",
                    "c"
                  ],
                  "scope_out": [
                    "b"
                  ]
                }"#]],
        );
    }

    #[test]
    fn nothing_to_read() {
        check("", expect!["{}"]);
        check("Just prose.\n\n## Background\n- a\n", expect!["{}"]);
    }
}
