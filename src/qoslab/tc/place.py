"""Choice of the kernel of each router of platform `tc` in a virtual lab: this machine's, or user-mode Linux."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from qoslab.errors import ExperimentError, MachineError
from qoslab.tc.commands.kernel_commands import KernelCommand, unsupported_lines
from qoslab.tc.kernel_kinds import probe_machine
from qoslab.tc.user_mode_linux import HINT, find


def guest_routers(commands: Mapping[str, Sequence[KernelCommand]]) -> frozenset[str]:
    """Return the routers that need a user-mode kernel because this machine's kernel lacks a kind that they use.

    `commands` are the tc commands by router. Raise `MachineError` with the missing kinds and their lines if there is
    no user-mode kernel, `ExperimentError` if the user-mode kernel lacks them too.
    """
    if not any(commands.values()):
        return frozenset()
    here = probe_machine()
    found = {router: list(unsupported_lines(each, here)) for router, each in commands.items()}
    found = {router: missing for router, missing in found.items() if missing}
    if not found:
        return frozenset()
    image = find()
    if image is None:
        raise MachineError(
            f"the kernel {here.release} lacks {_format_missing(found)}, and found no user-mode Linux kernel", hint=HINT
        )
    kinds = image.kinds()
    still = {router: list(unsupported_lines(commands[router], kinds)) for router in found}
    still = {router: missing for router, missing in still.items() if missing}
    if still:
        raise ExperimentError(
            f"the kernel {here.release} and user-mode Linux {image.release} lack {_format_missing(still)}",
            hint="Use another kind, or a machine whose kernel has it (qoslab doctor names them).",
        )
    return frozenset(found)


def manual_guest_routers(routers: Collection[str]) -> frozenset[str]:
    """Return the routers that need a user-mode kernel for manual use: all, if it has kinds that this kernel lacks."""
    image = find() if routers else None
    if image is None:
        return frozenset()
    here, there = probe_machine(), image.kinds()
    more = there.qdiscs - here.qdiscs or there.filters - here.filters or there.actions - here.actions
    return frozenset(routers) if more else frozenset()


def _format_missing(missing: Mapping[str, list[tuple[int, str]]]) -> str:
    words = []
    for router, each in missing.items():
        first = {kind: number for number, kind in reversed(each)}
        words += [f"{kind} of {router}" + (f" (line {number})" if number else "") for kind, number in first.items()]
    return ", ".join(words)
