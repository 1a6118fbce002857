"""`show access-lists [X]`, `show ip access-lists [X]`, `show ipv6 access-list [X]` and `show object-group [X]`."""

from __future__ import annotations

from typing import Literal

from qoslab.ios.commands.access_list import access_line, access_list_order, expand_entry
from qoslab.ios.commands.ipv6_access_list import ipv6_access_line
from qoslab.ios.commands.object_group import group_lines, group_order
from qoslab.ios.model.device import AccessEntry, AccessList, Device
from qoslab.ios.model.matches import ANY_ADDRESS
from qoslab.system import program_formats


def show_access_lists(
    device: Device, counters: program_formats.Counters, *, name: str | None = None, version: Literal[4, 6] | None = None
) -> str:
    """Return the output for all access lists, or one, with the data plane's match counts of each entry.

    `version` selects an IP version; None for both.
    """
    lines: list[str] = []
    for access_list in access_list_order(device):
        ipv6 = access_list.kind == "ipv6"
        if name not in (None, access_list.name) or version not in (None, 6 if ipv6 else 4):
            continue
        heading = "IPv6" if ipv6 else f"{access_list.kind.capitalize()} IP"
        lines.append(f"{heading} access list {access_list.name}")
        hits = iter(counters["access_lists"].get(access_list.name, []))
        for sequence, entry in zip(access_list.numbers, access_list.lines, strict=True):
            if not isinstance(entry, AccessEntry):
                continue
            # The data plane may lag behind an edit of another login.
            matched = sum(next(hits, {"packets": 0})["packets"] for _ in expand_entry(device, entry))
            hit = f" ({matched} match{'' if matched == 1 else 'es'})" if matched else ""
            if ipv6:
                lines.append(f"    {ipv6_access_line(entry)}{hit} sequence {sequence}")
            else:
                lines.append(f"    {sequence} {_entry_line(access_list, entry)}{hit}")
    return "".join(line + "\n" for line in lines)


def show_object_groups(device: Device, name: str | None = None) -> str:
    """Return `show object-group [X]`: all object groups, or one, with their objects."""
    lines: list[str] = []
    for each in group_order(device):
        group = device.object_groups[each]
        if name in (None, each):
            lines += [
                f"{group.kind.capitalize()} object group {each}",
                *(f" {line}" for line in group_lines(group)),
                "",
            ]
    return "".join(line + "\n" for line in lines)


def _entry_line(access_list: AccessList, entry: AccessEntry) -> str:
    if access_list.kind == "extended" or entry.source == ANY_ADDRESS or int(entry.source.wildcard) == 0:
        return access_line(access_list, entry)
    return f"{entry.action} {entry.source.address}, wildcard bits {entry.source.wildcard}"
