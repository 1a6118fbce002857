"""Check that the devices accept their configurations, on the command line of the node's model.

A configuration consists of the rendered templates, then the lines that the probes need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from qoslab.errors import Finding, did_you_mean, format_alternatives
from qoslab.ios.cli.grammar import InvalidInputError
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.model.policy import CLASS_DEFAULT
from qoslab.ios.parse import ConfigRemark, RefusedLineError, parse_config
from qoslab.model.experiment import Experiment
from qoslab.platforms import engine_routers, is_switch, kernel_routers
from qoslab.platforms.kernel_router import kernel_config
from qoslab.platforms.startup import accepts_tc_commands, router_hardware, startup_config
from qoslab.schema import memory
from qoslab.schema.circuits import unmatched_circuits
from qoslab.schema.document import Document, Place
from qoslab.schema.link_vlans import unmatched_vlans
from qoslab.schema.loops import loop_findings
from qoslab.schema.probe_lines import probe_lines
from qoslab.schema.templates import render_lines
from qoslab.schema.traffic_ways import unrouted_traffic
from qoslab.tc.commands.command_words import TcError
from qoslab.tc.commands.router_template import apply_template

LOGIN = {"user": "lab", "password": "unused", "enable": "unused"}
MIN_INTERFACE_LETTERS = 3
"""Minimum number of letters that abbreviate the command `interface` unambiguously."""


def refused_lines(experiment: Experiment, document: Document, file: Path) -> Iterator[Finding]:
    """Yield a finding for the first line that a router would refuse, for each arm and router, at its place in the
    template.

    The experiment must otherwise be valid.
    """
    yield from _unsupported_observations(experiment, document)
    of_probes = probe_lines(experiment)
    switches = [name for name, node in experiment.topology.nodes.items() if is_switch(node)]
    configured: dict[str, dict[str, Device]] = {}
    complete = True
    for arm in experiment.arms:
        layers = experiment.arm_configurations(arm)
        devices: dict[str, Device] = configured.setdefault(arm.name, {})
        for router in kernel_routers(experiment.topology):
            lines = [line for layer in layers.get(router, ()) for line in render_lines(file, layer)]
            for finding in _kernel_refusals(experiment, arm.name, router, lines):
                complete = False
                yield finding
        for router in engine_routers(experiment.topology):
            base = startup_config(experiment.topology, router, LOGIN)
            lines = [line for layer in layers.get(router, ()) for line in render_lines(file, layer)]
            lines += [(text, document.place(("probes", index))) for text, index in of_probes.get(router, ())]
            text = "\n".join(text for text, _ in lines)
            device, refusal, _ = _configured_device(
                base,
                text,
                router_hardware(experiment.topology, router),
                accepts_tc_commands(experiment.topology, router),
            )
            held = 0 if device is None else memory.queued_bytes(device)
            if device is not None:
                devices[router] = device
            if held > memory.MAX_BYTES:
                yield document.finding(
                    ("topology", "nodes", router),
                    f"found {held} bytes in all output queues of {router} in arm {arm.name}, if full of frames of "
                    f"{memory.FRAME} bytes, expected at most {memory.MAX_BYTES}",
                    "lower queue-limit, the number of queues, or hold-queue",
                )
            if refusal is not None:
                complete = False
                yield _refusal_finding(experiment, arm.name, router, refusal, lines)
        yield from unmatched_circuits(experiment, document, arm.name, devices)
        yield from unmatched_vlans(experiment, document, arm.name, devices)
        changed = any(name in layers for name in switches)
        yield from loop_findings(experiment, document, arm.name if changed else None, devices)
    if complete:
        yield from unrouted_traffic(experiment, document, configured)
        yield from _unknown_idle_names(experiment, document, configured)


def _refusal_finding(
    experiment: Experiment,
    arm: str,
    router: str,
    refusal: RefusedLineError | TcError,
    lines: Sequence[tuple[str, Place]],
) -> Finding:
    """Return the finding about a refused line of a template."""
    text, place = lines[refusal.number - 1]
    key = f"arms.{arm}.configure.{router}"
    if isinstance(refusal, TcError):
        return place.finding(key, refusal.found, refusal.near)
    words = [each.strip() for each in refusal.refusal.render() if each.strip(" ^")]
    where = ""
    if isinstance(refusal.refusal, InvalidInputError):
        bad = text.expandtabs(1)[refusal.refusal.column :].split()
        where = f' at "{bad[0]}"' if bad else ""
    what = experiment.topology.nodes[router].model or "router"
    return place.finding(
        key,
        f'found "{text.strip()}", refused by the {what}{where}: {" ".join(words)}',
        _interface_hint(text, router_hardware(experiment.topology, router)),
    )


def _unsupported_observations(experiment: Experiment, document: Document) -> Iterator[Finding]:
    """Yield a finding for each probe and show command on a router with tc commands, which has neither IP SLA nor a
    command line.
    """
    routers = kernel_routers(experiment.topology)
    for index, probe in enumerate(experiment.probes):
        if probe.source in routers:
            message = f"found a probe from {probe.source}, a Linux kernel without IP SLA, expected one from a host"
            yield document.finding(("probes", index, "from"), message, "send it from the host behind the router")
        elif probe.destination in routers and not probe.type.startswith("icmp"):
            message = f"found a {probe.type} probe to {probe.destination}, a Linux kernel without a responder"
            yield document.finding(("probes", index, "to"), f"{message}, expected icmp-echo or icmp-jitter", "")
    for index, observation in enumerate(experiment.observe):
        if observation.node in routers:
            message = f"found a show command at {observation.node}, which has no IOS command line"
            hint = "its qdiscs are read once a second: metrics class.* and interface.*"
            yield document.finding(("observe", index, "node"), f"{message}, expected a router of platform ios", hint)


def _kernel_refusals(
    experiment: Experiment, arm: str, router: str, lines: Sequence[tuple[str, Place]]
) -> Iterator[Finding]:
    """Yield a finding for each refused line of a router of platform tc, checked without a kernel."""
    try:
        made = kernel_config(experiment.topology, router, "\n".join(text for text, _ in lines))
    except (RefusedLineError, TcError) as error:
        yield _refusal_finding(experiment, arm, router, error, lines)
        return
    for each in made.refused_actions:
        message = f'found "{each.note.action}" at {each.note.origin}, which a Linux kernel cannot do: {each.note.text}'
        place = lines[max(each.line, 1) - 1][1]
        yield place.finding(f"arms.{arm}.configure.{router}", message, "remove it, or use the platform engine")


def fidelity_notes(experiment: Experiment, file: Path) -> list[Finding]:
    """Return each difference between an IOS policy and its kernel implementation once, at its line.

    `file` is the experiment file.
    """
    found: dict[tuple[str, int, str], Finding] = {}
    routers = kernel_routers(experiment.topology)
    for arm in experiment.arms:
        for router, layers in experiment.arm_configurations(arm).items():
            if router not in routers:
                continue
            lines = [line for layer in layers for line in render_lines(file, layer)]
            made = kernel_config(experiment.topology, router, "\n".join(text for text, _ in lines))
            for each in made.notes:
                message = f"{each.note.degree} in the kernel: {each.note.origin}: {each.note.action}: {each.note.text}"
                place = lines[max(each.line, 1) - 1][1]
                finding = place.finding(f"arms.{arm.name}.configure.{router}", message)
                found.setdefault((finding.file, finding.line, message), finding)
    return list(found.values())


def _unknown_idle_names(
    experiment: Experiment, document: Document, devices: Mapping[str, Mapping[str, Device]]
) -> Iterator[Finding]:
    """Yield the names under `allow_idle` that no router has. `devices` are the devices of each arm."""
    every = [device for of_arm in devices.values() for device in of_arm.values()]
    known = {CLASS_DEFAULT: None, **{name: None for each in every for name in (*each.class_maps, *each.policy_maps)}}
    for index, name in enumerate(experiment.allow_idle):
        last = name.rpartition("/")[2]
        if last not in known:
            message = f'found "{name}", expected a class or policy-map of a router, {format_alternatives(known)}'
            yield document.finding(("allow_idle", index), message, did_you_mean(name, known))


def _interface_hint(line: str, chassis: Hardware) -> str:
    """Return a hint with the interfaces of the router for a line that names an unknown one."""
    word, _, name = line.strip().partition(" ")
    if not name or not "interface".startswith(word.lower()) or len(word) < MIN_INTERFACE_LETTERS:
        return ""
    known = chassis.interfaces
    return " ".join(filter(None, (f"expected {format_alternatives(known)};", did_you_mean(name, known)))).rstrip(";")


def configured_devices(experiment: Experiment, texts: Mapping[str, str]) -> dict[str, Device]:
    """Return all routers with these configurations, without those that refuse a line. Callers must not change the
    devices.
    """
    found = {}
    for router in engine_routers(experiment.topology):
        base = startup_config(experiment.topology, router, LOGIN)
        tc = accepts_tc_commands(experiment.topology, router)
        device, _, _ = _configured_device(base, texts.get(router, ""), router_hardware(experiment.topology, router), tc)
        if device is not None:
            found[router] = device
    return found


def lines_without_effect(experiment: Experiment, file: Path) -> list[Finding]:
    """Return each template line that the routers accept without effect here, once, at its place."""
    found: dict[tuple[str, int], Finding] = {}
    for arm in experiment.arms:
        for router, layers in experiment.arm_configurations(arm).items():
            lines = [line for layer in layers for line in render_lines(file, layer)]
            text = "\n".join(text for text, _ in lines)
            for remark in _inert_line_remarks(experiment, router, text):
                line, place = lines[remark.number - 1]
                message = replace(remark.line, text=line.strip()).sentence
                finding = place.finding(f"arms.{arm.name}.configure.{router}", message)
                found.setdefault((finding.file, finding.line), finding)
    return list(found.values())


def _inert_line_remarks(experiment: Experiment, router: str, text: str) -> tuple[ConfigRemark, ...]:
    """Return the configuration lines of a router that have no effect."""
    topology = experiment.topology
    if router in kernel_routers(topology):
        return kernel_config(topology, router, text).remarks
    if router not in engine_routers(topology):
        return ()
    base = startup_config(topology, router, LOGIN)
    return _configured_device(base, text, router_hardware(topology, router), accepts_tc_commands(topology, router))[2]


@lru_cache(maxsize=1024)
def _configured_device(
    base: str, text: str, chassis: Hardware, tc: bool
) -> tuple[Device | None, RefusedLineError | TcError | None, tuple[ConfigRemark, ...]]:
    """Return the configured device, which callers must not change, or the refused line; and the lines without effect.

    Many combinations of parameters have the same configurations.
    """
    device = parse_config(base, chassis, source="base")
    try:
        remarks = apply_template(device, text, tc=tc)
    except (RefusedLineError, TcError) as refusal:
        return None, refusal, ()
    return device, None, tuple(remarks)
