"""`max-reserved-bandwidth`: share of an interface's bandwidth that classic classes may reserve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.registry import ENGINE_INTERFACE, INTERFACE_LINES
from qoslab.ios.rules import check_attachment
from qoslab.system import program_formats


@CONFIG.add(
    "interface",
    "max-reserved-bandwidth <percent:1-100>",
    no=True,
    requires={"max-reserved-bandwidth"},
    help={"max-reserved-bandwidth": "Maximum Reservable Bandwidth on an Interface", "percent": "Percent of bandwidth"},
)
def _configure_max_reserved_bandwidth(session: ConfigSession, args: Args) -> None:
    percent = None if args.unset else args.value("percent", int)
    check_reserved(session, replace(session.interface, max_reserved_bandwidth=percent))
    session.interface.max_reserved_bandwidth = percent


def check_reserved(session: ConfigSession, changed: Interface) -> None:
    """Refuse a change of the interface that leaves less bandwidth than its output policy reserves."""
    name = changed.service_policy_output
    policy = None if name is None else session.device.policy_maps.get(name)
    if policy is not None:
        check_attachment(session.device, policy, changed, "output")


@INTERFACE_LINES.register_family(130)
def _config_lines(interface: Interface) -> Iterator[str]:
    if interface.max_reserved_bandwidth is not None:
        yield f"max-reserved-bandwidth {interface.max_reserved_bandwidth}"


@ENGINE_INTERFACE.register_family(50)
def _engine_config(device: Device, interface: Interface) -> program_formats.InterfaceConfigPart:
    return {"max_reserved_percent": interface.max_reserved_bandwidth}
