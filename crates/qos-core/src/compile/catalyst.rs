//! Compiler from the switch's configuration to the plans of its ports, with all checks.

use std::collections::BTreeMap;

use crate::compile::catalyst_policer::{policer, within, wrong};
use crate::compile::catalyst_vlans::{self, Actions};
use crate::compile::context::Context;
use crate::config::catalyst::{InputQueuesConfig, MapsConfig, QueueSetConfig, SwitchConfig, SwitchPortConfig, Trust};
use crate::config::catalyst_constants::{
    operational_bandwidth, ASIC_PORTS, FIFO_CELLS, FIFO_CHARGED, MAXIMUM_CAP_PERCENT, POLICERS_PER_PORT, POLICE_BURSTS,
    POLICE_RATES, PORT_CELLS, QUEUES, THRESHOLDS,
};
use crate::config::interface::InterfaceConfig;
use crate::config::policy::{PoliceAction, PolicyClass, SetField};
use crate::config::router::RouterConfig;
use crate::config::wiring::PortConfig;
use crate::error::ConfigError;
use crate::plan::catalyst::{CatalystPlan, EgressPlan, IngressPlan, Mark, QueueAt, QueueLimits, Source};
use crate::plan::classes::PolicyPlan;
use crate::time::Rate;
use crate::wire::framing::Framing;

/// Checks the global settings of the switch.
pub(crate) fn check(switch: &SwitchConfig) -> Result<(), ConfigError> {
    check_maps(&switch.maps)?;
    for (number, set) in switch.queue_sets.iter().enumerate() {
        check_queue_set(&format!("switch.queue_sets[{number}]"), set)?;
    }
    check_input(&switch.input)?;
    for (name, policer) in &switch.aggregate_policers {
        within(&format!("switch.aggregate_policers.{name}.rate_bps"), policer.rate_bps, &POLICE_RATES)?;
        within(&format!("switch.aggregate_policers.{name}.burst_bytes"), policer.burst_bytes, &POLICE_BURSTS)?;
    }
    Ok(())
}

fn check_maps(maps: &MapsConfig) -> Result<(), ConfigError> {
    let values = |name: &str, values: &[u8], count: usize, greatest: u8| {
        if values.len() != count {
            return wrong(format!("switch.maps.{name}"), format!("{} values: expected {count}", values.len()));
        }
        values
            .iter()
            .enumerate()
            .try_for_each(|(at, value)| within(&format!("switch.maps.{name}[{at}]"), *value, &(0..=greatest)))
    };
    values("cos_dscp", &maps.cos_dscp, 8, 63)?;
    values("ip_prec_dscp", &maps.ip_prec_dscp, 8, 63)?;
    values("dscp_cos", &maps.dscp_cos, 64, 7)?;
    values("policed_dscp", &maps.policed_dscp, 64, 63)?;
    for (name, map) in &maps.dscp_mutation {
        values(&format!("dscp_mutation.{name}"), map, 64, 63)?;
    }
    let queues = |name: &str, pairs: &[[u8; 2]], count: usize, queues: u8| {
        if pairs.len() != count {
            return wrong(format!("switch.maps.{name}"), format!("{} pairs: expected {count}", pairs.len()));
        }
        pairs.iter().enumerate().try_for_each(|(at, [queue, threshold])| {
            within(&format!("switch.maps.{name}[{at}][0]"), *queue, &(1..=queues))?;
            within(&format!("switch.maps.{name}[{at}][1]"), *threshold, &(1..=THRESHOLDS as u8))
        })
    };
    queues("cos_output_q", &maps.cos_output_q, 8, 4)?;
    queues("dscp_output_q", &maps.dscp_output_q, 64, 4)?;
    queues("cos_input_q", &maps.cos_input_q, 8, 2)?;
    queues("dscp_input_q", &maps.dscp_input_q, 64, 2)
}

