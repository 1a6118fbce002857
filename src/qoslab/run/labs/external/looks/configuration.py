"""Whether routers have something of their own where the experiment would put what it brings."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.interface_names import InterfaceNames
from qoslab.ios.restore import collisions
from qoslab.run.devices.routers import own_hardware
from qoslab.run.labs.external.looks.facts import Facts, Found

HINT = "give it another name in the experiment's template, or take it off the router"


def configuration(facts: Facts) -> Iterator[Found]:
    """Policies, classes, lists and operations of the same name, and interfaces that carry a policy."""
    for name, router in facts.routers.items():
        if not router.ios or router.refused:
            continue
        names = InterfaceNames(facts.router_settings[name].interfaces)
        hardware = own_hardware(facts.experiment.topology, name, names)
        asked = [names.to_device(text) for text in facts.asked.get(name, ())]
        for what in dict.fromkeys(each for text in asked for each in collisions(router.running, text, hardware)):
            yield Found(name, f"found that {what}, expected nothing that the experiment would overwrite", HINT)
