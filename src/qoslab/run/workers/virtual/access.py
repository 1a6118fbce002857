"""Access to the routers of a virtual lab."""

from __future__ import annotations

from pathlib import Path

from qoslab.errors import ExperimentError
from qoslab.platforms import node_platform
from qoslab.platforms.base import COMMAND_LINE, CONTROL_SOCKET, TC_COMMANDS
from qoslab.run.devices.ansible_inventory import Access, EngineAccess, IosAccess
from qoslab.system.programs import find_own_program
from qoslab.virtual_lab import Lab


def lab_router_access(lab: Lab, sockets: Path | None = None) -> dict[str, Access]:
    """Return the access to the routers of a running virtual lab.

    If the folder `sockets` is given, control sockets are named by links in it. The next lab gets new links, so it can
    have the same inventory.
    """
    routers: dict[str, Access] = {}
    for name, node in lab.nodes.items():
        platform = node_platform(node.node)
        group = platform.ansible_role(node.node)
        if group is None:
            continue
        if platform.access == COMMAND_LINE:
            ssh = lab.ssh(name)
            routers[name] = IosAccess(ssh.host, ssh.user, ssh.password, ssh.port, ssh.enable, group)
        elif platform.access in (CONTROL_SOCKET, TC_COMMANDS):
            socket = lab.runtime(name) / "control.sock"
            if sockets is not None:
                link = sockets / name
                link.unlink(missing_ok=True)
                link.symlink_to(socket)
                socket = link
            routers[name] = EngineAccess(str(socket), str(find_own_program("qos-router")), group=group)
        else:
            raise ExperimentError(
                f"{name}: the platform {platform.name} uses {platform.access.name}, "
                "expected an access method of the virtual lab's routers",
                hint=f"{COMMAND_LINE.name}, {CONTROL_SOCKET.name} or {TC_COMMANDS.name}: docs/internals/extending.md",
            )
    return routers