fn sums_to_100(path: String, parts: &[u32]) -> Result<(), ConfigError> {
    let sum: u64 = parts.iter().map(|part| u64::from(*part)).sum();
    if sum == 100 {
        return Ok(());
    }
    wrong(path, format!("{parts:?} per cent add up to {sum}: they must add up to 100"))
}

fn check_queue_set(path: &str, set: &QueueSetConfig) -> Result<(), ConfigError> {
    for (queue, part) in set.buffers.iter().enumerate() {
        // The second queue also holds traffic from the switch's processor.
        let range = if queue == 1 { 1..=100 } else { 0..=99 };
        within(&format!("{path}.buffers[{queue}]"), *part, &range)?;
    }
    sums_to_100(format!("{path}.buffers"), &set.buffers)?;
    for (queue, each) in set.thresholds.iter().enumerate() {
        let path = format!("{path}.thresholds[{queue}]");
        within(&format!("{path}.t1"), each.t1, &(1..=3_200))?;
        within(&format!("{path}.t2"), each.t2, &(1..=3_200))?;
        within(&format!("{path}.reserved"), each.reserved, &(1..=100))?;
        within(&format!("{path}.maximum"), each.maximum, &(1..=3_200))?;
    }
    Ok(())
}

fn check_input(input: &InputQueuesConfig) -> Result<(), ConfigError> {
    sums_to_100("switch.input.buffers".to_owned(), &input.buffers)?;
    for queue in 0..2 {
        within(&format!("switch.input.bandwidth[{queue}]"), input.bandwidth[queue], &(1..=100))?;
        for (at, threshold) in input.thresholds[queue].iter().enumerate() {
            within(&format!("switch.input.thresholds[{queue}][{at}]"), *threshold, &(1..=100))?;
        }
    }
    within("switch.input.priority.queue", input.priority.queue, &(1..=2))?;
    within("switch.input.priority.bandwidth", input.priority.bandwidth, &(0..=40))
}

/// Checks a class of a policy-map of a switch. Paths are relative to the class.
pub(crate) fn check_class(class: &PolicyClass, switch: &SwitchConfig) -> Result<(), ConfigError> {
    let not_here = "a switch has no such action in a policy-map: use null";
    for (field, given) in [
        ("shape", class.shape.is_some()),
        ("queue_limit", class.queue_limit.is_some()),
        ("shape_buffers", class.shape_buffers.is_some()),
        ("queue_thresholds", !class.queue_thresholds.is_empty()),
        ("fair_queue", class.fair_queue.is_some()),
        ("bandwidth", class.bandwidth.is_some()),
        ("priority", class.priority.is_some()),
        ("random_detect", class.random_detect.is_some()),
        ("map", !class.map.is_empty()),
    ] {
        if given {
            return wrong(field, not_here);
        }
    }
    for (at, set) in class.set.iter().enumerate() {
        if matches!(set.field, SetField::Cos | SetField::QosGroup | SetField::DiscardClass) {
            return wrong(format!("set[{at}].field"), "a switch sets DSCP or IP precedence only");
        }
    }
    if class.set.len() > 1 {
        return wrong("set[1]", "a class of a switch can have only one marking: remove the others");
    }
    if class.trust.is_some() && !class.set.is_empty() {
        return wrong("trust", "a class cannot both trust and set: remove one of the two");
    }
    if let Some(name) = &class.police_aggregate {
        if class.police.is_some() {
            return wrong("police_aggregate", "a class has one policer: remove police or police_aggregate");
        }
        if !switch.aggregate_policers.contains_key(name) {
            let message = format!("there is no aggregate policer {name:?}: define it in switch.aggregate_policers");
            return Err(ConfigError::unknown("police_aggregate", message));
        }
    }
    class.police.as_ref().map_or(Ok(()), |police| policer(police).map(drop))
}

