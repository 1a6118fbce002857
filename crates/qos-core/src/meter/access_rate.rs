//! The meter of committed access rate: a token bucket from which packets may borrow.
//!
//! Source: Cisco, "Policing and Shaping Overview", committed access rate. A packet that finds too few tokens borrows
//! them. The borrowed amount is the actual debt, which later tokens pay back. The compounded debt is the sum of the
//! actual debts after each packet that borrowed since one last exceeded. A packet exceeds, and takes nothing, where
//! either debt would be above the extended burst; the compounded debt then is forgiven, the actual one is not. So a
//! stream that stays above its rate loses single packets, ever more of them, before it loses all that exceeds. An
//! extended burst that is not above the normal one allows no borrowing.

use crate::config::defaults::{CAR_EVERY_PACKET_IN_DEBT_BORROWS, CAR_EXTENDED_BURST_IS_DEBT};
use crate::meter::tokens::UNITS_PER_BYTE;
use crate::time::Time;

/// A token bucket with an extended burst.
#[derive(Clone, Debug)]
pub struct AccessRate {
    rate_bps: u64,
    normal: i128,
    /// Most debt.
    extended: i128,
    /// Below zero: the actual debt.
    tokens: i128,
    compounded: i128,
    last: Time,
}

impl AccessRate {
    /// Returns a bucket that is full at `start`. The rate is in bits per second, the bursts in bytes (at most 1 024 000
    /// 000).
    pub fn new(rate_bps: u64, normal_bytes: u64, extended_bytes: u64, start: Time) -> AccessRate {
        let units = |bytes: u64| i128::from(bytes) * i128::from(UNITS_PER_BYTE);
        let borrows = extended_bytes > normal_bytes;
        let most =
            if CAR_EXTENDED_BURST_IS_DEBT { extended_bytes } else { extended_bytes.saturating_sub(normal_bytes) };
        AccessRate {
            rate_bps,
            normal: units(normal_bytes),
            extended: if borrows { units(most) } else { 0 },
            tokens: units(normal_bytes),
            compounded: 0,
            last: start,
        }
    }

    /// Returns whether a packet of `bytes` that arrives at `now` conforms; it takes its tokens then. An arrival before
    /// the last one adds no tokens.
    pub fn conforms(&mut self, now: Time, bytes: u32) -> bool {
        let now = now.max(self.last);
        let owed = -self.tokens;
        let gained = i128::from(self.rate_bps) * i128::from(now.since(self.last).0);
        self.last = now;
        self.tokens = (self.tokens + gained).min(self.normal);
        let left = self.tokens - i128::from(bytes) * i128::from(UNITS_PER_BYTE);
        let debt = -left;
        if debt > self.extended {
            self.compounded = 0;
            return false;
        }
        // A packet borrows only if the tokens since the last one do not cover it: this is Cisco's example.
        if debt > 0 && (CAR_EVERY_PACKET_IN_DEBT_BORROWS || debt > owed) {
            if self.compounded + debt > self.extended {
                self.compounded = 0;
                return false;
            }
            self.compounded += debt;
        }
        self.tokens = left;
        true
    }

    /// Returns the actual and the compounded debt in whole bytes, as of the last packet.
    pub fn debts(&self) -> (u64, u64) {
        (bytes((-self.tokens).max(0)), bytes(self.compounded))
    }

    /// Returns the tokens taken from both bursts, in whole bytes, as of the last packet.
    pub fn current_burst(&self) -> u64 {
        bytes(self.normal - self.tokens)
    }
}

fn bytes(units: i128) -> u64 {
    u64::try_from(units / i128::from(UNITS_PER_BYTE)).unwrap_or(u64::MAX)
}
