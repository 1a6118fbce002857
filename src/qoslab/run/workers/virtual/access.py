"""Access to the routers of a virtual lab."""

from __future__ import annotations

from pathlib import Path

from qoslab.errors import ExperimentError
from qoslab.platforms import platform_of
from qoslab.platforms.base import COMMAND_LINE, CONTROL_SOCKET
from qoslab.run.devices.ansible_inventory import Access, EngineAccess, IosAccess
from qoslab.system.programs import own_program
from qoslab.virtual_lab import Lab


def lab_routers(lab: Lab, sockets: Path | None = None) -> dict[str, Access]:
    """The routers of a virtual lab that is up.

    Control sockets are named by links in the folder `sockets`, if one is given: created again for the next lab, they
    let it have the same inventory."""
    routers: dict[str, Access] = {}
    for name, node in lab.nodes.items():
        platform = platform_of(node.node)
        group = platform.ansible_role(node.node)
        if group is None:
            continue
        if platform.access == COMMAND_LINE:
            ssh = lab.ssh(name)
            routers[name] = IosAccess(ssh.host, ssh.user, ssh.password, ssh.port, ssh.enable, group)
        elif platform.access == CONTROL_SOCKET:
            socket = lab.runtime(name) / "control.sock"
            if sockets is not None:
                link = sockets / name
                link.unlink(missing_ok=True)
                link.symlink_to(socket)
                socket = link
            routers[name] = EngineAccess(str(socket), str(own_program("qos-router")), group=group)
        else:
            raise ExperimentError(
                f"{name}: the platform {platform.name} is reached by {platform.access.name}, "
                "expected an access method of the virtual lab's routers",
                hint=f"{COMMAND_LINE.name} or {CONTROL_SOCKET.name}: docs/internals/extending.md",
            )
    return routers
