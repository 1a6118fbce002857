"""Exec commands to show, save, erase and reload configurations."""

from __future__ import annotations

from qoslab.ios import running_config
from qoslab.ios.cli.grammar import Args
from qoslab.ios.commands.class_map import class_map_block, class_order
from qoslab.ios.commands.policy_map import policy_map_block, policy_order
from qoslab.ios.login import EXEC, PRIVILEGED, ExecSession

NVRAM_BYTES = 55 * 1024
"""Bytes of NVRAM for the startup configuration, as in `show version` of a 3725."""

_SHOW = {"running-config": "Current operating configuration", "startup-config": "Contents of startup configuration"}
_COPY = {
    "copy": "Copy from one file to another",
    "running-config": "Copy from current system configuration",
    "startup-config": "Copy to startup configuration",
}
_WRITE = {
    "write": "Write running configuration to memory, network, or terminal",
    "memory": "Write to NV memory",
    "terminal": "Write to terminal",
    "erase": "Erase NV memory",
}


def _building_output(text: str) -> str:
    return f"Building configuration...\n\nCurrent configuration : {len(text.encode())} bytes\n{text}\n"


@EXEC.add(PRIVILEGED, "show running-config [all]", help={**_SHOW, "all": "Configuration with defaults"})
async def _show_running_config(session: ExecSession, args: Args) -> str:
    # The model has typed settings only; `all` has no further lines to add.
    return _building_output(running_config.render(session.device))


@EXEC.add(
    PRIVILEGED,
    "show running-config interface <name:interface>",
    help={**_SHOW, "interface": "Show interface configuration"},
)
async def _show_running_interface(session: ExecSession, args: Args) -> str:
    name = session.known_interface(args) or ""
    return _building_output(f"!\n{running_config.render_interface(session.device, name)}end\n")


@EXEC.add(
    PRIVILEGED,
    "show running-config policy-map [<policy:word>]",
    help={**_SHOW, "policy-map": "Show policy-map information", "policy": "Policy-map name"},
)
async def _show_running_policy_map(session: ExecSession, args: Args) -> str:
    device, wanted = session.device, args.optional("policy", str)
    names = [name for name in policy_order(device) if wanted in (None, name)]
    blocks = [policy_map_block(device, device.policy_maps[name]) for name in names]
    return _building_output("".join("!\n" + "\n".join(block) + "\n" for block in blocks) + "!\nend\n")


@EXEC.add(
    PRIVILEGED,
    "show running-config class-map [<class:word>]",
    help={**_SHOW, "class-map": "Show class-map information", "class": "Class-map name"},
)
async def _show_running_class_map(session: ExecSession, args: Args) -> str:
    device, wanted = session.device, args.optional("class", str)
    names = [name for name in class_order(device) if wanted in (None, name)]
    blocks = [class_map_block(device.class_maps[name]) for name in names]
    return _building_output("".join("!\n" + "\n".join(block) + "\n" for block in blocks) + "!\nend\n")


@EXEC.add(PRIVILEGED, "show startup-config", help=_SHOW)
async def _show_startup_config(session: ExecSession, args: Args) -> str:
    text = session.environment.startup_config()
    if text is None:
        return "startup-config is not present\n"
    return f"Using {len(text.encode())} out of {NVRAM_BYTES} bytes\n{text}\n"


def save(session: ExecSession) -> None:
    """Save the running configuration as the startup configuration."""
    session.terminal.write("Building configuration...\n")
    session.environment.save_startup_config(running_config.render(session.device))
    session.terminal.write("[OK]\n")


@EXEC.add(PRIVILEGED, "write [memory]", help=_WRITE)
async def _write_memory(session: ExecSession, args: Args) -> None:
    save(session)


@EXEC.add(PRIVILEGED, "write terminal", help=_WRITE)
async def _write_terminal(session: ExecSession, args: Args) -> str:
    return _building_output(running_config.render(session.device))


@EXEC.add(PRIVILEGED, "copy running-config startup-config", help=_COPY)
async def _copy(session: ExecSession, args: Args) -> None:
    session.terminal.write("Destination filename [startup-config]? ")
    answer = (await session.terminal.read_answer()).strip()
    if answer not in ("", "startup-config"):
        # There is only one file. The wording of the refusal is assumed [I].
        session.terminal.write(f"%Error opening nvram:/{answer} (Permission denied)\n")
        return
    save(session)


@EXEC.add(PRIVILEGED, "write erase", help=_WRITE)
async def _write_erase(session: ExecSession, args: Args) -> None:
    await _erase(session)


@EXEC.add(
    PRIVILEGED,
    "erase startup-config",
    help={"erase": "Erase a filesystem", "startup-config": "Erase contents of configuration memory"},
)
async def _execute_erase_startup_config(session: ExecSession, args: Args) -> None:
    await _erase(session)


async def _erase(session: ExecSession) -> None:
    session.terminal.write("Erasing the nvram filesystem will remove all configuration files! Continue? [confirm]")
    if await session.terminal.read_confirmation():
        session.environment.save_startup_config(None)
        session.terminal.write("[OK]\nErase of nvram: complete\n")
