//! The plan of a shaper.

use crate::config::policy::ShapeMode;
use crate::time::Duration;
use crate::wire::framing::{CELL, CELL_PAYLOAD};

/// Length of a packet for a rate, if it differs from the counted length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccountPlan {
    /// Added to the counted bytes.
    pub offset: i32,
    /// Whether the sum is divided into cells.
    pub cells: bool,
    /// Minimum length before the division into cells.
    pub least: u32,
    /// Whether 64 bytes take 65 (PTM, IEEE 802.3-2022 clause 61).
    pub ptm: bool,
}

impl AccountPlan {
    /// Returns the length for the rate of a packet of this counted length.
    pub fn length(self, bytes: u32) -> u32 {
        let bytes = bytes.saturating_add_signed(self.offset).max(self.least);
        if self.cells {
            bytes.div_ceil(CELL_PAYLOAD).saturating_mul(CELL)
        } else if self.ptm {
            bytes.saturating_add(bytes.div_ceil(64))
        } else {
            bytes
        }
    }
}

/// A shaper with every value known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShapePlan {
    pub mode: ShapeMode,
    pub cir_bps: u64,
    pub percent: Option<u32>,
    pub bc_bits: u64,
    pub be_bits: u64,
    /// Bc / CIR.
    pub interval: Duration,
    pub account: Option<AccountPlan>,
    /// Whether it spaces packets; its bursts are then only displayed.
    pub spaced: bool,
    /// Whether a packet of any length leaves while the credit is not negative (HTB, CAKE). Otherwise it leaves when the
    /// credit covers its length.
    pub deficit: bool,
}

impl ShapePlan {
    /// Returns the credit that is added per interval.
    pub fn increment_bits(&self) -> u64 {
        match self.mode {
            ShapeMode::Average => self.bc_bits,
            ShapeMode::Peak => self.bc_bits + self.be_bits,
        }
    }

    /// Returns the long-run rate.
    pub fn target_bps(&self) -> u64 {
        match self.mode {
            ShapeMode::Average => self.cir_bps,
            ShapeMode::Peak => {
                let excess = u128::from(self.cir_bps) * u128::from(self.be_bits) / u128::from(self.bc_bits.max(1));
                self.cir_bps.saturating_add(u64::try_from(excess).unwrap_or(u64::MAX))
            }
        }
    }

    /// Returns the maximum credit.
    pub fn limit_bits(&self) -> u64 {
        self.bc_bits + self.be_bits
    }
}
