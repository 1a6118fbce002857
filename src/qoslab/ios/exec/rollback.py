"""Exec commands to replace the configuration, now or if the current one is not confirmed in time.

After Cisco's guide to Configuration Replace and Configuration Rollback (12.3(7)T; the timer 12.4(20)T).
"""

from __future__ import annotations

import difflib

from qoslab.ios import running_config
from qoslab.ios.cli.grammar import Args
from qoslab.ios.config import ConfigSession
from qoslab.ios.exec.automation_tools import file_name
from qoslab.ios.exec.flash_files import file_name_argument, missing_file_message
from qoslab.ios.login import EXEC, PRIVILEGED, ExecSession
from qoslab.ios.model.device import Device
from qoslab.ios.show import join_lines
from qoslab.ios.show.times import duration_in_words, moment_text

MAX_MINUTES = 120
"""Maximum of the confirmation timer in minutes."""

_WARNING = (
    "This will apply all necessary additions and deletions\n"
    "to replace the current running configuration with the\n"
    "contents of the specified configuration file, which is\n"
    "assumed to be a complete configuration, not a partial\n"
    "configuration. Enter Y if you are sure you want to proceed. ? [no]: "
)
_NO_ARCHIVE = "%No archive is configured: the path of `archive` is missing\n"
"""Message without an archive path [I]: the refusal is documented, its wording is not."""
_REPLACE = {
    "configure": "Enter configuration mode",
    "replace": "Replace the running-config with a new config file",
    "url": "URL of config file that will replace running-config",
    "force": "Replace without prompting for confirmation",
    "revert": "Parameters for reverting the configuration",
    "trigger": "Trigger to revert the configuration",
    "error": "Revert to the original configuration upon error",
}


@EXEC.add(PRIVILEGED, "configure replace <url:word> [force] [revert trigger error]", help=_REPLACE)
async def _replace(session: ExecSession, args: Args) -> str:
    text = session.environment.flash.get(file_name_argument(session, args))
    if text is None:
        return missing_file_message(args.value("url", str))
    if "force" not in args:
        session.terminal.write(_WARNING)
        answer = (await session.terminal.read_answer()).strip().lower()
        if not answer or not "yes".startswith(answer):
            return ""
    refused = await session.environment.replace(text)
    text = "".join(f"%{line}\n" for line in refused)
    if refused and "revert" in args:
        # A refused line never leaves a partial change.
        text += "The original configuration has been successfully restored\n"
    return f"{text}Total number of passes: 1\n{'Rollback aborted' if refused else 'Rollback Done'}\n\n"


_DIFFERENCES = {
    "archive": "Archive functions",
    "config": "Config archive functions",
    "differences": "Display the differences between two config files",
    "url": "First file",
    "other": "Second file (default: running configuration)",
}


@EXEC.add(PRIVILEGED, "show archive config differences [<url:word> [<other:word>]]", help=_DIFFERENCES)
async def _show_differences(session: ExecSession, args: Args) -> str:
    texts = []
    for name, absent in (("url", "nvram:startup-config"), ("other", "system:running-config")):
        url = args.optional(name, str) or absent
        text = _configuration_text(session, url)
        if text is None:
            return missing_file_message(url)
        texts.append(text)
    return join_lines(contextual_differences(*texts))


def _configuration_text(session: ExecSession, url: str) -> str | None:
    if url == "nvram:startup-config":
        return session.environment.startup_config()
    if url in ("system:running-config", "system:/running-config"):
        return running_config.render(session.device)
    name = file_name(session, url)
    return None if name is None else session.environment.flash.get(name)


def contextual_differences(one: str, other: str) -> list[str]:
    """Return the contextual differences of two configurations: added (+) and removed (-) lines below their parents."""
    found: list[str] = []
    shown: tuple[str, ...] = ()
    for line in difflib.ndiff(_lines_with_parents(one), _lines_with_parents(other)):
        sign = line[:1]
        if sign not in "+-":
            continue
        *above, own = line[2:].split("\n")
        found += [each for each in above if each not in shown]
        found.append(f"{sign}{own}")
        shown = (*above, own)
    return ["!Contextual Config Diffs:", *found] if found else ["!No changes were found"]


