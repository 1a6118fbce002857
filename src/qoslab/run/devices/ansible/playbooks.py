"""Execution of the playbooks through ansible-runner.

A session of a run is one `ansible-playbook` process: starting it and logging in to the routers takes seconds, which
each arm would otherwise pay again. It plays `playbooks/session.yml`, which reads orders from a FIFO.
"""

from __future__ import annotations

import ast
import contextlib
import errno
import json
import os
import queue
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from qoslab.errors import DeviceError, IosError, MachineError, QoslabError
from qoslab.ios.refusals import REFUSAL_PATTERN
from qoslab.ios.template_marks import find_template_mark
from qoslab.model.inventory import ANSWER_S
from qoslab.results.file_access import convert_write_errors
from qoslab.results.redaction import KNOWN
from qoslab.run.devices.ansible import leftovers
from qoslab.run.devices.ansible.connection_choice import Helper, choose
from qoslab.run.devices.ansible.intents import Intent
from qoslab.run.devices.ansible_inventory import UTF8, IosAccess
from qoslab.run.devices.login_failures import TRANSIENT_FAILURES, FailureKind
from qoslab.run.faults import TransientFault
from qoslab.run.scratch import own_temporary_folder
from qoslab.system.extras import require_extra
from qoslab.system.priority import BACKGROUND_NICE, shell_lower_priority
from qoslab.system.programs import python_module_command
from qoslab.system.shipped import shipped_path

INVENTORY_TASK = "Wait for the inventory"
READY_TASK = "Wait for an order"
END_TASK = "Wait for the next order"
"""Names of tasks in `playbooks/` that start when a session is ready, and when an order has been carried out."""

ORDERS_PER_SESSION = 50
"""Greatest number of orders in a session, which includes its order file again, nested, for each."""

ALWAYS_IMPORTED = ("qoslab.run.devices.ansible.worker_priority", "qoslab.run.devices.ansible.event_stream")
"""Modules that Ansible imports for any task."""

PROGRAMS = "bin"
"""Folder in the session's folder that is first in `PATH`."""

COLLECTIONS = "ansible_collections"
IOS_MODULES = (
    "qoslab.ios.device_config.restore",
    "qoslab.ios.refusals",
    "qoslab.ios.template_marks",
    "qoslab.run.devices.ansible.command_grammar",
    "qoslab.run.devices.ansible.intents",
    "ansible.plugins.httpapi",
    "ansible.plugins.netconf",
    f"{COLLECTIONS}.ansible.netcommon.plugins.become.enable",
    f"{COLLECTIONS}.cisco.ios.plugins.action.ios",
    f"{COLLECTIONS}.cisco.ios.plugins.modules.ios_command",
    f"{COLLECTIONS}.cisco.ios.plugins.modules.ios_config",
    f"{COLLECTIONS}.cisco.ios.plugins.modules.ios_facts",
    f"{COLLECTIONS}.cisco.ios.plugins.terminal.ios",
)
"""Modules for the tasks of the role `ios`, imported in advance while waiting for a lab."""

MAX_FORKS = 16
"""Number of routers on which a task runs in parallel; Ansible's default is five. Most of a task is waiting."""

START_SECONDS = 60.0
"""Time limit for the start of Ansible on a busy machine."""

INTENT_SECONDS = 300.0
"""Time limit for any intent on a slow router: Ansible's own timeouts, `ANSWER_S` per command, expire first."""


@dataclass(frozen=True)
class TaskResult:
    """Result of an intent on one router, or of a task that failed before the first."""

    intent: Intent
    host: str
    changed: bool
    failed: bool
    unreachable: bool
    result: Mapping[str, Any]
    """Details from the action plugin, or from Ansible."""

    @property
    def message(self) -> str:
        """Message of the router if it answered, else of Ansible."""
        return failure_message(self.result)


