"""Exec commands about files on flash memory: texts, such as copies of the configuration."""

from __future__ import annotations

from qoslab.ios import running_config
from qoslab.ios.cli.grammar import Args
from qoslab.ios.exec.automation_tools import NO_FLASH, flash_bytes, offers_to_erase
from qoslab.ios.login import EXEC, PRIVILEGED, ExecSession

FLASH = "flash:"
_COPY = {
    "copy": "Copy from one file to another",
    "running-config": "Copy from current system configuration",
    "startup-config": "Copy from startup configuration",
    "url": "Copy to flash: file system",
}


def file_name(url: str) -> str | None:
    """The name of a file on flash memory (`flash:before.cfg`, `flash:/before.cfg`); None for another file system."""
    if not url.lower().startswith(FLASH):
        return None
    return url[len(FLASH) :].lstrip("/")


def named(args: Args, argument: str = "url") -> str:
    """The name of the file in an argument; a file of another file system is an invalid input."""
    name = file_name(args.value(argument, str))
    if name is None:
        raise args.invalid(argument)
    return name


def missing(url: str) -> str:
    """Return the message about a missing file."""
    return f"%Error opening {url} (No such file or directory)\n"


async def _copied(session: ExecSession, args: Args, text: str) -> str:
    name = named(args)
    session.terminal.write(f"Destination filename [{name}]? ")
    name = (await session.terminal.read_answer()).strip() or name
    flash = session.environment.flash
    if name in flash:
        session.terminal.write(
            "%Warning:There is a file already existing with this name\nDo you want to over write? [confirm]"
        )
        if not await session.terminal.read_confirmation():
            return ""
    if offers_to_erase(session) and not await _erased_or_kept(session):
        return ""
    size = len(text.encode())
    room = flash_bytes(session)
    others = sum(len(each.encode()) for other, each in flash.items() if other != name)
    if room is None:
        return NO_FLASH
    if size + others > room[0]:
        return f"%Error writing {FLASH}{name} (No space left on device)\n"
    flash[name] = text
    return f"{size} bytes copied in 0.100 secs ({size * 10} bytes/sec)\n"


async def _erased_or_kept(session: ExecSession) -> bool:
    """Ask whether to erase flash before a file is copied, and do so; whether the copy goes on."""
    session.terminal.write("Erase flash: before copying? [confirm]")
    if not await session.terminal.read_confirmation():
        return True
    session.terminal.write("Erasing the flash filesystem will remove all files! Continue? [confirm]")
    if not await session.terminal.read_confirmation():
        return False
    session.environment.flash.clear()
    session.terminal.write("Erasing device... eeeeeeee ...erased\nErase of flash: complete\n")
    return True


@EXEC.add(PRIVILEGED, "copy running-config <url:word>", help=_COPY)
async def _copy_running(session: ExecSession, args: Args) -> str:
    return await _copied(session, args, running_config.render(session.device) + "\n")


@EXEC.add(PRIVILEGED, "copy startup-config <url:word>", help=_COPY)
async def _copy_startup(session: ExecSession, args: Args) -> str:
    text = session.environment.startup_config()
    if text is None:
        return "%% Non-volatile configuration memory is not present\n"
    return await _copied(session, args, text)


@EXEC.add(
    PRIVILEGED,
    "delete [/force] <url:word>",
    help={"delete": "Delete a file", "/force": "Force delete", "url": "File to be deleted"},
)
async def _delete(session: ExecSession, args: Args) -> str:
    name = named(args)
    if "/force" not in args:
        session.terminal.write(f"Delete filename [{name}]? ")
        name = (await session.terminal.read_answer()).strip() or name
        session.terminal.write(f"Delete {FLASH}{name}? [confirm]")
        if not await session.terminal.read_confirmation():
            return "Delete of flash: aborted!\n"
    if session.environment.flash.pop(name, None) is None:
        return missing(FLASH + name)
    return ""


@EXEC.add(PRIVILEGED, "more <url:word>", help={"more": "Display the contents of a file", "url": "File to display"})
async def _more(session: ExecSession, args: Args) -> str:
    text = session.environment.flash.get(named(args))
    return missing(args.value("url", str)) if text is None else text
