//! VLANs of a port: its accepted frames, and the counters of each subinterface.

use crate::counters::count::Count;
use crate::frame::descriptor::Descriptor;
use crate::plan::port::SubinterfacePlan;

/// Number of VLANs that a tag can name.
const VLANS: usize = 4_096;
/// Index of the port itself, for frames without a tag.
const MAIN: u16 = u16::MAX - 1;
/// Index for no subinterface, or one that is shut down.
const NOBODY: u16 = u16::MAX;

/// The subinterfaces of a port in one direction.
#[derive(Debug)]
pub(crate) struct Vlans {
    /// Number of the subinterface by VLAN; 0 is a frame without a tag.
    numbers: Box<[u16; VLANS]>,
    counts: Vec<(String, Count)>,
}

impl Vlans {
    /// Returns the state of these subinterfaces; none if there are none. Those that existed `before` keep their
    /// counters.
    pub fn of(plans: &[SubinterfacePlan], before: Option<&Vlans>) -> Option<Box<Vlans>> {
        let mut numbers = Box::new([NOBODY; VLANS]);
        numbers[0] = MAIN;
        for (number, plan) in plans.iter().enumerate() {
            let number = if plan.enabled { number as u16 } else { NOBODY };
            numbers[usize::from(plan.vlan)] = number;
            if plan.native {
                numbers[0] = number;
            }
        }
        let counted = |name: &str| {
            let same = before.into_iter().flat_map(|before| &before.counts).find(|(other, _)| other == name);
            same.map_or_else(Count::default, |(_, count)| *count)
        };
        let counts: Vec<_> = plans.iter().map(|plan| (plan.name.clone(), counted(&plan.name))).collect();
        (!plans.is_empty()).then(|| Box::new(Vlans { numbers, counts }))
    }

    /// Returns whether the frame is for the port or for a subinterface that is up, which counts it.
    pub fn accepts(&mut self, descriptor: &Descriptor) -> bool {
        match self.numbers[usize::from(descriptor.vlan) % VLANS] {
            NOBODY => false,
            MAIN => true,
            number => {
                self.counts[usize::from(number)].1.add(descriptor.counted_len);
                true
            }
        }
    }

    /// Returns the counters of the subinterface of that number.
    pub fn count(&self, number: usize) -> Count {
        self.counts[number].1
    }

    pub fn clear(&mut self) {
        self.counts.iter_mut().for_each(|(_, count)| *count = Count::default());
    }
}
