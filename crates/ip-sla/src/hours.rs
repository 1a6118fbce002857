//! Statistics by the hour, counted from the operation's start (CISCO-RTTMON-MIB).

use std::collections::VecDeque;

use crate::report::{Figures, Hour};
use crate::{Nanos, SECOND};

const HOUR: u64 = 3_600 * SECOND;

/// The hours that are kept.
#[derive(Clone, Debug)]
pub(crate) struct Hours {
    start: Nanos,
    kept: usize,
    hours: VecDeque<Hour>,
}

impl Hours {
    pub fn new(start: Nanos, kept: u32) -> Hours {
        Hours { start, kept: kept as usize, hours: VecDeque::new() }
    }

    /// Adds a run that started at `at`.
    pub fn add(&mut self, at: Nanos, answered: Option<bool>, figures: &Figures) {
        if self.kept == 0 {
            return;
        }
        let start = self.start + at.saturating_sub(self.start) / HOUR * HOUR;
        if self.hours.back().is_none_or(|hour| hour.start_ns < start) {
            self.hours.push_back(Hour { start_ns: start, successes: 0, failures: 0, figures: Figures::default() });
            while self.hours.len() > self.kept {
                self.hours.pop_front();
            }
        }
        if let Some(hour) = self.hours.back_mut() {
            hour.successes += u64::from(answered == Some(true));
            hour.failures += u64::from(answered == Some(false));
            hour.figures.merge(figures);
        }
    }

    pub fn list(&self) -> Vec<Hour> {
        self.hours.iter().cloned().collect()
    }
}
