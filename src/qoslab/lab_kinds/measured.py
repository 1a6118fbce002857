"""Lab of real programs, kernels and clocks: hosts send, Ansible configures routers, and Unicon observes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from qoslab.lab_kinds.base import LabKind, flow_lines, probe_line
from qoslab.lab_kinds.host_counters import host_row, read_counters
from qoslab.model.experiment import Configuration, Experiment, Flow, Stage, Trigger
from qoslab.model.instants import observation_time, traffic_time, triggers
from qoslab.model.steps import TRAFFIC, Step
from qoslab.model.units import Duration
from qoslab.platforms import host_names, node_platform, router_names, tc_command_nodes
from qoslab.traffic import TOOLS, FlowResult, find_tool

if TYPE_CHECKING:
    from qoslab.results import CellFiles

CONFIGURE: Final = "configure the routers"
WAIT_FOR_TURN: Final = "wait for a free slot"
SET_HOSTS: Final = "host settings"
CAPTURE_ON: Final = "capture on"
OBSERVE_BEFORE: Final = "observe before the traffic"
OBSERVE_AFTER: Final = "observe after the traffic"
CAPTURE_OFF: Final = "capture off"
"""Keys of the steps of a cell, in order; `TRAFFIC` lies between the observations."""

# Estimates in seconds, for people who wait: rough, from runs on a machine with two cores.
PREPARE_S = 0.1
PLAYBOOK_S = 0.8
"""Time for a few commands to one device, in seconds."""
SHOW_S = 0.2
CAPTURE_ON_S = 0.3
CAPTURE_OFF_S = 0.2
DRAIN_S = 0.3
"""Time at the end of connections for the data in their queues to arrive, in seconds."""


class MeasuredKind(LabKind):
    """A lab in real time."""

    value_label = "measured"
    worker = "lab"
    real_time = True
    interrupt_activity = "restoring the routers (Ctrl-C again leaves them as they are)"
    configuration_title = "pushed configuration"
    no_lateness_text = "Yes: every cell was completed, and no tool reported a fault."
    turn = frozenset({SET_HOSTS, CAPTURE_ON, OBSERVE_BEFORE, TRAFFIC})

    def used_tools(self, experiment: Experiment) -> tuple[str, ...]:
        """Return the traffic tools of its flows."""
        return tuple(sorted({flow.tool for flow in experiment.arm_flows(experiment.arms[0]) if flow.tool in TOOLS}))

    def traffic_source_text(self, flow: Flow) -> str:
        """Return the flow's tool."""
        return flow.tool

    def steps(self, experiment: Experiment, cost: float | None = None) -> tuple[Step, ...]:
        """Return the steps, as `qoslab.run.cell.measure` performs them."""
        return (
            *_configure_steps(experiment),
            Step(WAIT_FOR_TURN, "wait", (), "for parallel cells, until this one may send traffic", 0.0),
            _host_step(experiment),
            *_capture_steps(experiment),
            *_observation_steps(experiment, "before", OBSERVE_BEFORE),
            *_traffic_steps(experiment),
            *_observation_steps(experiment, "after", OBSERVE_AFTER),
            *(
                Step(CAPTURE_OFF, "capture off", (capture.node,), capture.name, CAPTURE_OFF_S)
                for capture in experiment.captures
            ),
        )

    def flow(self, files: CellFiles, flow: Flow, duration: Duration) -> FlowResult | None:
        """Read the output of the flow's tool."""
        generator = find_tool(flow.tool)
        # A lab that dies may leave one of them; a missing file of a cell's record is damage, reported elsewhere.
        outputs = files.outputs(flow.name, generator.suffix)
        return None if outputs is None else generator.parse(flow, duration, *outputs)

    def hosts(self, files: CellFiles, senders: set[str]) -> Iterator[dict[str, object]]:
        """Read the kernel counters of the hosts."""
        for host, *each in files.host_counters():
            before, after = (read_counters(text, name) for text, name in each)
            yield host_row(host, before, after, sends=host in senders)


def restore_step(key: str, experiment: Experiment) -> Step:
    """Return the step that removes the configuration of cells from the routers."""
    return Step(key, "restore", router_names(experiment.topology), "the original configuration", PLAYBOOK_S)