@dataclass(frozen=True)
class PlaybookOutcome:
    """Outcome of an order."""

    intents: tuple[Intent, ...]
    tasks: tuple[TaskResult, ...]
    commands: tuple[str, ...] = ()
    """Show commands of `verify`, in order."""
    output: str = ""
    """Output of Ansible."""

    @property
    def changed_routers(self) -> frozenset[str]:
        """Routers that were changed by applying or restoring a configuration."""
        return frozenset(task.host for task in self.tasks if task.changed and task.intent in ("apply", "restore"))

    @property
    def failures(self) -> tuple[TaskResult, ...]:
        """Tasks that failed or did not reach their router."""
        return tuple(task for task in self.tasks if task.failed or task.unreachable)

    def answers(self, host: str) -> dict[str, str]:
        """Return an IOS router's answers to `show running-config` and to the commands of `verify`, by command."""
        for task in self.tasks:
            if task.host == host and task.intent == "verify" and not task.failed and "stdout" in task.result:
                return dict(zip(("show running-config", *self.commands), map(str, task.result["stdout"]), strict=True))
        return {}

    def engine(self, host: str) -> dict[str, Any] | None:
        """Return the latest active configuration from the data plane of an engine router."""
        for task in reversed(self.tasks):
            if task.host == host and task.result.get("config") is not None:
                return dict(task.result["config"])
        return None

    def facts(self, host: str) -> dict[str, Any]:
        """Return the facts of an IOS router from `prepare`: model, version, image, serial number, hostname."""
        found: dict[str, Any] = {}
        for task in self.tasks:
            if task.host == host:
                for name, value in task.result.get("ansible_facts", {}).items():
                    if name.startswith("ansible_net_") and name != "ansible_net_config":
                        found[name.removeprefix("ansible_net_")] = value
        return found


