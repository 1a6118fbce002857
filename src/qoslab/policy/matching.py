"""The device of a pasted configuration for questions about packets: undefined names may match any packet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.policy import Criterion
from qoslab.policy.pasted_configuration import Configuration


def complete_device(configuration: Configuration) -> Device:
    """Return the device for matching, with interfaces that the text lacks, without missing class-maps, and with
    undecided criteria in place of access lists that are missing or incompletely read.
    """
    device = configuration.device
    known = device.access_lists.keys() - set(_unread_lists(configuration))

    def decided(criterion: Criterion) -> Criterion:
        opaque = criterion.type == "access_group" and criterion.name not in known
        return replace(criterion, type="unseen") if opaque else criterion

    class_maps = {
        name: replace(each, criteria=tuple(map(decided, each.criteria)))
        for name, each in device.class_maps.items()
        if name not in configuration.missing_classes
    }
    criteria = [each for class_map in class_maps.values() for each in class_map.criteria]
    ports = {each.name: Interface(each.name) for each in criteria if each.type == "input_interface" and each.name}
    return replace(device, class_maps=class_maps, interfaces={**ports, **device.interfaces})


def _unread_lists(configuration: Configuration) -> Iterator[str]:
    """Yield the words of unread lines of access lists, including the names of the lists."""
    for each in configuration.reading.unread:
        line = each.place[0] if each.place else each.text
        if "access-list" in line:
            yield from line.split()
