//! What the bench prints: tables while it measures, and all figures with their targets at the end.

use std::fmt;
use std::io::Write as _;

use crate::sample::Sample;

/// What a figure is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Microseconds,
    Milliseconds,
    Mebibytes,
    /// A ratio.
    Times,
    /// Parts of a hundred.
    Percent,
}

/// A measured value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity(pub(crate) f64, pub(crate) Unit);

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.1 {
            Unit::Microseconds => "µs",
            Unit::Milliseconds => "ms",
            Unit::Mebibytes => "MiB",
            Unit::Percent => return f.pad(&format!("{:.2} %", self.0)),
            Unit::Times => return f.pad(&format!("{:.2} x", self.0)),
        };
        f.pad(&format!("{:.1} {unit}", self.0))
    }
}

/// What a figure is held against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// What of the figure counts.
    pub(crate) what: &'static str,
    /// How much that is.
    pub(crate) value: Quantity,
    /// How much it may or must be.
    pub(crate) limit: f64,
    bound: Bound,
}

/// On which side of its limit a value is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    AtMost,
    AtLeast,
}

impl Target {
    /// A value that is not to pass its limit.
    pub(crate) const fn at_most(what: &'static str, value: Quantity, limit: f64) -> Target {
        Target {
            what,
            value,
            limit,
            bound: Bound::AtMost,
        }
    }

    /// A value that is to reach its limit.
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
    /// What it is compared with.
    pub(crate) baseline: &'static str,
    pub(crate) baseline_value: Quantity,
    pub(crate) target: Option<Target>,
}

/// Everything that was measured so far.
#[derive(Debug)]
pub(crate) struct Report {
    figures: Vec<Figure>,
}

impl Report {
    pub(crate) fn new() -> Report {
        Report { figures: Vec::new() }
    }

    /// Prints a line.
    pub(crate) fn text(&self, line: &str) {
        print(line);
    }

    /// Prints the heading of a table of samples.
    pub(crate) fn heading(&self, title: &str) {
        print(&format!("\n{title}"));
        print(&format!(
            "  {:<34} {:>12} {:>12} {:>12} {:>7}",
            "", "median", "min", "max", "ratio"
        ));
    }

    /// Prints a sample and how it compares with a baseline's median.
    pub(crate) fn row(&self, name: &str, sample: &Sample, unit: Unit, baseline: &Sample) {
        let cell = |value| Quantity(value, unit);
        print(&format!(
            "  {name:<34} {:>12} {:>12} {:>12} {:>7.2}",
            cell(sample.median()),
            cell(sample.min()),
            cell(sample.max()),
            sample.median() / baseline.median(),
        ));
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

fn judged(target: &Target) -> String {
    let (met, bound) = match target.bound {
        Bound::AtMost => (target.value.0 <= target.limit, "at most"),
        Bound::AtLeast => (target.value.0 >= target.limit, "at least"),
    };
    let verdict = if met { "met" } else { "MISSED" };
    let limit = Quantity(target.limit, target.value.1);
    format!("{verdict}: {} {}, {bound} {limit}", target.what, target.value)
}

/// A reader that went away is not an error.
fn print(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
