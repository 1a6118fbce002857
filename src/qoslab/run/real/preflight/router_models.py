"""Check that routers are of the experiment's model and have its interfaces."""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.model.generations import release_generation
from qoslab.platforms import MODELS, is_switch, router_names
from qoslab.run.real.preflight.facts import PreflightFacts, PreflightFinding
from qoslab.run.real.preflight.show_facts import INTERFACES


def check_devices(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Check release, model and QoS generation."""
    for name in router_names(facts.experiment.topology):
        router = facts.routers.get(name)
        if router is None:
            continue
        if not router.ios:
            hint = "check whether the inventory has the address of another device for it"
            yield PreflightFinding(name, f'found "{router.software}" as its version, expected Cisco IOS', hint)
            continue
        node = facts.experiment.topology.nodes[name]
        model = facts.router_settings[name].model or node.model
        if model is not None and router.model and model not in router.model:
            hint = (
                f"run with --set {name}.model={router.model}"
                if router.model in MODELS
                else f"give qoslab_model: {router.model} for it in the inventory, if it represents a {node.model}"
            )
            yield PreflightFinding(
                name, f"found model {router.model}, expected {model}", f"check that it is the right device, or {hint}"
            )
        if is_switch(node):
            continue
        found, expected = release_generation(router.release), facts.expected_generation(name)
        if found is None:
            message = (
                f"found release {router.release or router.software}, expected one with class-maps: 12.0(5)T or later"
            )
            yield PreflightFinding(name, message, "load a later release, or use another device")
        elif expected not in (None, found):
            message = f"found release {router.release} with {found} queueing, expected {expected}"
            yield PreflightFinding(name, message, f"load another release, or run with --set {name}.generation={found}")


def check_interfaces(facts: PreflightFacts) -> Iterator[PreflightFinding]:
    """Check that every interface of the experiment is present."""
    unread = {name: router.unread for name, router in facts.routers.items() if router.ios and router.unread}
    for name, reason in unread.items():
        message = f"found no parser for its output of `{INTERFACES}` ({reason}), expected a list of its interfaces"
        yield PreflightFinding(
            name, message, f"enter `{INTERFACES}` there and check whether it prints them as IOS does"
        )
    for link, end, _ in facts.link_ends():
        device = facts.device(end)
        if end.node in facts.hosts:
            there = [name for name in facts.hosts[end.node].cards if name != "lo"]
            hint = "name the right one in qoslab_interfaces"
        elif end.node in facts.routers and facts.routers[end.node].ios and end.node not in unread:
            there = list(facts.routers[end.node].ports)
            hint = "check whether it is the right device, and has the module, or name another in qoslab_interfaces"
        else:
            continue
        if device not in there:
            message = (
                f"found no interface {device} for the link {link.name}, expected one of {', '.join(there) or 'none'}"
            )
            yield PreflightFinding(end.node, message, hint)
