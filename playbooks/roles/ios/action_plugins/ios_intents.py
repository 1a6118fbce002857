"""Action `ios_intents`: intents on an IOS router, one after the other, by the modules of `cisco.ios`.

A running configuration that was read after restoring is not read again before applying.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.connection import ConnectionError as RouterConnectionError
from ansible.plugins.action import ActionBase

from qoslab.run.devices.ansible.intents import ARGUMENT, DifferencesError, IntentError, execute_in_order

RUNNING = "show running-config"
ARGUMENTS = {
    "intents": ARGUMENT,
    "intended": {"type": "path", "default": ""},
    "before": {"type": "path", "default": ""},
    "restore": {"type": "path", "default": ""},
    "commands": {"type": "list", "elements": "str", "default": []},
    "family": {"type": "str", "choices": ["router", "switch"], "default": "router"},
    "model": {"type": "str", "default": ""},
    "screens": {"type": "list", "elements": "str", "default": []},
    "hide": {"type": "bool", "default": True},
}


class ActionModule(ActionBase):
    """Action plugin; Ansible requires this name."""

    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Carry out the intents in order, up to the first that fails."""
        super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(ARGUMENTS)
        self._variables = task_vars or {}
        self._arguments: dict[str, Any] = arguments
        self._running: str | None = None
        name = self._variables["inventory_hostname"]
        self._intended = Path(arguments["intended"], f"{name}.ios")
        self._before = Path(arguments["before"], f"{name}.before.ios")
        self._undo = Path(arguments["restore"], f"{name}.restore.ios")
        self._pushed = Path(arguments["restore"], f"{name}.pushed.ios")
        return execute_in_order(arguments["intents"], self, AnsibleError, RouterConnectionError, OSError)

    # Intents

    def prepare(self) -> dict[str, Any]:
        """Read hardware and software; save the running configuration."""
        facts = self._module("cisco.ios.ios_facts", gather_subset=["min"])
        place = {"dir_path": str(self._before.parent), "filename": self._before.name}
        saved = self._module("cisco.ios.ios_config", backup=True, backup_options=place)
        return {"ansible_facts": facts["ansible_facts"], "changed": saved["changed"]}

    def apply(self) -> dict[str, Any]:
        """Push the intended configuration, unless it is active already."""
        if not self._intended.is_file():
            return {}
        # The whole text, as written: `ios_config` would compare it line by line and omit a line that enters a block.
        running = self._read() if self._running is None else self._running
        return self._push(self._intended, running) if self._differences(running) else {}

    def verify(self) -> dict[str, Any]:
        """Compare the running configuration with the intended one; on a switch, the settings in force as well."""
        commands = [RUNNING, *self._arguments["commands"]]
        answers = self._show(commands)
        if self._intended.is_file():
            self._expect_none(self._differences(answers[0]))
            if screens := self._arguments["screens"]:
                self._expect_none(self._other_settings(screens, self._show(screens)))
        return {} if self._arguments["hide"] else {"stdout": answers}

    def restore(self) -> dict[str, Any]:
        """Undo the applied configuration, and compare with the one from before the run."""
        from qoslab.ios.device_config.restore import unrestored_lines
        from qoslab.ios.device_config.running_config_parser import likely_hardware

        pushed = self._push(self._undo, "") if self._undo.is_file() else {}
        self._running = self._read()
        before = self._before.read_text(encoding="utf-8")
        undone = [self._pushed.read_text(encoding="utf-8")] if self._pushed.is_file() else []
        hardware = likely_hardware(before, self._arguments["family"])
        self._expect_none(unrestored_lines(before, self._running, undone, hardware))
        return pushed

    # Steps

    def _differences(self, running: str) -> Sequence[str]:
        from qoslab.ios.device_config.config_equivalence import configuration_differences

        before = self._before.read_text(encoding="utf-8") if self._before.is_file() else None
        intended = self._intended.read_text(encoding="utf-8")
        return configuration_differences(intended, running, before=before, family=self._arguments["family"])

    def _other_settings(self, screens: Sequence[str], answers: Sequence[str]) -> Sequence[str]:
        from qoslab.verification.switch import switch_differences

        intended = self._intended.read_text(encoding="utf-8")
        return switch_differences(intended, dict(zip(screens, answers, strict=True)), self._arguments["model"])

    def _expect_none(self, differences: Sequence[str]) -> None:
        if differences:
            raise DifferencesError(differences)

    def _read(self) -> str:
        (running,) = self._show([RUNNING])
        return running

    def _show(self, commands: Sequence[str]) -> list[str]:
        answers: list[str] = self._module("cisco.ios.ios_command", commands=list(commands))["stdout"]
        return answers

    def _push(self, file: Path, running: str) -> dict[str, Any]:
        """Send a file as `src`, which is sent once; `lines` would be sent once for each of its lines."""
        from qoslab.ios.template_marks import find_template_mark

        text = file.read_text(encoding="utf-8")
        if mark := find_template_mark(text):
            raise IntentError(f"{file}:{mark}; write the line without it")
        self._running = None
        known = {"running_config": running} if running else {}
        return {"changed": self._module("cisco.ios.ios_config", src=text, match="none", **known)["changed"]}

    def _module(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Execute a module of `cisco.ios` on the connection of this task. Raise `IntentError` if it fails."""
        task = self._task.copy()
        task.action, task.args = name, arguments
        action = self._shared_loader_obj.action_loader.get(
            "cisco.ios.ios",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        # `src` is the text already. The plugin would read a file and render it, for a quarter of the time of an order.
        action._handle_src_option = lambda: None
        result: dict[str, Any] = action.run(task_vars=self._variables)
        if result.get("failed"):
            raise IntentError(str(result.get("msg", "")))
        return result
