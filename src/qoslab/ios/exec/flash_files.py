"""Exec commands about text files on flash memory, such as copies of the configuration."""

from __future__ import annotations

import hashlib

from qoslab.ios import running_config
from qoslab.ios.cli.grammar import Args, CliError
from qoslab.ios.config import ConfigSession
from qoslab.ios.exec.automation_tools import NO_FLASH, copy_offers_erase, file_name, file_system, flash_bytes
from qoslab.ios.login import EXEC, PRIVILEGED, ExecSession
from qoslab.ios.model.device import Device

_COPY = {
    "copy": "Copy from one file to another",
    "running-config": "Copy from current system configuration",
    "startup-config": "Copy from startup configuration",
    "url": "Copy to flash: file system",
}


def file_name_argument(session: ExecSession, args: Args, argument: str = "url") -> str:
    """Return the name of the file in an argument. Raise the error for invalid input for another file system."""
    name = file_name(session, args.value(argument, str))
    if name is None:
        raise args.invalid_argument(argument)
    return name


def is_quiet(session: ExecSession) -> bool:
    """Return whether `file prompt quiet` is configured, so that file commands do not prompt."""
    line = session.device.inert.find("file prompt")
    return line is not None and line.text.endswith(" quiet")


def missing_file_message(url: str) -> str:
    """Return the message about a missing file."""
    return f"%Error opening {url} (No such file or directory)\n"


async def _copy_to_flash(session: ExecSession, args: Args, text: str) -> str:
    name = file_name_argument(session, args)
    asks = not is_quiet(session)
    if asks:
        session.terminal.write(f"Destination filename [{name}]? ")
        name = (await session.terminal.read_answer()).strip() or name
    flash = session.environment.flash
    if name in flash and asks:
        session.terminal.write(
            "%Warning:There is a file already existing with this name\nDo you want to over write? [confirm]"
        )
        if not await session.terminal.read_confirmation():
            return ""
    if asks and copy_offers_erase(session) and not await _confirm_erasure(session):
        return ""
    size = len(text.encode())
    room = flash_bytes(session)
    others = sum(len(each.encode()) for other, each in flash.items() if other != name)
    if room is None:
        return NO_FLASH
    if size + others > room[0]:
        return f"%Error writing {file_system(session)}:{name} (No space left on device)\n"
    flash[name] = text
    return f"{size} bytes copied in 0.100 secs ({size * 10} bytes/sec)\n"


async def _confirm_erasure(session: ExecSession) -> bool:
    """Ask whether to erase flash before a copy, and erase it; return whether to continue."""
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
    return await _copy_to_flash(session, args, running_config.render(session.device) + "\n")


@EXEC.add(PRIVILEGED, "copy startup-config <url:word>", help=_COPY)
async def _copy_startup(session: ExecSession, args: Args) -> str:
    text = session.environment.startup_config()
    if text is None:
        return "%% Non-volatile configuration memory is not present\n"
    return await _copy_to_flash(session, args, text)


@EXEC.add(PRIVILEGED, "copy null: <url:word>", help={**_COPY, "null:": "Copy from null: file system"})
async def _copy_nothing(session: ExecSession, args: Args) -> str:
    return await _copy_to_flash(session, args, "")


@EXEC.add(PRIVILEGED, "copy <source:word> running-config", help={**_COPY, "source": "Copy from flash: file system"})
async def _merge(session: ExecSession, args: Args) -> str:
    """Enter the lines of a file as if typed; other configuration stays."""
    name = file_name_argument(session, args, "source")
    text = session.environment.flash.get(name)
    if text is None:
        return missing_file_message(args.value("source", str))
    if not is_quiet(session):
        session.terminal.write("Destination filename [running-config]? ")
        await session.terminal.read_answer()
    config = ConfigSession(session.device)
    for line in text.splitlines():
        await _enter(session, config, line)
        if config.finished:
            break
    return f"{len(text.encode())} bytes copied in 0.100 secs ({10 * len(text.encode())} bytes/sec)\n"


async def _enter(session: ExecSession, config: ConfigSession, line: str) -> None:
    def change(device: Device) -> None:
        config.device = device
        config.execute(line)

    try:
        await session.environment.edit(change)
    except CliError as error:
        session.terminal.write("\n".join([line, *error.render()]) + "\n")
    finally:
        config.device = session.environment.device


@EXEC.add(
    PRIVILEGED,
    "verify /md5 <url:word>",
    help={"verify": "Verify a file", "/md5": "Compute an md5 signature", "url": "File to be verified"},
)
async def _verify(session: ExecSession, args: Args) -> str:
    url, text = args.value("url", str), session.environment.flash.get(file_name_argument(session, args))
    if text is None:
        return missing_file_message(url)
    digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return f".MD5 of {url} Done!\nverify /md5 ({url}) = {digest}\n"


@EXEC.add(
    PRIVILEGED,
    "delete [/force] <url:word>",
    help={"delete": "Delete a file", "/force": "Force delete", "url": "File to be deleted"},
)
async def _delete(session: ExecSession, args: Args) -> str:
    name = file_name_argument(session, args)
    place = f"{file_system(session)}:"
    if "/force" not in args and not is_quiet(session):
        session.terminal.write(f"Delete filename [{name}]? ")
        name = (await session.terminal.read_answer()).strip() or name
        session.terminal.write(f"Delete {place}{name}? [confirm]")
        if not await session.terminal.read_confirmation():
            return f"Delete of {place} aborted!\n"
    if session.environment.flash.pop(name, None) is None:
        return missing_file_message(place + name)
    return ""


@EXEC.add(PRIVILEGED, "more <url:word>", help={"more": "Display the contents of a file", "url": "File to display"})
async def _execute_more(session: ExecSession, args: Args) -> str:
    text = session.environment.flash.get(file_name_argument(session, args))
    return missing_file_message(args.value("url", str)) if text is None else text