/// Checks a class of a policy-map of a router.
pub(crate) fn check_router_class(class: &PolicyClass) -> Result<(), ConfigError> {
    let only = "only a switch has this key: use null";
    if class.trust.is_some() {
        return wrong("trust", only);
    }
    if class.police_aggregate.is_some() {
        return wrong("police_aggregate", only);
    }
    let Some(police) = &class.police else { return Ok(()) };
    for (field, actions) in [("conform", &police.conform), ("exceed", &police.exceed), ("violate", &police.violate)] {
        let marked = |action: &PoliceAction| matches!(action, PoliceAction::PolicedDscpTransmit {});
        if let Some(at) = actions.iter().flatten().position(marked) {
            return wrong(
                format!("police.{field}[{at}]"),
                "only a switch has a policed-dscp map: use set-dscp-transmit",
            );
        }
    }
    Ok(())
}

/// Checks that each aggregate policer is used by one policy-map.
pub(crate) fn check_aggregates(config: &RouterConfig) -> Result<(), ConfigError> {
    let mut users: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, policy) in &config.policy_maps {
        for (at, class) in policy.classes.iter().enumerate() {
            let Some(aggregate) = &class.police_aggregate else { continue };
            let user = *users.entry(aggregate).or_insert(name);
            if user != name {
                let message =
                    format!("{aggregate:?} is already used by policy-map {user:?}: only one policy-map may use it");
                return wrong(format!("policy_maps.{name}.classes[{at}].police_aggregate"), message);
            }
        }
    }
    Ok(())
}

/// Returns the cells of a queue-set.
pub(crate) fn limits(set: &QueueSetConfig) -> [QueueLimits; QUEUES] {
    std::array::from_fn(|queue| {
        let allocated = PORT_CELLS * set.buffers[queue] / 100;
        let each = set.thresholds[queue];
        let maximum = allocated * each.maximum.min(MAXIMUM_CAP_PERCENT) / 100;
        let threshold = |percent: u32| (allocated * percent / 100).min(maximum);
        QueueLimits {
            reserved: allocated * each.reserved / 100,
            thresholds: [threshold(each.t1), threshold(each.t2), maximum],
        }
    })
}

/// Returns the cells that each ASIC reserves for the queues of its ports. The engine does not know ports without a
/// cable; they are assumed to be in queue-set 1.
pub(crate) fn reserved<'a>(switch: &SwitchConfig, wired: impl Iterator<Item = &'a EgressPlan>) -> Vec<u32> {
    let of = |limits: &[QueueLimits]| limits.iter().map(|each| each.reserved).sum::<u32>();
    let unwired = if switch.qos { of(&limits(&switch.queue_sets[0])) } else { 0 };
    let mut asics: Vec<(u32, u32)> = Vec::new();
    for plan in wired {
        if asics.len() <= plan.asic {
            asics.resize(plan.asic + 1, (0, 0));
        }
        asics[plan.asic].0 += 1;
        asics[plan.asic].1 += of(&plan.limits);
    }
    asics.into_iter().map(|(ports, reserved)| reserved + ASIC_PORTS.saturating_sub(ports) * unwired).collect()
}

/// Returns the ASIC of a port: by the last number of its name, from 1.
pub(crate) fn asic(name: &str) -> usize {
    let number: u32 = name.rsplit('/').next().and_then(|number| number.parse().ok()).unwrap_or(1);
    (number.saturating_sub(1) / ASIC_PORTS) as usize
}

fn array<const N: usize, A: Copy, B: Default + Copy>(values: &[A], convert: impl Fn(A) -> B) -> [B; N] {
    let mut array = [B::default(); N];
    for (to, from) in array.iter_mut().zip(values) {
        *to = convert(*from);
    }
    array
}

fn queue_at([queue, threshold]: [u8; 2]) -> QueueAt {
    QueueAt { queue: queue - 1, threshold: threshold - 1 }
}

fn same(value: u8) -> u8 {
    value
}

