"""Action `engine_intents`: intents on the `qos-router` data plane of a router, one after the other.

Its control program is started on the router's connection, without a module of Ansible, which would start Python there.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from qoslab.run.devices.ansible.intents import ARGUMENT, DifferencesError, IntentError, execute_in_order

ARGUMENTS = {
    "intents": ARGUMENT,
    "program": {"type": "str", "required": True},
    "socket": {"type": "str", "required": True},
    "intended": {"type": "path", "default": ""},
    "before": {"type": "path", "default": ""},
    "unconfigured": {"type": "dict", "default": {}},
}


class ActionModule(ActionBase):
    """Action plugin; Ansible requires this name."""

    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Carry out the intents in order, up to the first that fails."""
        super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(ARGUMENTS)
        self._arguments: dict[str, Any] = arguments
        name = (task_vars or {})["inventory_hostname"]
        self._intended = Path(arguments["intended"], f"{name}.engine.json")
        self._before = Path(arguments["before"], f"{name}.before.json")
        return execute_in_order(arguments["intents"], self, OSError)

    # Intents

    def prepare(self) -> dict[str, Any]:
        """Save the configuration in force."""
        active = self._active()
        text = json.dumps(active or self._arguments["unconfigured"])
        changed = not self._before.is_file() or self._before.read_text(encoding="utf-8") != text
        if changed and not self._task.check_mode:
            self._before.touch()
            self._before.chmod(0o600)
            self._before.write_text(text, encoding="utf-8")
        return {"changed": changed, "config": active}

    def apply(self) -> dict[str, Any]:
        """Send the intended configuration, unless it is active already."""
        return self._configure(self._intended) if self._intended.is_file() else {}

    def verify(self) -> dict[str, Any]:
        """Compare the active configuration with the intended one."""
        active = self._active()
        if self._intended.is_file() and active != json.loads(self._intended.read_text(encoding="utf-8")):
            raise DifferencesError(["The configuration in force in the data plane differs from the intended one"])
        return {"config": active}

    def restore(self) -> dict[str, Any]:
        """Send the configuration from before the run, unless it is active."""
        return self._configure(self._before)

    # Steps

    def _configure(self, file: Path) -> dict[str, Any]:
        text = file.read_text(encoding="utf-8")
        if self._active() == json.loads(text):
            return {}
        if not self._task.check_mode:
            self._control("configure", "-", data=text.encode())
        return {"changed": True}

    def _active(self) -> Any:
        """Return the active configuration; None without any."""
        return json.loads(self._control("config"))["config"]

    def _control(self, *words: str, data: bytes | None = None) -> str:
        """Execute the control program, with `data` as its standard input. Raise `IntentError` if it fails."""
        command = [self._arguments["program"], "ctl", "--control", self._arguments["socket"], *words]
        done = self._low_level_execute_command(shlex.join(command), in_data=data)
        if done["rc"]:
            texts = {name: done[name] for name in ("rc", "stdout", "stderr")}
            raise IntentError("non-zero return code", **texts)
        return str(done["stdout"])
