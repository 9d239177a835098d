//! Charts as SVG in the page: bars over time, and small ones for table cells.

use maud::{Markup, html};

const HEIGHT: usize = 120;
const WIDTH: usize = 900;
const SPARKLINE_SIZE: (usize, usize) = (112, 22);

/// Bar of a chart: a label, the total, and the part that failed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Bar {
    /// Text for tooltips and screen readers.
    pub(crate) label: String,
    /// Total.
    pub(crate) all: i64,
    /// Part that is drawn in another colour.
    pub(crate) bad: i64,
}

/// Bars over time, with the highest value and both ends of the time axis as text.
pub(crate) fn bars(bars: &[Bar], about: &str, (bad, good): (&str, &str)) -> Markup {
    let most = bars.iter().map(|bar| bar.all).max().unwrap_or(0).max(1);
    let step = WIDTH / bars.len().max(1);
    let height = |value: i64| scaled(value, most, HEIGHT);
    let ends = (bars.first(), bars.last());
    html! {
        figure.chart {
            svg viewBox=(format!("0 0 {WIDTH} {}", HEIGHT + 2)) preserveAspectRatio="none" role="img" aria-label=(about) {
                line.ground x1="0" x2=(WIDTH) y1=(HEIGHT + 1) y2=(HEIGHT + 1) {}
                @for (at, bar) in bars.iter().enumerate() {
                    g {
                        title { (bar.label) ": " (bar.all) " " (good) ", " (bar.bad) " " (bad) }
                        rect.hit x=(at * step) y="0" width=(step) height=(HEIGHT) {}
                        @let (all, wrong) = (height(bar.all), height(bar.bad));
                        rect.good x=(at * step + 1) y=(HEIGHT - all) width=(step.saturating_sub(2).max(1)) height=(all - wrong.min(all)) {}
                        rect.bad x=(at * step + 1) y=(HEIGHT - wrong) width=(step.saturating_sub(2).max(1)) height=(wrong) {}
                    }
                }
            }
            figcaption {
                @if let (Some(first), Some(last)) = ends { span { (first.label) } span.most { "highest " (most) } span { (last.label) } }
            }
        }
    }
}

/// A line of small bars for a cell of a table.
pub(crate) fn spark(bars: &[Bar], about: &str) -> Markup {
    let (width, tall) = SPARKLINE_SIZE;
    let most = bars.iter().map(|bar| bar.all).max().unwrap_or(0).max(1);
    let step = width / bars.len().max(1);
    html! {
        svg.spark viewBox=(format!("0 0 {width} {tall}")) width=(width) height=(tall) role="img" aria-label=(about) {
            @for (at, bar) in bars.iter().enumerate() {
                @let high = scaled(bar.all, most, tall - 2);
                g {
                    title { (bar.label) ": " (bar.all) }
                    rect class=(if bar.all > 0 { "bad" } else { "none" }) x=(at * step) y=(tall - high.max(1))
                        width=(step.saturating_sub(1).max(1)) height=(high.max(1)) {}
                }
            }
        }
    }
}

/// Bar in a cell whose length is the value's share of the maximum.
pub(crate) fn share(value: f64, most: f64) -> Markup {
    let width = if most > 0.0 {
        (value / most * 100.0).clamp(0.0, 100.0)
    } else {
        0.0
    };
    html! {
        svg.share viewBox="0 0 100 6" width="100" height="6" preserveAspectRatio="none" aria-hidden="true" {
            rect x="0" y="0" height="6" width=(format!("{width:.1}")) rx="2" {}
        }
    }
}

/// Height of a value. Any value above zero is visible.
fn scaled(value: i64, most: i64, height: usize) -> usize {
    let height = i64::try_from(height).unwrap_or(i64::MAX);
    let scaled = value.saturating_mul(height) / most.max(1);
    let scaled = if value > 0 { scaled.max(2) } else { 0 };
    usize::try_from(scaled.clamp(0, height)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_happened_is_seen_and_nothing_is_higher_than_the_picture() {
        assert_eq!(scaled(0, 1_000_000, 120), 0);
        assert_eq!(scaled(1, 1_000_000, 120), 2);
        assert_eq!(scaled(1_000_000, 1_000_000, 120), 120);
        assert_eq!(scaled(i64::MAX, 1, 120), 120);
        let all = [
            Bar {
                label: "<b>".to_owned(),
                all: 3,
                bad: 3,
            },
            Bar::default(),
        ];
        let markup = bars(&all, "calls", ("failed", "calls")).into_string();
        assert!(markup.contains("&lt;b&gt;: 3 calls, 3 failed"), "{markup}");
        assert!(bars(&[], "nothing", ("", "")).into_string().contains("svg"));
    }
}
