//! The report as a page: tables in Markdown, and a chart for each.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use plotters::prelude::*;

use crate::report::{Quantity, Report, Row, Section, judged};

/// Width of a chart, in pixels.
const WIDTH: u32 = 760;
/// Height of a bar with its margins, in pixels.
const BAR: u32 = 34;
/// Height of the rest of a chart, in pixels.
const FRAME: u32 = 48;
/// Width of the names at the left, in pixels.
const NAMES: u32 = 250;

/// Writes the page, and its charts into a folder with the page's name beside it.
#[allow(clippy::disallowed_methods, reason = "whoever runs the bench named the file")]
pub(crate) fn write(report: &Report, file: &Path) -> anyhow::Result<()> {
    let charts = file.with_extension("");
    // Otherwise charts of removed figures would remain.
    let _ = std::fs::remove_dir_all(&charts);
    std::fs::create_dir_all(&charts).with_context(|| format!("{} cannot be created", charts.display()))?;
    let mut page = head();
    summary(&mut page, report)?;
    let folder = charts.file_name().unwrap_or_default().to_string_lossy();
    for section in report.sections() {
        if section.title.is_empty() {
            writeln!(page, "\n## Where and how\n")?;
        } else {
            writeln!(page, "\n## {}\n", section.title)?;
        }
        if !section.rows.is_empty() {
            let name = format!("{}.svg", slug(&section.title));
            chart(section, &charts.join(&name)).with_context(|| format!("{name} cannot be drawn"))?;
            writeln!(page, "![{}]({folder}/{name})\n", section.title)?;
            table(&mut page, section)?;
        }
        for note in &section.notes {
            writeln!(page, "* {note}")?;
        }
    }
    std::fs::write(file, page).with_context(|| format!("{} cannot be written", file.display()))
}

fn head() -> String {
    "# Benchmarks\n\n\
     Written by `cargo xtask bench --report docs/benchmarks.md` on the machine and day below, and not edited by hand.\n\
     [performance.md](performance.md) defines each figure and describes the measurement. Each figure is the median of all\n\
     rounds, next to a baseline from the same run, with the smallest and the largest round.\n"
        .to_owned()
}

fn summary(page: &mut String, report: &Report) -> anyhow::Result<()> {
    writeln!(page, "\n## Summary\n")?;
    writeln!(page, "| figure | measured | baseline | ratio | target |")?;
    writeln!(page, "|---|---:|---:|---:|---|")?;
    for figure in report.figures() {
        writeln!(
            page,
            "| {} | {} | {} {} | {:.2} | {} |",
            figure.name,
            figure.value,
            figure.baseline,
            figure.baseline_value,
            figure.value.0 / figure.baseline_value.0,
            figure.target.as_ref().map(judged).unwrap_or_default()
        )?;
    }
    Ok(())
}

fn table(page: &mut String, section: &Section) -> anyhow::Result<()> {
    writeln!(page, "| | median | smallest | largest | ratio |")?;
    writeln!(page, "|---|---:|---:|---:|---:|")?;
    for Row {
        name,
        sample,
        unit,
        ratio,
    } in &section.rows
    {
        let cell = |value| Quantity(value, *unit);
        writeln!(
            page,
            "| {name} | {} | {} | {} | {ratio:.2} |",
            cell(sample.median()),
            cell(sample.min()),
            cell(sample.max())
        )?;
    }
    writeln!(page)?;
    Ok(())
}

/// Bars for the medians, the first row on top, with a line from the smallest to the largest round.
fn chart(section: &Section, file: &Path) -> anyhow::Result<()> {
    let rows = &section.rows;
    let count = u32::try_from(rows.len())?;
    let largest = rows.iter().map(|row| row.sample.max()).fold(0.0, f64::max);
    let unit = rows.first().map(|row| row.unit.to_string()).unwrap_or_default();
    let root = SVGBackend::new(file, (WIDTH, BAR * count + FRAME)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(8)
        .y_label_area_size(NAMES)
        .x_label_area_size(FRAME - 12)
        .build_cartesian_2d(0.0..largest * 1.05, (0..count).into_segmented())?;
    let name = |at: &SegmentValue<u32>| match at {
        SegmentValue::CenterOf(at) | SegmentValue::Exact(at) => (count - 1)
            .checked_sub(*at)
            .and_then(|from_top| rows.get(from_top as usize))
            .map(|row| row.name.clone())
            .unwrap_or_default(),
        SegmentValue::Last => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .x_desc(unit)
        .y_labels(rows.len())
        .y_label_formatter(&name)
        .draw()?;
    for (from_bottom, row) in (0..count).zip(rows.iter().rev()) {
        let (bottom, top) = (
            SegmentValue::Exact(from_bottom),
            SegmentValue::Exact(from_bottom + 1),
        );
        let middle = SegmentValue::CenterOf(from_bottom);
        let is_own = row.name.starts_with("tollgate") || row.name.starts_with("through");
        let color = if is_own {
            RGBColor(35, 105, 180)
        } else {
            RGBColor(165, 175, 185)
        };
        let mut bar = Rectangle::new([(0.0, bottom), (row.sample.median(), top)], color.filled());
        bar.set_margin(6, 6, 0, 0);
        chart.draw_series([bar])?;
        let spread = [(row.sample.min(), middle.clone()), (row.sample.max(), middle)];
        chart.draw_series([PathElement::new(spread, BLACK)])?;
    }
    root.present()?;
    Ok(())
}

/// A title as a file name.
fn slug(title: &str) -> String {
    let mut slug = String::new();
    for letter in title.chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests look at what was written")]
mod tests {
    use super::*;
    use crate::report::Unit;
    use crate::sample::Sample;

    #[test]
    fn every_table_has_its_chart_and_every_note_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("figures.md");
        let mut report = Report::new();
        report.text("a machine");
        report.heading("Reading, 32 in flight");
        let (slow, fast) = (Sample::of([3.0, 5.0, 4.0]), Sample::of([1.0, 2.0, 3.0]));
        report.row("plain", &fast, Unit::Microseconds, &fast);
        report.row("tollgate", &slow, Unit::Microseconds, &fast);
        report.text("  net 2");
        write(&report, &file).unwrap();

        let page = std::fs::read_to_string(&file).unwrap();
        assert!(page.contains("* a machine\n"), "{page}");
        assert!(
            page.contains("![Reading, 32 in flight](figures/reading-32-in-flight.svg)"),
            "{page}"
        );
        assert!(
            page.contains("| tollgate | 4.0 µs | 3.0 µs | 5.0 µs | 2.00 |"),
            "{page}"
        );
        assert!(page.contains("* net 2\n"), "{page}");
        let chart = std::fs::read_to_string(dir.path().join("figures/reading-32-in-flight.svg")).unwrap();
        assert!(chart.starts_with("<svg") && chart.contains("tollgate"), "{chart}");
    }
}
