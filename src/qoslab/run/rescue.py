"""Restoring the routers of an inventory after a run that could not: killed, cut off, or a machine that went down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from qoslab.errors import UserError
from qoslab.platforms import routers_of
from qoslab.run.devices.ansible.session import IOS_MODULES, AnsibleSession
from qoslab.run.devices.inventory import Access, IosAccess, write_inventory
from qoslab.run.devices.routers import Routers
from qoslab.run.devices.state import About, RestoreState
from qoslab.run.door.client import Door
from qoslab.run.door.ways import Way
from qoslab.run.scratch import Scratch


def rescue(
    inventory: Path,
    routers: Mapping[str, Access],
    note: Callable[[str], None],
    consoles: Mapping[str, tuple[str, int]] = {},
) -> About | None:
    """Bring the routers back to where they were before the run that left its state; None where none did.

    `routers` is how they are reached now; those of `consoles` by telnet to the line of a terminal server. What
    others changed since stays, and `note` is told. `RouterError` where one is not back, `UserError` where a run is
    under way or a router is missing; the state is kept then.
    """
    state = RestoreState.of(inventory)
    if not state.is_there():
        return None
    state.hold()
    try:
        about = state.about()
        names = routers_of(about.topology)
        missing = [name for name in names if name not in routers]
        if missing:
            raise UserError(
                f"found no {', '.join(missing)} in {inventory}, which the run {about.run} configured",
                hint="Put it back into the inventory, or give the inventory as it was.",
            )
        with Scratch("rescue") as scratch, ExitStack() as opened:
            listed = scratch.path / "inventory.json"
            with AnsibleSession(listed, before=state.folder, modules=IOS_MODULES) as session:
                session.start()
                reached = dict(routers)
                if consoles:
                    reached |= opened.enter_context(_by_console(routers, consoles))
                write_inventory(listed, {name: reached[name] for name in names}, lab=False)
                left = Routers(about.topology, session, state, _no_base, note)
                left.resume()
                left.restore(None, None)
    except BaseException:
        state.release()
        raise
    state.remove()
    return about


@contextmanager
def _by_console(
    routers: Mapping[str, Access], consoles: Mapping[str, tuple[str, int]]
) -> Iterator[Mapping[str, Access]]:
    """Doors to consoles. `UserError` for one of a router that is none of the inventory's."""
    ways, groups = {}, {}
    for name, (host, port) in consoles.items():
        access = routers.get(name)
        if not isinstance(access, IosAccess):
            raise UserError(f"found the console of {name}, which is no IOS router of the inventory")
        ways[name] = Way(host, port, "telnet", access.user, access.password, access.enable, console=True)
        groups[name] = access.group
    with Door(ways) as door:
        door.open()
        yield door.access(groups)


def _no_base(router: str) -> str:
    raise AssertionError(f"nothing is compiled for {router} here")
