//! Reasons for dropping a frame.

/// Reason for dropping a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// A policer's action.
    Police,
    /// An access list of the interface does not permit the packet.
    Denied,
    /// The queue was full.
    Tail,
    /// The flow's share of the queue was full.
    Flow,
    /// The conditional policer of a priority class: there was congestion and the class was above its rate.
    Priority,
    /// Random early detection, between the thresholds.
    Random,
    /// Random early detection, at a mean depth above the greatest threshold.
    RandomTail,
    /// Active queue management (CoDel, PIE, CAKE): the queueing delay is too long.
    Aqm,
    /// The interface is shut down, or has no subinterface for the frame's VLAN, or one that is shut down.
    Disabled,
    /// A sender faster than its link ran too far ahead of it ([`crate::config::defaults::LINK_BACKLOG_FRAMES`]).
    Overrun,
    /// Lost on the link. No router can observe this: only [`PortTotals`](crate::PortTotals) and the link's own counters
    /// have it.
    Lost,
}

impl DropReason {
    /// Every reason, in the order of [`PortTotals`](crate::PortTotals).
    pub const ALL: [DropReason; 11] = [
        DropReason::Police,
        DropReason::Denied,
        DropReason::Tail,
        DropReason::Flow,
        DropReason::Priority,
        DropReason::Random,
        DropReason::RandomTail,
        DropReason::Aqm,
        DropReason::Disabled,
        DropReason::Overrun,
        DropReason::Lost,
    ];

    /// Returns the name in the counters.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::Police => "police",
            DropReason::Denied => "denied",
            DropReason::Tail => "tail",
            DropReason::Flow => "flow",
            DropReason::Priority => "priority",
            DropReason::Random => "random",
            DropReason::RandomTail => "random_tail",
            DropReason::Aqm => "aqm",
            DropReason::Disabled => "disabled",
            DropReason::Overrun => "overrun",
            DropReason::Lost => "lost",
        }
    }
}
