//! The bench's output: tables during the measurement, and all figures with their targets at the end.

use std::fmt;
use std::io::Write as _;

use crate::sample::Sample;

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Microseconds,
    Milliseconds,
    Mebibytes,
    /// A number of things.
    Count,
    /// A ratio.
    Times,
    /// Percentage.
    Percent,
}

/// A measured value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity(pub(crate) f64, pub(crate) Unit);

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Microseconds => "µs",
            Unit::Milliseconds => "ms",
            Unit::Mebibytes => "MiB",
            Unit::Count => "",
            Unit::Times => "x",
            Unit::Percent => "%",
        })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantity(value, unit) = self;
        f.pad(&match unit {
            Unit::Count => format!("{value:.0}"),
            Unit::Times | Unit::Percent => format!("{value:.2} {unit}"),
            _ => format!("{value:.1} {unit}"),
        })
    }
}

/// Limit that a figure is compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// Verb or noun before the value, such as `takes` or `delay`.
    pub(crate) what: &'static str,
    /// The compared value.
    pub(crate) value: Quantity,
    /// The limit in the unit of the value.
    pub(crate) limit: f64,
    bound: Bound,
}

/// Side of the limit on which a value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    AtMost,
    AtLeast,
}

impl Target {
    /// A value that must not exceed its limit.
    pub(crate) const fn at_most(what: &'static str, value: Quantity, limit: f64) -> Target {
        Target {
            what,
            value,
            limit,
            bound: Bound::AtMost,
        }
    }

    /// A value that must reach its limit.
    pub(crate) const fn at_least(what: &'static str, value: Quantity, limit: f64) -> Target {
        Target {
            what,
            value,
            limit,
            bound: Bound::AtLeast,
        }
    }
}

/// One figure of the summary.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: Quantity,
    /// Name of the baseline.
    pub(crate) baseline: &'static str,
    pub(crate) baseline_value: Quantity,
    pub(crate) target: Option<Target>,
}

/// One table of samples, with notes.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// Title of the table. Empty for text before the first table.
    pub(crate) title: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) notes: Vec<String>,
}

/// One line of a table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) sample: Sample,
    pub(crate) unit: Unit,
    /// The sample's median divided by the baseline's.
    pub(crate) ratio: f64,
}

/// All measurements so far.
#[derive(Debug)]
pub(crate) struct Report {
    figures: Vec<Figure>,
    sections: Vec<Section>,
}

impl Report {
    pub(crate) fn new() -> Report {
        Report {
            figures: Vec::new(),
            sections: vec![Section::default()],
        }
    }

    /// All tables, in the order of measurement.
    pub(crate) fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// All figures, in the order of measurement.
    pub(crate) fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// Prints a line.
    pub(crate) fn text(&mut self, line: &str) {
        print(line);
        if let Some(section) = self.sections.last_mut() {
            let lines = line.lines().map(str::trim).filter(|line| !line.is_empty());
            section.notes.extend(lines.map(str::to_owned));
        }
    }

    /// Prints the heading of a table of samples.
    pub(crate) fn heading(&mut self, title: &str) {
        self.sections.push(Section {
            title: title.to_owned(),
            ..Section::default()
        });
        print(&format!("\n{title}"));
        print(&format!(
            "  {:<34} {:>12} {:>12} {:>12} {:>7}",
            "", "median", "min", "max", "ratio"
        ));
    }

    /// Prints a sample and how it compares with a baseline's median.
    pub(crate) fn row(&mut self, name: &str, sample: &Sample, unit: Unit, baseline: &Sample) {
        let ratio = sample.median() / baseline.median();
        let cell = |value| Quantity(value, unit);
        print(&format!(
            "  {name:<34} {:>12} {:>12} {:>12} {:>7.2}",
            cell(sample.median()),
            cell(sample.min()),
            cell(sample.max()),
            ratio,
        ));
        if let Some(section) = self.sections.last_mut() {
            section.rows.push(Row {
                name: name.to_owned(),
                sample: sample.clone(),
                unit,
                ratio,
            });
        }
    }

    /// Adds a figure to the summary.
    pub(crate) fn add(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    /// Prints the summary. A missed target is information, not a failure.
    pub(crate) fn summary(&self) {
        print("\nSummary");
        print(&format!(
            "  {:<56} {:>10} {:>18} {:>6}  {}",
            "figure", "measured", "baseline", "ratio", "target"
        ));
        for figure in &self.figures {
            let target = figure.target.as_ref().map(judged).unwrap_or_default();
            let line = format!(
                "  {:<56} {:>10} {:>18} {:>6.2}  {target}",
                figure.name,
                figure.value,
                format!("{} {}", figure.baseline, figure.baseline_value),
                figure.value.0 / figure.baseline_value.0,
            );
            print(line.trim_end());
        }
    }
}

/// Text that says whether a target was met.
pub(crate) fn judged(target: &Target) -> String {
    let (met, bound) = match target.bound {
        Bound::AtMost => (target.value.0 <= target.limit, "at most"),
        Bound::AtLeast => (target.value.0 >= target.limit, "at least"),
    };
    let verdict = if met { "met" } else { "MISSED" };
    let limit = Quantity(target.limit, target.value.1);
    format!(
        "{verdict}: {} {}, target {bound} {limit}",
        target.what, target.value
    )
}

/// Prints a line. A closed standard output is not an error.
fn print(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
