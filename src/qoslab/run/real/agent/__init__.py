"""Agent on a host of an inventory during a run: sent over SSH, never installed.

It needs Python 3.8 or later with the standard library, and `ip` (iproute2) for addresses and routes. It owns the
programs that it starts: when its input ends, or no message arrives for some seconds, all of them are ended and all
settings are restored. `MODULES` are sent in this order; of qoslab, each imports only modules before it.
"""

from __future__ import annotations

from pathlib import Path

MODULES = ("lock", "kernel", "nic", "settings", "host_facts", "lateness", "child", "serve")


def agent_source(who: str) -> bytes:
    """The agent as a Python text; `who` names the owner of the run for other users."""
    folder = Path(__file__).parent
    modules = [(f"{__name__}.{name}", (folder / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES]
    lines = (
        "import sys, types",
        f"for name, text in {modules!r}:",
        "    module = sys.modules[name] = types.ModuleType(name)",
        "    exec(compile(text, name, 'exec'), module.__dict__)",
        f"module.main({who!r})",
    )
    return "\n".join((*lines, "")).encode()