def _configure_steps(experiment: Experiment) -> Iterator[Step]:
    """Yield the steps of one order to Ansible: undo the configuration of the previous cell, apply, verify."""
    configurations = {
        device: [_configuration_lines(layer) for layer in layers]
        for device, layers in experiment.arm_configurations(experiment.arms[0]).items()
    }
    for device, what in _probe_configuration(experiment).items():
        configurations.setdefault(device, []).append(what)
    # The next configuration of a Linux router replaces the last one.
    undone = set(router_names(experiment.topology)) - set(tc_command_nodes(experiment.topology))
    if undone:
        yield restore_step(CONFIGURE, experiment)
    for device, parts in configurations.items():
        node = experiment.topology.nodes[device]
        detail = f"{'; '.join(parts)} by role {node_platform(node).ansible_role(node)}"
        yield Step(CONFIGURE, "apply", (device,), detail, PLAYBOOK_S)
    for device in configurations:
        yield Step(CONFIGURE, "verify", (device,), "the running configuration equals the pushed one", PLAYBOOK_S)


def _host_step(experiment: Experiment) -> Step:
    arm = experiment.arms[0]
    tcp = experiment.tcp if arm.tcp is None else arm.tcp
    profile = tcp if isinstance(tcp, str) else "custom settings"
    control = experiment.arm_tcp_profile(arm).congestion_control
    return Step(SET_HOSTS, "prepare", host_names(experiment.topology), f"TCP: {profile} ({control})", PREPARE_S)


def _capture_steps(experiment: Experiment) -> Iterator[Step]:
    for capture in experiment.captures:
        text = " ".join(filter(None, (capture.interface, capture.filter)))
        yield Step(CAPTURE_ON, "capture on", (capture.node,), f"{capture.name}: {text}", CAPTURE_ON_S)


def _traffic_steps(experiment: Experiment) -> Iterator[Step]:
    """Yield the traffic step and the steps during it."""
    arm = experiment.arms[0]
    length = traffic_time(experiment, arm)
    flows = experiment.arm_flows(arm)
    nodes = tuple(dict.fromkeys(node for flow in flows for node in (flow.source, flow.destination)))
    yield Step(TRAFFIC, "traffic", nodes, flow_lines(experiment), length.seconds + DRAIN_S)
    for probe in experiment.probes:
        text, ends = probe_line(experiment, probe), (probe.source, probe.destination)
        yield Step(TRAFFIC, "probe", ends, text, 0.0, probe.start_after.seconds)
    for each in triggers(experiment):
        # A wait for a counter begins at the start: its time is unknown.
        yield from _observation_steps(experiment, each, TRAFFIC, 0.0 if each.time is None else each.time.seconds)
    yield from _observation_steps(experiment, "during", TRAFFIC, observation_time(length).seconds)


def _observation_steps(
    experiment: Experiment, moment: Stage | Trigger, key: str, after_s: float | None = None
) -> Iterator[Step]:
    words = f"once {moment}" if isinstance(moment, Trigger) and moment.time is None else str(moment)
    for observation in experiment.arm_observations(experiment.arms[0]):
        if moment in observation.moments:
            text = f"{words}: {observation.command}"
            yield Step(key, "observe", (observation.node,), text, SHOW_S, after_s, str(moment))


def _probe_configuration(experiment: Experiment) -> dict[str, str]:
    """Return the routers' configuration for probes: operations, the responder, or both."""
    routers = router_names(experiment.topology)
    senders = [probe.source for probe in experiment.probes if probe.source in routers]
    responders = [probe.destination for probe in experiment.probes if probe.is_udp and probe.destination in routers]
    return {
        router: " and ".join(
            each for each, whose in (("IP SLA operations", senders), ("responder", responders)) if router in whose
        )
        for router in dict.fromkeys((*senders, *responders))
    }


def _configuration_lines(configuration: Configuration) -> str:
    variables = ", ".join(f"{name}={value}" for name, value in configuration.variables.items())
    return f"{configuration.template} ({variables})" if variables else configuration.template