def _lines_with_parents(text: str) -> list[str]:
    """Return each line preceded by its parent lines, outermost first."""
    above: list[str] = []
    lines = []
    for line in text.splitlines():
        if not line.strip() or line.startswith(("!", "end")):
            continue
        depth = len(line) - len(line.lstrip(" "))
        above = [each for each in above if len(each) - len(each.lstrip(" ")) < depth]
        lines.append("\n".join([*above, line]))
        above.append(line)
    return lines


# Confirmation of a configuration.


def _is_archive_configured(device: Device) -> bool:
    """Return whether `archive` has a path, to which the current configuration is saved before a change."""
    archive = device.inert.find("archive")
    return archive is not None and any(line.strip().startswith("path ") for line in archive.below)


@EXEC.add(PRIVILEGED, "show archive", help={"archive": "Archive functions"})
async def _show_archive(session: ExecSession, args: Args) -> str:
    archive = session.device.inert.find("archive")
    if archive is None or not _is_archive_configured(session.device):
        return "Archive feature not enabled\n"
    path = next(line.split(None, 1)[1] for line in map(str.strip, archive.below) if line.startswith("path "))
    return (
        "The maximum archive configurations allowed is 10.\n"
        "There are currently 0 archive configurations saved.\n"
        f"The next archive file will be named {path}-0\n"
    )


_TIMER = {
    "configure": "Enter configuration mode",
    "terminal": "Configure from the terminal",
    "revert": "Parameters for reverting the configuration",
    "timer": "Rollback timer",
    "minutes": "Time in minutes to wait for a confirmation",
    "confirm": "Confirm the configuration change",
    "now": "Revert now",
}


@EXEC.add(PRIVILEGED, f"configure terminal revert timer <minutes:1-{MAX_MINUTES}>", help=_TIMER)
async def _configure_with_timer(session: ExecSession, args: Args) -> str:
    if not _is_archive_configured(session.device):
        return _NO_ARCHIVE
    minutes = args.value("minutes", int)
    session.environment.revert_after(60.0 * minutes, running_config.render(session.device))
    session.config = ConfigSession(session.device)
    return (
        f"Rollback Confirmed Change: Backing up current running config. Reverts in {minutes} minutes if not confirmed\n"
        "Enter configuration commands, one per line.  End with CNTL/Z.\n"
    )


@EXEC.add(PRIVILEGED, f"configure revert timer <minutes:1-{MAX_MINUTES}>", help=_TIMER)
async def _renew_timer(session: ExecSession, args: Args) -> str:
    if session.environment.rollback_time is None:
        return "%No Rollback Confirmed Change pending\n"
    session.environment.revert_after(60.0 * args.value("minutes", int))
    return ""


@EXEC.add(PRIVILEGED, "configure revert now", help=_TIMER)
async def _revert_now(session: ExecSession, args: Args) -> str:
    if session.environment.rollback_time is None:
        return "%No Rollback Confirmed Change pending\n"
    await session.environment.revert()
    return ""


@EXEC.add(PRIVILEGED, "configure confirm", help=_TIMER)
async def _execute_confirm(session: ExecSession, args: Args) -> str:
    if session.environment.rollback_time is None:
        return "%No Rollback Confirmed Change pending\n"
    session.environment.revert_after(None)
    return ""


@EXEC.add(
    PRIVILEGED,
    "show archive config rollback timer",
    help={**_DIFFERENCES, "rollback": "Rollback information", "timer": "Rollback timer"},
)
async def _show_timer(session: ExecSession, args: Args) -> str:
    at = session.environment.rollback_time
    if at is None:
        return "%No Rollback Confirmed Change pending\n"
    now = session.environment.current_time()
    return (
        f"Time configured: Rollback at {moment_text(at)}\nTimer type: absolute timer\nTime left: "
        f"{duration_in_words(at - now)}\n"
    )