class RouterError(DeviceError):
    """Router that refused something, differs from the request, or could not be reached."""

    def __init__(self, message: str, outcome: PlaybookOutcome, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.outcome = outcome


class UnreachableRouterError(RouterError, TransientFault):
    """Router that could not be reached, hung, or refused the login."""


_PROMPT = re.compile(r"\S+\(config[^)]*\)#|\S+[#>]")
_BYTES = re.compile(r"""(?:^|Task failed: )(b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*")$""")


def failure_message(result: Mapping[str, Any]) -> str:
    """Return the relevant part of a failed task's result.

    A refused line is returned with the whole screen: echo, caret, message, next prompt. The line, the caret under its
    faulty word, and the message are kept.
    """
    if result.get("rc"):
        return _program_failure(result)
    text = str(result.get("msg") or "")
    if "Traceback (most recent call last)" in text:
        # from a process of Ansible
        words = text.rstrip().splitlines()[-1]
        return words.partition("Error: ")[2] or words
    if quoted := _BYTES.search(text):
        # Ansible prints the router's output in Python syntax.
        text = ast.literal_eval(quoted[1]).decode(errors="replace")
    lines = [line.rstrip() for line in text.replace("\r", "").split("\n") if line.strip()]
    last = next((number for number in reversed(range(len(lines))) if REFUSAL_PATTERN.search(lines[number])), None)
    if last is None:
        return " ".join(line.strip() for line in lines)
    kept = [line for line in lines[max(0, last - 2) : last + 1] if not _PROMPT.fullmatch(line.strip())]
    prompt = lines[-1].strip() if _PROMPT.fullmatch(lines[-1].strip()) else ""
    return "\n".join(_caret_line(line, prompt) for line in kept)


def _program_failure(result: Mapping[str, Any]) -> str:
    """Return why a program on the router failed; `qos-router ctl` prints the data plane's refusal as JSON."""
    printed = str(result.get("stdout") or "")
    with contextlib.suppress(ValueError, LookupError, TypeError):
        return str(json.loads(printed)["error"]["message"])
    return str(result.get("stderr") or result.get("module_stderr") or printed or result.get("msg") or "").strip()


def _caret_line(line: str, prompt: str) -> str:
    """Return the line of a caret, shifted by the prompt before the refused line, which is not in the message."""
    column = line.find("^")
    return " " * (column - len(prompt)) + "^" if line.strip() == "^" and column >= len(prompt) else line


class AnsibleSession:
    """Ansible session with the routers of one inventory. A context manager; leaving it ends Ansible.

    `start` may be called early, even before the inventory is written, so that Ansible starts during other work;
    otherwise the first order starts it.
    """

    def __init__(
        self,
        inventory: Path,
        *,
        before: Path,
        check: Callable[[], None] | None = None,
        modules: Sequence[str] = IOS_MODULES,
    ) -> None:
        """`before` is the folder for the configurations from before the run.

        `check` is called periodically while an order is executed; an exception from it ends the order. `modules` are
        imported by Ansible in advance.
        """
        self._answer_s = ANSWER_S
        """Longest silence of any router, in seconds."""
        self._modules = tuple(modules)
        self._check = check
        self._inventory = inventory.resolve()
        self._before = before.resolve()
        self._playbooks = shipped_path("playbooks")
        self._helper = choose()
        self._scratch: Path | None = None
        self._thread: threading.Thread | None = None
        self._watch: subprocess.Popen[bytes] | None = None
        self._cancel = threading.Event()
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._orders = 0
        self._ready = False
        self._fault: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def note(self) -> str:
        """Return a note about this Ansible; empty if there is none."""
        return self._helper.note

    # Process

    def raise_time_limit(self, routers: Iterable[IosAccess]) -> None:
        """Raise the time limit for answers to that of the slowest of these routers."""
        self._answer_s = max(each.answer_s or ANSWER_S for each in routers)

    def start(self) -> None:
        """Start Ansible if it is not running; return at once."""
        if self._thread is not None and self._thread.is_alive():
            return
        require_extra("devices")
        self._discard()
        self._scratch = own_temporary_folder("ansible")
        self._before.mkdir(parents=True, exist_ok=True)
        os.mkfifo(self._scratch / "orders", 0o600)
        _write_low_priority_wrapper(self._scratch / PROGRAMS)
        self._cancel.clear()
        self._events = queue.Queue()
        self._orders, self._ready, self._fault = 0, False, None
        self._thread = threading.Thread(target=self._play, args=(self._scratch, self._events), name="ansible")
        self._thread.daemon = True
        self._thread.start()
        self._watch = subprocess.Popen(
            python_module_command("qoslab.run.devices.ansible.leftovers", str(self._scratch)),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _play(self, scratch: Path, events: queue.Queue[dict[str, Any] | None]) -> None:
        import ansible_runner  # Slow to load, and only needed here.

        def keep(event: dict[str, Any]) -> bool:
            events.put(event)
            return False

        try:
            ansible_runner.run(
                private_data_dir=str(scratch),
                project_dir=str(self._playbooks),
                playbook="session.yml",
                inventory=[str(self._inventory)],
                extravars={
                    "session_orders": str(scratch / "orders"),
                    "session_modules": [*ALWAYS_IMPORTED, *self._modules],
                },
                envvars=ansible_environment(scratch, self._playbooks, self._helper),
                settings={"pexpect_timeout": 0.1, "suppress_ansible_output": True},
                event_handler=keep,
                cancel_callback=self._cancel.is_set,
                suppress_env_files=True,
                quiet=True,
            )
        except BaseException as error:
            self._fault = error
        finally:
            events.put(None)

    def close(self) -> None:
        """End Ansible; connections to the routers close. This restores nothing."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            if self._ready and not self._cancel.is_set():
                with contextlib.suppress(QoslabError):
                    self._write({"intents": []})
                thread.join(2.0)
            if thread.is_alive():
                self._stop(thread)
        self._discard()

    def close_connections(self) -> None:
        """Close the connections to all routers; the next order opens new ones. No order may be in progress."""
        if self._scratch is not None:
            leftovers.end_connections(self._scratch)

    def cancel(self) -> None:
        """Stop the current order at once, for example after Ctrl-C; a later order starts Ansible again."""
        if self._thread is not None:
            self._stop(self._thread)
        self._discard()

    def _stop(self, thread: threading.Thread) -> None:
        """End Ansible in the middle of a task.

        ansible-runner kills only Ansible itself, and then waits 5 s for its terminal to close, which the process of the
        task also holds open.
        """
        self._cancel.set()
        assert self._scratch is not None
        leftovers.end_processes(self._scratch)
        thread.join(10.0)

    def _discard(self) -> None:
        self._thread = None
        if self._watch is not None:
            self._watch.kill()
            self._watch.wait()
            assert self._watch.stdin is not None
            self._watch.stdin.close()
            self._watch = None
        if self._scratch is not None:
            leftovers.end(self._scratch)
            self._scratch = None

    # Orders

    def execute(
        self,
        intents: Sequence[Intent],
        *,
        intended: Path | None = None,
        restore: Path | None = None,
        commands: Sequence[str] = (),
        keep: Path | None = None,
    ) -> PlaybookOutcome:
        """Execute `intents` in order on all routers of the inventory.

        `intended` is the folder with `NAME.ios` and `NAME.engine.json` for apply and verify; `restore` is the folder
        with `NAME.restore.ios` and with `NAME.pushed.ios`, which it undoes; `commands` are show commands whose answers
        verify returns; Ansible's output goes to a folder in `keep` that is named after the intents. Raise `RouterError`
        if a router refused, differs or was not reached; on the other routers later intents were executed nonetheless.
        On an interrupt, Ansible is stopped first. Raise `IosError` for text that Ansible could render as a template,
        before anything is sent.
        """
        if intended is not None and "apply" in intents:
            _refuse_templates(intended, "*.ios")
        if restore is not None and "restore" in intents:
            _refuse_templates(restore, "*.restore.ios")
        try:
            self._await_ready()
            self._write(
                {
                    "intents": list(intents),
                    "intended": str((intended or self._before).resolve()),
                    "restore": str((restore or self._before).resolve()),
                    "before": str(self._before),
                    "commands": list(commands),
                }
            )
            self._orders += 1
            self._ready = False
            results, output = self._collect(intents)
        except BaseException:
            self.cancel()
            raise
        outcome = PlaybookOutcome(tuple(intents), tuple(results), tuple(commands), output)
        if keep is not None:
            with convert_write_errors(keep):
                _save_outcome(keep, outcome)
        if outcome.failures:
            raise _explain(outcome, keep)
        return outcome

    def _await_ready(self) -> None:
        if self._orders >= ORDERS_PER_SESSION:
            self.close()
        self.start()
        deadline = time.monotonic() + START_SECONDS
        printed: list[str] = []
        while not self._ready:
            event = self._next_event(deadline, "to start")
            if event is None:
                raise self._exit_error(printed)
            printed.append(str(event.get("stdout", "")))
            started = _started_task(event)
            if started == INVENTORY_TASK:
                if not self._inventory.exists():
                    raise MachineError(f"the inventory {self._inventory} has not been written yet")
                self._write("inventory is written")
            self._ready = started == READY_TASK

    def _write(self, order: Mapping[str, Any] | str) -> None:
        """Write to the session's FIFO. Opening a FIFO for writing fails while it has no reader."""
        assert self._scratch is not None
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                descriptor = os.open(self._scratch / "orders", os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
            # No reader yet: either Ansible is about to open it, or it has ended.
            if self._thread is None or not self._thread.is_alive() or time.monotonic() > deadline:
                raise self._exit_error([])
            time.sleep(0.002)
        os.set_blocking(descriptor, True)
        with os.fdopen(descriptor, "w") as fifo:
            json.dump(order, fifo)

    def _collect(self, intents: Sequence[Intent]) -> tuple[list[TaskResult], str]:
        """Return the results of an order, and Ansible's output."""
        results: list[TaskResult] = []
        printed: list[str] = []
        deadline = time.monotonic() + INTENT_SECONDS * len(intents) * max(self._answer_s / ANSWER_S, 1.0)
        while True:
            event = self._next_event(deadline, f"to carry out {' and '.join(intents)}")
            if event is None:
                if not any(result.unreachable for result in results):
                    raise self._exit_error(printed)
                break
            if _started_task(event) == END_TASK:
                # The next order may be written at once: the FIFO takes it when Ansible opens it.
                self._ready = True
                break
            if text := str(event.get("stdout", "")):
                printed.append(text)
            results += _intent_results(event, intents[0])
        return results, "\n".join(printed) + "\n"

    def _next_event(self, deadline: float, what: str) -> dict[str, Any] | None:
        # Short waits, so that Ctrl-C is noticed between them on every platform.
        while True:
            try:
                event = self._events.get(timeout=0.5)
                if event is None and self._thread is not None:
                    self._thread.join()
                return event
            except queue.Empty:
                if self._check is not None:
                    self._check()
                if time.monotonic() > deadline:
                    hint = "Check whether the routers answer."
                    raise TransientFault(f"Ansible took too long {what}", hint=hint) from None

    def _exit_error(self, printed: Sequence[str]) -> QoslabError:
        if self._fault is not None:
            return TransientFault(f"ansible-runner failed: {self._fault}")
        text = "\n".join(part for part in printed if part).strip()
        return TransientFault(f"ansible-playbook ended unexpectedly{': ' + text if text else ''}")


def _write_low_priority_wrapper(folder: Path) -> None:
    """Create an `ansible-playbook` wrapper that starts the real one at lower priority.

    Only processes get the lower priority, not the thread that waits for them: if that thread held the interpreter's
    lock, all other threads would wait for it.
    """
    folder.mkdir()
    program = folder / "ansible-playbook"
    real = shlex.join(python_module_command("qoslab.run.devices.ansible.play"))
    behind = f'{shell_lower_priority()}exec nice -n {BACKGROUND_NICE} {real} "$@"\n'
    program.write_text(f"#!/bin/sh\n{behind}", encoding="utf-8")
    program.chmod(0o700)


def _refuse_templates(folder: Path, pattern: str) -> None:
    """Refuse configurations that Ansible could take for templates and execute; the roles do so too."""
    for file in sorted(folder.glob(pattern)):
        if mark := find_template_mark(file.read_text(encoding="utf-8")):
            raise IosError(f"{file.name}:{mark}", hint="Write the line without it.")


def ansible_environment(scratch: Path, playbooks: Path, helper: Helper) -> dict[str, str]:
    """Return the environment of `ansible-playbook`: qoslab's settings, all temporary files in `scratch`."""
    return {
        # This interpreter's ansible-playbook comes first, after its wrapper.
        "PATH": os.pathsep.join(
            [str(scratch / PROGRAMS), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
        ),
        "ANSIBLE_CONFIG": str(playbooks.parent / "ansible.cfg"),
        "ANSIBLE_ROLES_PATH": str(playbooks / "roles"),
        # Files left by killed processes are removed with the folder.
        "TMPDIR": str(scratch),
        "ANSIBLE_LOCAL_TEMP": str(scratch / "tmp"),
        "ANSIBLE_PERSISTENT_CONTROL_PATH_DIR": str(scratch / leftovers.CONNECTIONS),
        "ANSIBLE_FORCE_COLOR": "false",
        "ANSIBLE_NOCOLOR": "true",
        **UTF8,
        "ANSIBLE_DEPRECATION_WARNINGS": "false",
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_FORKS": str(MAX_FORKS),
        **helper.variables,
    }


def _started_task(event: Mapping[str, Any]) -> str | None:
    """Return the name of the task that the event starts; None if it starts none."""
    if event.get("event") != "playbook_on_task_start":
        return None
    name = event.get("event_data", {}).get("task")
    return None if name is None else str(name)


def _intent_results(event: Mapping[str, Any], first: Intent) -> list[TaskResult]:
    """Return the results of intents in an event; `first` is the intent of a failure before any was carried out."""
    kind = event.get("event")
    if kind not in ("runner_on_ok", "runner_on_failed", "runner_on_unreachable"):
        return []
    data = event["event_data"]
    host, result = str(data.get("host", "")), data.get("res") or {}
    found = [
        TaskResult(each["intent"], host, bool(each["changed"]), bool(each.get("failed")), False, each)
        for each in result.get("intents", ())
    ]
    if not found and kind != "runner_on_ok":
        found = [TaskResult(first, host, False, kind == "runner_on_failed", kind == "runner_on_unreachable", result)]
    return found


def _save_outcome(folder: Path, outcome: PlaybookOutcome) -> None:
    place = folder / "-".join(outcome.intents)
    place.mkdir(parents=True, exist_ok=True)
    (place / "rc").write_text(f"{2 if outcome.failures else 0}\n", encoding="utf-8")
    # A refused line, or a difference after restoring, may contain a password.
    (place / "stdout").write_text(KNOWN.mask(outcome.output), encoding="utf-8")


def _explain(outcome: PlaybookOutcome, keep: Path | None) -> RouterError:
    """Explain a failure: the router by name, its message, and the remedy."""
    failure = outcome.failures[0]
    place = f" Ansible's output is in {keep}." if keep is not None else ""
    text = failure.message
    # Messages of the role, not of the router.
    text_of_result = "\n".join(
        f"  {line}" for each in failure.result.get("differences", ()) for line in each.splitlines()
    )
    trouble = _connection_failure(text)
    if trouble is None and failure.unreachable:
        trouble = _UNREACHABLE
    proxy_error = _PROXY_ERROR.search(text)
    if proxy_error is not None:
        message = f"{failure.host}: {proxy_error['why']}"
        hint = "Check whether the router answers, and read the transcripts of its logins."
    elif trouble is not None:
        message, hint = f"{failure.host} {trouble[0]}: {text}", trouble[1]
    elif failure.intent == "verify" and text_of_result:
        message = f"{failure.host}: the running configuration differs from the pushed one:\n{text_of_result}"
        hint = "Check the lines that the router refused or changed, and whether the template is as intended."
    elif failure.intent == "verify":
        message = f"{failure.host} could not be read back:\n{text}"
        hint = "Check whether the router answers to show commands."
    elif failure.intent == "restore" and text_of_result:
        message = f"{failure.host} does not have its configuration from before the run:\n{text_of_result}"
        hint = "Restore it by hand; the earlier configuration is in the run folder."
    else:
        message = f"{failure.host} refused the configuration ({failure.intent}):\n{text}"
        hint = "Correct the template or its variables."
    others = len({task.host for task in outcome.failures}) - 1
    if others:
        message += f"\n({others} more routers failed.)"
    passes = trouble is not None if proxy_error is None else FailureKind(proxy_error["kind"]) in TRANSIENT_FAILURES
    kind = UnreachableRouterError if passes else RouterError
    return kind(message, outcome, hint=(hint + place).strip())


_PROXY_ERROR = re.compile(rf"^% Error: (?P<why>(?P<kind>{'|'.join(FailureKind)}): .*)$", re.MULTILINE)
"""Message of an access proxy about an unreachable router."""
_UNREACHABLE = ("cannot be reached", "Check its address and port in the inventory.")
_TROUBLES = (
    (r"elevate privilege", "refused the enable secret", "Check the enable secret in the inventory."),
    (r"authenticity of host", "has an SSH host key that is not known", "Log in once with ssh, and accept its key."),
    (r"[Aa]uthenticat|[Pp]ermission denied|[Aa]ccess denied", "refused the login", "Check user and password."),
    # After a wrong secret, Ansible may take the second `Password:` for an answer in progress.
    (r"timeout triggered", "did not answer in time", "Check the enable secret, and whether the router is busy."),
    # Both concern the process that holds the connection for Ansible's tasks.
    (
        r"[Uu]nable to decode JSON|[Uu]nable to connect to socket",
        "lost its connection to Ansible",
        "Find out why its process ended.",
    ),
    (r"ssh connection failed|[Ff]ailed to connect|[Cc]onnection refused|[Nn]o route to host|timed out", *_UNREACHABLE),
)
"""Messages of Ansible's connections: pattern, meaning, remedy."""


def _connection_failure(text: str) -> tuple[str, str] | None:
    if any(REFUSAL_PATTERN.search(line) for line in text.splitlines()):
        # The router answered: these are its words, quoted in the message.
        return None
    return next(((meaning, hint) for pattern, meaning, hint in _TROUBLES if re.search(pattern, text)), None)