/// Returns the plan of a port of a switch, and its input policy (without the actions that a switch carries out
/// elsewhere). `interface` is null for a port that is not configured.
pub(crate) fn port(
    name: &str,
    port: &PortConfig,
    interface: Option<&InterfaceConfig>,
    (switch, context): (&SwitchConfig, &Context<'_>),
    input: Option<PolicyPlan>,
) -> Result<(CatalystPlan, Option<PolicyPlan>), ConfigError> {
    let path = |field: &str| format!("interfaces.{name}.{field}");
    check_interface(name, port, interface)?;
    let default = SwitchPortConfig::default();
    let config = interface.and_then(|interface| interface.switch.as_ref()).unwrap_or(&default);
    check_port(&path, config, port, switch, input.as_ref())?;
    let of_port = match config.trust {
        _ if config.cos_override => Source::Override,
        Some(trust) => Source::Trust(trust),
        None => Source::Untrusted,
    };
    let mut unmarked = Mark::Zero;
    let mut input = input;
    if let Some(switchport) = config.switchport.as_ref().filter(|_| config.vlan_based) {
        unmarked = catalyst_vlans::unmarked(match of_port {
            Source::Override => Mark::PortCos,
            Source::Trust(trust) => Mark::Trust(trust),
            Source::Untrusted | Source::Policy => Mark::Zero,
        });
        input = catalyst_vlans::attached(context, switch, switchport, &path("switch.vlan_based"))?;
    }
    let source = if input.is_some() { Source::Policy } else { of_port };
    let mut does = Actions::new(switch, context.config, unmarked);
    let actions = match &mut input {
        Some(policy) => does.of(policy)?,
        None => Vec::new(),
    };
    let policers = does.policers;
    if policers.len() > POLICERS_PER_PORT {
        let message = format!("{} policers: a port can have at most {POLICERS_PER_PORT}", policers.len());
        return Err(ConfigError::too_much(path("service_policy_input"), message));
    }
    let maps = &switch.maps;
    let mutation = config.dscp_mutation.as_ref().filter(|_| of_port == Source::Trust(Trust::Dscp));
    let ingress = IngressPlan {
        qos: switch.qos,
        source,
        default_cos: config.default_cos,
        cos_dscp: maps.cos_dscp,
        ip_prec_dscp: maps.ip_prec_dscp,
        policed_dscp: array(&maps.policed_dscp, same),
        mutation: mutation.map(|name| array(&maps.dscp_mutation[name], same)),
        cos_queue: array(&maps.cos_input_q, queue_at),
        dscp_queue: array(&maps.dscp_input_q, queue_at),
        actions,
        policers,
    };
    let speed = Rate(config.speed_bps.unwrap_or(port.link.rate_bps));
    Ok((CatalystPlan { ingress, egress: egress(switch, config, speed, asic(name)) }, input))
}

fn egress(switch: &SwitchConfig, config: &SwitchPortConfig, speed: Rate, asic: usize) -> EgressPlan {
    let maps = &switch.maps;
    let shown_operational = operational_bandwidth(config.limit);
    let mut egress = EgressPlan {
        qos: switch.qos,
        rewrite: switch.rewrite_ip_dscp,
        dscp_cos: array(&maps.dscp_cos, same),
        cos_queue: array(&maps.cos_output_q, queue_at),
        dscp_queue: array(&maps.dscp_output_q, queue_at),
        limits: limits(&switch.queue_sets[config.queue_set as usize - 1]),
        shape: config.shape,
        share: config.share,
        priority_queue: config.priority_queue,
        speed,
        operational: shown_operational,
        shown_operational,
        asic,
    };
    if !switch.qos {
        // One queue of common cells; everything else is stored but has no effect.
        egress.limits = [QueueLimits::default(); QUEUES];
        egress.limits[FIFO_CHARGED.0] = QueueLimits { reserved: 0, thresholds: [FIFO_CELLS; THRESHOLDS] };
        egress.shape = [0; QUEUES];
        egress.share = SwitchPortConfig::default().share;
        egress.priority_queue = false;
        egress.operational = operational_bandwidth(100);
    }
    egress
}

fn check_interface(name: &str, port: &PortConfig, interface: Option<&InterfaceConfig>) -> Result<(), ConfigError> {
    if port.link.framing != Framing::Ethernet {
        let message = format!("a switch has Ethernet ports, and this link has {:?} framing", port.link.framing);
        return wrong(format!("interfaces.{name}"), message);
    }
    let Some(interface) = interface else { return Ok(()) };
    for (field, given) in [
        ("virtual_circuit", interface.virtual_circuit.is_some()),
        ("tx_ring_limit", interface.tx_ring_limit.is_some()),
        ("hold_queue_out", interface.hold_queue_out.is_some()),
        ("fair_queue", interface.fair_queue.is_some()),
        ("queueing", interface.queueing.is_some()),
        ("tcp_adjust_mss", interface.tcp_adjust_mss.is_some()),
        ("access_groups_input", !interface.access_groups_input.is_empty()),
        ("access_groups_output", !interface.access_groups_output.is_empty()),
        ("rate_limit_input", !interface.rate_limit_input.is_empty()),
        ("rate_limit_output", !interface.rate_limit_output.is_empty()),
        ("service_policy_output", interface.service_policy_output.is_some()),
    ] {
        if given {
            return wrong(format!("interfaces.{name}.{field}"), "a switch port does not have this key: use null");
        }
    }
    Ok(())
}

fn check_port(
    path: &dyn Fn(&str) -> String,
    config: &SwitchPortConfig,
    port: &PortConfig,
    switch: &SwitchConfig,
    policy: Option<&PolicyPlan>,
) -> Result<(), ConfigError> {
    within(&path("switch.default_cos"), config.default_cos, &(0..=7))?;
    for queue in 0..QUEUES {
        within(&path(&format!("switch.shape[{queue}]")), config.shape[queue], &(0..=65_535))?;
        within(&path(&format!("switch.share[{queue}]")), config.share[queue], &(1..=255))?;
    }
    if config.limit != 100 {
        within(&path("switch.limit"), config.limit, &(10..=90))?;
    }
    if !(1..=2).contains(&config.queue_set) {
        let message = format!("there is no queue-set {}: use 1 or 2", config.queue_set);
        return Err(ConfigError::unknown(path("switch.queue_set"), message));
    }
    if let Some(name) = &config.dscp_mutation {
        if !switch.maps.dscp_mutation.contains_key(name) {
            let message = format!("there is no mutation map {name:?}: define it in switch.maps.dscp_mutation");
            return Err(ConfigError::unknown(path("switch.dscp_mutation"), message));
        }
    }
    if let Some(policy) = policy {
        let problem = if config.vlan_based {
            "a port with vlan_based uses the policies of its VLANs: use null"
        } else if config.trust.is_some() || config.cos_override {
            "a port cannot have both a trust state (or override) and an input policy-map: remove one of the two"
        } else if policy.classes.iter().any(|class| class.child.is_some()) {
            "only a VLAN interface accepts a two-level policy-map: use one without a child"
        } else {
            ""
        };
        if !problem.is_empty() {
            return wrong(path("service_policy_input"), problem);
        }
    }
    if let Some(switchport) = &config.switchport {
        within(&path("switch.switchport.vlan"), switchport.vlan, &(1..=4_094))?;
    }
    match config.speed_bps {
        Some(speed) if speed == 0 || speed > port.link.rate_bps => {
            let message = format!("{speed} b/s: the link carries 1 to {} b/s", port.link.rate_bps);
            Err(ConfigError::out_of_range(path("switch.speed_bps"), message))
        }
        _ => Ok(()),
    }
}
