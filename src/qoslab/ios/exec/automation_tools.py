"""Exec commands that inventory and automation tools send to every device."""

from __future__ import annotations

import re

from qoslab.ios.cli.grammar import Args
from qoslab.ios.exec.configuration import NVRAM_BYTES
from qoslab.ios.login import ANY_MODE, EXEC, PRIVILEGED, ExecSession
from qoslab.ios.show import automation_tools

_FLASH = re.compile(
    r"(\d+)K bytes of (?:ATA|flash-simulated|flash memory at (?P<boot>bootflash):"
    r"|(?P<class_b>processor board System flash))"
)
"""Pattern of the flash line of `show version`. Flash on the board, such as in a 2600 or a 1700, is of class B: it can
only be erased as a whole [I].
"""
NO_FLASH = "%Error opening flash:/ (Device not ready)\n"
"""Answer of routers without a known flash size [I]."""


@EXEC.add(ANY_MODE, "show inventory", help={"inventory": "Show the physical inventory"})
async def _show_inventory(session: ExecSession, args: Args) -> str:
    return automation_tools.show_inventory(session.device, session.environment.chassis)


_INTERFACES = {"interfaces": "Interface status and configuration"}


@EXEC.add(ANY_MODE, "show interfaces description", help={**_INTERFACES, "description": "Show interface description"})
async def _show_interface_description(session: ExecSession, args: Args) -> str:
    return automation_tools.show_interfaces_description(session.device, await session.environment.ports())


@EXEC.add(
    ANY_MODE,
    "show interfaces status",
    requires={"switch"},
    help={**_INTERFACES, "status": "Show interface line status"},
)
async def _show_interface_status(session: ExecSession, args: Args) -> str:
    return automation_tools.show_interfaces_status(session.device, await session.environment.ports())


@EXEC.add(
    ANY_MODE,
    "show vlan [brief]",
    requires={"switch"},
    help={"vlan": "VTP VLAN status", "brief": "VTP all VLAN status in brief"},
)
async def _show_vlan(session: ExecSession, args: Args) -> str:
    return automation_tools.show_vlan(session.device)


_NEIGHBORS = {"cdp": "CDP information", "lldp": "LLDP information", "detail": "Show detailed information"}


@EXEC.add(
    ANY_MODE, "show cdp neighbors [<name:interface>] [detail]", help={**_NEIGHBORS, "neighbors": "CDP neighbor entries"}
)
async def _show_cdp(session: ExecSession, args: Args) -> str:
    return automation_tools.show_cdp_neighbors(session.device)


@EXEC.add(
    ANY_MODE,
    "show lldp neighbors [<name:interface>] [detail]",
    help={**_NEIGHBORS, "neighbors": "LLDP neighbor entries"},
)
async def _show_lldp(session: ExecSession, args: Args) -> str:
    return automation_tools.show_lldp_neighbors(session.device)


@EXEC.add(ANY_MODE, "show users", help={"users": "Display information about terminal lines"})
async def _show_users(session: ExecSession, args: Args) -> str:
    return automation_tools.show_users()


@EXEC.add(ANY_MODE, "show (boot|bootvar)", help={"boot": "Boot variables", "bootvar": "Boot variables"})
async def _show_boot(session: ExecSession, args: Args) -> str:
    return automation_tools.show_boot(session.device, session.environment.chassis)


@EXEC.add(ANY_MODE, "show memory [statistics]", help={"memory": "Memory statistics", "statistics": "Memory statistics"})
async def _show_memory(session: ExecSession, args: Args) -> str:
    return automation_tools.show_memory(session.environment.chassis, await session.environment.memory())


@EXEC.add(ANY_MODE, "show logging", help={"logging": "Show the contents of logging buffers"})
async def _show_logging(session: ExecSession, args: Args) -> str:
    return automation_tools.show_logging(session.device, session.environment.log)


_FILES = {
    "dir": "List files on a filesystem",
    "url": "Directory or file name",
    "flash:": "Directory or file name",
    "nvram:": "Directory or file name",
    "all-filesystems": "List files on all filesystems",
}


@EXEC.add(PRIVILEGED, "dir [(flash:|nvram:|all-filesystems|<url:word>)]", help=_FILES)
async def _execute_dir(session: ExecSession, args: Args) -> str:
    if "nvram:" in args:
        return _nvram_listing(session)
    url = args.optional("url", str)
    if url is not None:
        name = file_name(session, url)
        if name is None:
            raise args.invalid_argument("url")
        if name:
            return _file_listing(session, url, name)
    return _flash_listing(session) + (f"\n{_nvram_listing(session)}" if "all-filesystems" in args else "")


@EXEC.add(ANY_MODE, "show (flash:|flash)", help={"flash:": "display information about flash: file system", "flash": ""})
async def _show_flash(session: ExecSession, args: Args) -> str:
    return _flash_listing(session)


def _flash_listing(session: ExecSession) -> str:
    """Return the listing of flash memory, without the image, whose size is not known."""
    size = flash_bytes(session)
    files = {name: len(text.encode()) for name, text in session.environment.flash.items()}
    where = f"{file_system(session)}:/"
    return (
        NO_FLASH
        if size is None
        else automation_tools.directory_listing(files, where, size[0], session.environment.current_time())
    )


def _file_listing(session: ExecSession, url: str, name: str) -> str:
    """Return the listing of one file."""
    text, size = session.environment.flash.get(name), flash_bytes(session)
    if text is None or size is None:
        return f"%Error opening {url} (No such file or directory)\n"
    total = size[0]
    return automation_tools.directory_listing(
        {name: len(text.encode())}, url, total, session.environment.current_time(), size[1]
    )


def file_system(session: ExecSession) -> str:
    """Return the name of the file system for files: `bootflash` on IOS-XE, else `flash`."""
    flash = _flash_memory(session)
    return "flash" if flash is None or flash["boot"] is None else flash["boot"]


def file_name(session: ExecSession, url: str) -> str | None:
    """Return the name of a file on flash memory (`flash:before.cfg`, `flash:/before.cfg`); None for other URLs.

    IOS-XE calls the file system `bootflash:` and accepts `flash:` as a synonym.
    """
    for prefix in {"flash:", f"{file_system(session)}:"}:
        if url.lower().startswith(prefix):
            return url[len(prefix) :].lstrip("/")
    return None


def flash_bytes(session: ExecSession) -> tuple[int, int] | None:
    """Return the total and free bytes of flash memory; None if no output shows its size."""
    size = _flash_memory(session)
    if size is None:
        return None
    used = sum(len(text.encode()) for text in session.environment.flash.values())
    return 1024 * int(size[1]), 1024 * int(size[1]) - used


def copy_offers_erase(session: ExecSession) -> bool:
    """Return whether `copy` to this flash memory offers to erase it first."""
    flash = _flash_memory(session)
    return flash is not None and flash["class_b"] is not None


def _flash_memory(session: ExecSession) -> re.Match[str] | None:
    return _FLASH.search("\n".join(session.environment.chassis.memory_lines))


def nvram_bytes(session: ExecSession) -> tuple[int, int]:
    """Return the total and free bytes of NVRAM, the memory for configurations."""
    return NVRAM_BYTES, NVRAM_BYTES - sum(_saved_configuration(session).values())


def _saved_configuration(session: ExecSession) -> dict[str, int]:
    text = session.environment.startup_config()
    return {} if text is None else {"startup-config": len(text.encode())}


def _nvram_listing(session: ExecSession) -> str:
    return automation_tools.directory_listing(
        _saved_configuration(session), "nvram:/", NVRAM_BYTES, session.environment.current_time()
    )
