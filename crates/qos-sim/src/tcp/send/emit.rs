//! Where segments are put, and what each of them carries from the receiving half.

use crate::tcp::segment::Segment;
use qos_core::time::Time;

/// The way out for segments at one moment.
pub(crate) struct Emit<'a> {
    now: Time,
    out: &'a mut Vec<Segment>,
    /// Acknowledgement, window and timestamps.
    template: Segment,
    used: bool,
}

impl Emit<'_> {
    pub fn new(now: Time, out: &mut Vec<Segment>, template: Segment) -> Emit<'_> {
        Emit { now, out, template, used: false }
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// Whether something left with the acknowledgement.
    pub fn used(&self) -> bool {
        self.used
    }

    pub(super) fn send(&mut self, seq: u64, len: u32, fin: bool, push: bool, retransmission: bool) {
        self.used = true;
        self.out.push(Segment { seq, len, fin, push, retransmission, ..self.template });
    }
}
