//! Running state of the access lists that filter an interface in one direction.

use crate::classify::access_list::AccessList;
use crate::counters::count::Count;
use crate::frame::descriptor::Descriptor;
use crate::plan::access_groups::AccessGroupsPlan;

/// The lists of a port and its subinterfaces.
#[derive(Debug)]
pub(crate) struct AccessGroups {
    pub plan: AccessGroupsPlan,
    /// Packets denied by the lists.
    pub denied: Count,
}

impl AccessGroups {
    /// Returns the access lists; `None` without any.
    pub fn of(plan: &AccessGroupsPlan) -> Option<AccessGroups> {
        plan.filters().then(|| AccessGroups { plan: plan.clone(), denied: Count::default() })
    }

    /// Returns whether each list permits the packet.
    pub fn permit(&mut self, descriptor: &Descriptor, lists: &mut [AccessList]) -> bool {
        let of_vlan = self.plan.vlans.iter().find(|(vlan, _)| *vlan == descriptor.vlan);
        let numbers = of_vlan.map_or(&self.plan.own, |(_, numbers)| numbers);
        let permitted = numbers.iter().all(|number| lists[*number].is_permitted_by(descriptor));
        if !permitted {
            self.denied.add(descriptor.counted_len);
        }
        permitted
    }
}
