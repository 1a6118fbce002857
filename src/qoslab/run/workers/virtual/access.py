"""Access to the routers of a virtual lab."""

from __future__ import annotations

from pathlib import Path

from qoslab.platforms import platform_of
from qoslab.run.devices.ansible_inventory import Access, IosAccess, LinuxAccess
from qoslab.system.programs import own_program
from qoslab.virtual_lab import Lab


def lab_routers(lab: Lab, sockets: Path | None = None) -> dict[str, Access]:
    """The routers of a virtual lab that is up.

    Control sockets are named by links in the folder `sockets`, where one is given: made anew for the next lab, they let
    it have the same inventory.
    """
    routers: dict[str, Access] = {}
    for name, node in lab.nodes.items():
        platform = platform_of(node.node)
        group = platform.ansible_role(node.node)
        if group is None:
            continue
        if platform.reached_by == "command line":
            ssh = lab.ssh(name)
            routers[name] = IosAccess(ssh.host, ssh.user, ssh.password, ssh.port, ssh.enable, group)
        elif platform.reached_by == "control socket":
            socket = lab.runtime(name) / "control.sock"
            if sockets is not None:
                link = sockets / name
                link.unlink(missing_ok=True)
                link.symlink_to(socket)
                socket = link
            routers[name] = LinuxAccess(str(socket), str(own_program("qos-router")), group=group)
    return routers
