//! Repeated measurements, taken in turns by the compared programs.

/// Measured values of several rounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    /// Sample of values that were measured elsewhere.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Sample {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Sample(values)
    }

    fn push(&mut self, value: f64) {
        self.0.push(value);
        self.0.sort_by(f64::total_cmp);
    }

    /// The median of the rounds.
    pub(crate) fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        match (
            self.0.len() % 2,
            self.0.get(middle.saturating_sub(1)),
            self.0.get(middle),
        ) {
            (0, Some(below), Some(above)) => (below + above) / 2.0,
            (_, _, Some(median)) => *median,
            _ => f64::NAN,
        }
    }

    /// The value at a percentile, given as a fraction.
    pub(crate) fn percentile(&self, part: f64) -> f64 {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place in a list"
        )]
        let place = (self.0.len() as f64 * part) as usize;
        self.0
            .get(place.min(self.0.len().saturating_sub(1)))
            .copied()
            .unwrap_or(f64::NAN)
    }

    /// The smallest value.
    pub(crate) fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    /// The largest value.
    pub(crate) fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }
}

/// One round of one program.
pub(crate) type Round<'a> = Box<dyn FnMut() -> anyhow::Result<f64> + 'a>;

/// Measures programs in turns, so that disturbances of the machine affect all of them. The first turn of each is a
/// warm-up and is not counted.
pub(crate) fn take_turns<const N: usize>(
    rounds: usize,
    mut contestants: [Round<'_>; N],
) -> anyhow::Result<[Sample; N]> {
    let mut samples = [const { Sample(Vec::new()) }; N];
    for round in 0..=rounds {
        for (contestant, sample) in contestants.iter_mut().zip(&mut samples) {
            let value = contestant()?;
            if round > 0 {
                sample.push(value);
            }
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_and_the_warm_up_does_not_count() {
        let mut values = [99.0, 3.0, 1.0, 2.0, 10.0].into_iter();
        let contestant: Round<'_> = Box::new(|| Ok(values.next().unwrap()));
        let [sample] = take_turns(4, [contestant]).unwrap();
        assert_eq!((sample.min(), sample.median(), sample.max()), (1.0, 2.5, 10.0));
    }
}
