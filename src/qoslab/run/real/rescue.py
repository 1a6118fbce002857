"""Restoration of an inventory's routers after a run that was killed or lost its connection or its machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from qoslab.errors import UserError
from qoslab.ios.device_config.interface_names import InterfaceNames
from qoslab.platforms import command_line_nodes
from qoslab.run.devices.ansible.playbooks import IOS_MODULES, AnsibleSession
from qoslab.run.devices.ansible_inventory import read_routers, write_inventory
from qoslab.run.devices.pushed_routers import PushedRouters
from qoslab.run.devices.state import RestoreState, StateOwner
from qoslab.run.real.access.inventory_proxies import access_methods
from qoslab.run.real.access.proxies import AccessProxies
from qoslab.run.real.access.rollback_timer import refuse_remaining_timers, stop
from qoslab.run.real.access.run_lock import refuse_locked_routers, remove_lock
from qoslab.run.scratch import Scratch

Line = tuple[str, int]
"""Address and port of a console's terminal server."""


def unrestored_routers(inventory: Path) -> tuple[str, ...]:
    """Return the routers of an inventory with state left by a run; empty if there is none."""
    state = RestoreState.for_inventory(inventory)
    return command_line_nodes(state.read_owner().topology) if state.exists() else ()


def restore_routers(
    inventory: Path, note: Callable[[str], None], consoles: Mapping[str, Line | None] = {}
) -> StateOwner | None:
    """Restore the routers of an inventory from the state left by a run; return None if there is none.

    Routers in `consoles` are reached by telnet to the line of a terminal server, by default the one in the inventory.
    Changes by others since then are left in place and passed to `note`. Raise `RouterError` if a router is not
    restored, `DeviceError` if its rollback timer still runs, `UserError` if a run is in progress, a router is missing
    or is locked by another run, `AccessFault` or `ProxyClosedFault` if one is not reached; the state is then kept.
    """
    routers, settings = read_routers(inventory)
    state = RestoreState.for_inventory(inventory)
    if not state.folder.is_dir():
        return None
    state.lock_routers()
    if not state.exists():
        # The run was killed while it created or removed this state.
        state.remove()
        return None
    try:
        about = state.read_owner()
        # Linux routers restore themselves, as hosts do.
        names = command_line_nodes(about.topology)
        missing = [name for name in (*names, *consoles) if name not in routers]
        if missing:
            raise UserError(
                f"found no {', '.join(missing)} in {inventory}, expected every router configured by the run "
                f"{about.run}",
                hint="Add it to the inventory again, or use the former inventory.",
            )
        chosen = {name: routers[name] for name in names}
        ways = access_methods(inventory, chosen, settings)
        for name, given in consoles.items():
            host, port = given or _console_address(name, settings[name].console)
            ways[name] = replace(ways[name], host=host, port=port, protocol="telnet", console=True, jump=None)
        with Scratch("rescue") as scratch, AccessProxies(ways) as proxies:
            proxies.open()
            # Once the process can access a router, it can access its rollback timer as well.
            refuse_locked_routers(proxies.ask, ways, state.mark())
            # First, so that no timer expires during the restoration; a console takes one client at a time.
            left = {name: stop(proxies.ask, name, choice) for name, choice in state.rollback_timers().items()}
            listed = scratch.path / "inventory.json"
            with AnsibleSession(listed, before=state.folder, modules=IOS_MODULES) as session:
                session.start()
                proxied = proxies.access({name: access.group for name, access in chosen.items()})
                session.raise_time_limit(proxied.values())
                write_inventory(listed, {**chosen, **proxied}, lab=False)
                named = {name: InterfaceNames(settings[name].interfaces) for name in names}
                behind = PushedRouters(about.topology, session, state, _missing_base_error, note, names=named)
                behind.resume()
                behind.restore(None, None)
            refuse_remaining_timers(left)
            if state.mark():
                for name in names:
                    remove_lock(proxies.ask, name, state.mark())
    except BaseException:
        state.release()
        raise
    state.remove()
    return about


def _console_address(name: str, known: str | None) -> Line:
    if known is None:
        raise UserError(
            f"found --console {name}, but no qoslab_console of {name} in the inventory",
            hint=f"Give its address: --console {name}=HOST:PORT.",
        )
    host, _, port = known.rpartition(":")
    return host, int(port)


def _missing_base_error(router: str) -> str:
    raise AssertionError(f"a rescue has no configuration to compile for {router}")
