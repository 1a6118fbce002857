//! The plan of the access lists that filter an interface.

/// The lists of a port in one direction, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccessGroupsPlan {
    /// Lists of the port itself.
    pub own: Vec<usize>,
    /// Lists of the subinterfaces by VLAN (0: frames without a tag); complete if any subinterface has a list.
    pub vlans: Vec<(u16, Vec<usize>)>,
}

impl AccessGroupsPlan {
    /// Returns whether there are any lists.
    pub fn filters(&self) -> bool {
        !self.own.is_empty() || !self.vlans.is_empty()
    }
}
