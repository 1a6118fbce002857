"""Whether the devices take their configurations, through the command line of the node's model.

These are rendered templates, then what the probes need.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from qoslab.errors import Finding
from qoslab.ios.cli.grammar import InvalidInputError
from qoslab.ios.model.device import Device, Hardware
from qoslab.ios.parse import RefusedLineError, Remark, apply, parse_config
from qoslab.model.experiment import Experiment
from qoslab.platforms import is_switch
from qoslab.platforms.startup import hardware, startup_config
from qoslab.schema import memory
from qoslab.schema.circuits import unfit
from qoslab.schema.document import Document
from qoslab.schema.loops import switched_loop
from qoslab.schema.probe_lines import probe_lines
from qoslab.schema.templates import render_lines
from qoslab.schema.vlans import unmatched

LOGIN = {"user": "lab", "password": "unused", "enable": "unused"}


def refused(experiment: Experiment, document: Document, file: Path) -> Iterator[Finding]:
    """The first line of each arm and router that the router would refuse, at its place in the template.

    The experiment has to hold otherwise.
    """
    of_probes = probe_lines(experiment)
    switches = [name for name, node in experiment.topology.nodes.items() if is_switch(node)]
    for arm in experiment.arms:
        layers = experiment.configurations_of(arm)
        devices: dict[str, Device] = {}
        for router in dict.fromkeys((*layers, *of_probes, *switches)):
            node = experiment.topology.nodes[router]
            base = startup_config(experiment.topology, router, LOGIN)
            lines = [line for layer in layers.get(router, ()) for line in render_lines(file, layer)]
            lines += [(text, document.place(("probes", index))) for text, index in of_probes.get(router, ())]
            text = "\n".join(text for text, _ in lines)
            device, refusal, _ = _taken(base, text, hardware(experiment.topology, router))
            held = 0 if device is None else memory.queued(device)
            if device is not None:
                devices[router] = device
            if held > memory.MOST:
                yield document.finding(
                    ("topology", "nodes", router),
                    f"found queues of {held} bytes, all output queues of {router} together as arm {arm.name} "
                    f"configures them, full of frames of {memory.FRAME} bytes, expected at most {memory.MOST}",
                    "lower queue-limit, the number of queues, or hold-queue",
                )
            if refusal is None:
                continue
            text, place = lines[refusal.number - 1]
            said = [each.strip() for each in refusal.refusal.render() if each.strip(" ^")]
            what = node.model or "this router"
            where = ""
            if isinstance(refusal.refusal, InvalidInputError):
                bad = text.expandtabs(1)[refusal.refusal.column :].split()
                where = f' at "{bad[0]}"' if bad else ""
            yield place.finding(
                f"arms.{arm.name}.configure.{router}",
                f'found "{text.strip()}", which the {what} refuses{where}: {" ".join(said)}',
            )
        yield from unfit(experiment, document, arm.name, devices)
        yield from unmatched(experiment, document, arm.name, devices)
        configured = any(name in layers for name in switches)
        yield from switched_loop(experiment, document, arm.name if configured else None, devices)


def without_effect(experiment: Experiment, file: Path) -> list[Finding]:
    """The lines of templates that the routers keep and that change nothing here, each once, at its place."""
    found: dict[tuple[str, int], Finding] = {}
    for arm in experiment.arms:
        for router, layers in experiment.configurations_of(arm).items():
            lines = [line for layer in layers for line in render_lines(file, layer)]
            base = startup_config(experiment.topology, router, LOGIN)
            text = "\n".join(text for text, _ in lines)
            for remark in _taken(base, text, hardware(experiment.topology, router))[2]:
                line, place = lines[remark.number - 1]
                message = f'kept without effect: "{line.strip()}" ({remark.line.about})'
                finding = place.finding(f"arms.{arm.name}.configure.{router}", message)
                found.setdefault((finding.file, finding.line), finding)
    return list(found.values())


@lru_cache(maxsize=1024)
def _taken(
    base: str, text: str, chassis: Hardware
) -> tuple[Device | None, RefusedLineError | None, tuple[Remark, ...]]:
    """The device as configured, which nobody changes, or the line that is refused; and what has no effect.

    Combinations of parameters have many configurations in common.
    """
    device = parse_config(base, chassis, source="base")
    try:
        remarks = apply(device, text)
    except RefusedLineError as refusal:
        return None, refusal, ()
    return device, None, tuple(remarks)
