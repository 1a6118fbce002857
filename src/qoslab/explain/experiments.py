"""Routers of experiments and of runs as subjects: the scenario that a simulated run has, with or without traffic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from qoslab.errors import UserError
from qoslab.explain.lines import ConfigurationLines
from qoslab.explain.subject import LONG_NS, Subject
from qoslab.ios.device_config.running_config_parser import ConfigurationReading, read_into, read_typed_lines
from qoslab.ios.model.device import Device
from qoslab.ios.model.generations import GENERATIONS
from qoslab.model.experiment import Experiment
from qoslab.model.instants import MeasurementDemand
from qoslab.platforms import router_names
from qoslab.platforms.startup import router_hardware, startup_config
from qoslab.policy.pasted_text import is_indented
from qoslab.simulation.routers import LOGIN, SimulatedRouter
from qoslab.simulation.scenario import build_scenario, configured_routers, observation_time_ns
from qoslab.system import program_formats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qoslab.results import CellFiles

BASE = "base"
"""Name of the configuration that a router has before the experiment configures it."""


def experiment_subject(experiment: Experiment, configurations: Mapping[str, str], name: str, title: str) -> Subject:
    """Return an idle router of an experiment with one arm; `configurations` are rendered, by router."""
    _check(experiment, name)
    routers = configured_routers(experiment, configurations)
    scenario = build_scenario(experiment, routers, 1, MeasurementDemand())
    notes = []
    if any(link.get("jitter") or link.get("loss") for link in scenario["links"]):
        notes.append("jitter and loss of the links are left out")
    return _router_subject(
        experiment, routers[name], configurations.get(name, ""), title, _idle_scenario(scenario), notes
    )


def run_subject(cell: CellFiles, name: str, title: str) -> Subject:
    """Return a router of a cell of a run, with the traffic of the run."""
    experiment = cell.experiment()
    _check(experiment, name)
    configurations = cell.configurations(router_names(experiment.topology))
    routers = configured_routers(experiment, configurations)
    text = cell.scenario()
    notes = []
    if text is not None:
        scenario = cast("program_formats.Scenario", json.loads(text))
    else:
        scenario = build_scenario(experiment, routers, cell.identity.repetition, MeasurementDemand())
        notes.append("the run was not simulated: its traffic is computed again, with modelled hosts")
    return _router_subject(experiment, routers[name], configurations.get(name, ""), title, scenario, notes)


def default_time_ns(experiment: Experiment) -> int:
    """Return the time of a run at which shows are taken, from its start."""
    return observation_time_ns(experiment)


def _check(experiment: Experiment, name: str) -> None:
    known = list(router_names(experiment.topology))
    if name not in known:
        raise UserError(f'found "{name}", expected a router of {experiment.name}: {", ".join(known)}')


def _idle_scenario(scenario: program_formats.Scenario) -> program_formats.Scenario:
    """Return a scenario without traffic, on links without jitter and loss."""
    idle: program_formats.Scenario = {
        **scenario,
        "flows": [],
        "probes": [],
        "captures": [],
        "sample_at_ns": [],
        "sample_ns": LONG_NS,
        "drain_ns": LONG_NS,
        "links": [{**link, "jitter": None, "loss": None} for link in scenario["links"]],
        "nodes": {name: {**node, "ip_sla": None} for name, node in scenario["nodes"].items()},
    }
    return idle


def _router_subject(
    experiment: Experiment,
    router: SimulatedRouter,
    text: str,
    title: str,
    scenario: program_formats.Scenario,
    notes: list[str],
) -> Subject:
    topology, name = experiment.topology, router.name
    if router.device.switch is not None:
        raise UserError(f'found "{name}", a switch, expected a router')
    lines = ConfigurationLines(
        router.device,
        _read_configuration(base_configuration(experiment, name), hardware_device(experiment, name), text),
    )
    ports = tuple(near.interface for _, near, _ in topology.node_links(name))
    about = f"{title}; {GENERATIONS[router.device.generation].title}"
    return Subject(name, about, router.device, lines, scenario, ports, notes)


def base_configuration(experiment: Experiment, name: str) -> str:
    """Return the configuration that a router has before the experiment's."""
    return startup_config(experiment.topology, name, LOGIN)


def hardware_device(experiment: Experiment, name: str) -> Device:
    """Return a router without any configuration."""
    return Device(router_hardware(experiment.topology, name))


def _read_configuration(base: str, device: Device, text: str) -> list[tuple[str, ConfigurationReading]]:
    first = read_into(device, base)
    if is_indented(text):
        return [(BASE, first), ("", read_into(device, text))]
    second = ConfigurationReading(device)
    read_typed_lines(second, text)
    return [(BASE, first), ("", second)]


def rendered_title(file: Path, experiment: Experiment, name: str) -> str:
    """Describe the origin of a rendered configuration."""
    return f"{file}, arm {experiment.arms[0].name}: configuration rendered for {name}"
