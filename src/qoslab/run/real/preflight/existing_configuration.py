"""Check that the experiment overwrites no part of a router's configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qoslab.ios.device_config.existing_qos import existing_queueing
from qoslab.ios.device_config.interface_names import InterfaceNames
from qoslab.ios.device_config.restore import find_collisions
from qoslab.ios.model.device import Hardware
from qoslab.run.devices.drivers import hardware_with_own_names
from qoslab.run.real.preflight.facts import PreflightFacts, PreflightFinding

EXISTING_LINES_HINT = "remove it until the end of the run, or add it to the experiment's template"
HINT = "rename it in the experiment's template, or remove it from the router"


def check_existing_configuration(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Report policies, classes, lists and operations of the same name, and interfaces with rate limits or queueing."""
    for name, router in facts.routers.items():
        if not router.ios or router.refused:
            continue
        names = InterfaceNames(facts.router_settings[name].interfaces)
        hardware = hardware_with_own_names(facts.experiment.topology, name, names)
        asked = [names.to_device(text) for text in facts.asked.get(name, ())]
        taken = [*dict.fromkeys(each for text in asked for each in find_collisions(router.running, text, hardware))]
        for what in taken:
            yield PreflightFinding(
                name, f"found that {what}; the experiment must not overwrite existing configuration", HINT
            )
        for line, device, link in _existing_queueing(facts, name, asked, hardware):
            if not any(each.startswith(f"`{line}` is already active under") for each in taken):
                message = (
                    f"found `{line}` on {device}, expected no policy or queueing except the experiment's on the link "
                    f"{link}"
                )
                yield PreflightFinding(name, message, EXISTING_LINES_HINT)


def _existing_queueing(
    facts: PreflightFacts, router: str, asked: Sequence[str], hardware: Hardware
) -> Iterator[tuple[str, str, str]]:
    """Return the router's own lines that would act on the experiment's packets in any cell, with interface and link."""
    running = facts.routers[router].running
    for link, near, _ in facts.experiment.topology.node_links(router):
        device = facts.device(near)
        lines = (line for text in asked or ("",) for line in existing_queueing(running, text, device, hardware))
        yield from ((line, device, link.name) for line in dict.fromkeys(lines))
