"""Application of a plan to the kernel: checked before the first change, as a difference, read back, and undone.

All of it happens in the network namespace of this process, and on the devices of the plan only.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from qoslab.errors import DeviceError, MachineError, UserError
from qoslab.tc.device_state import Key, State, Value, differences, planned, seen, title
from qoslab.tc.kernel_kinds import probe_machine
from qoslab.tc.objects import Filter, TcObject
from qoslab.tc.router_plan import InterfacePlan, Plan, kinds_of

TIMEOUT_S = 60.0
FAILED = re.compile(r"Command failed -:(\d+)")
UNKNOWN = re.compile(r"kind is unknown|No such file or directory|Failed to load TC action module|Unknown filter")
"""Messages of tc if the kernel lacks a kind."""
NOISE = re.compile(r"^(We have an error talking to the kernel|Command failed -:\d+|RTNETLINK answers: )", re.MULTILINE)
FIXED = ("kind", "parent", "default", "stab overhead", "divisor")
"""Parameters of qdiscs and classes that the kernel cannot change."""
LineOf = Callable[[TcObject], str]
"""The line of a template that an object comes from, such as `wan.ios.j2:12`; empty if it is not known."""


@dataclass(frozen=True, slots=True)
class Step:
    """A tc command and the object of the plan that it is for; None if it removes something."""

    command: str
    object: TcObject | None


def no_line(_: TcObject) -> str:
    """Return no line."""
    return ""


def dry_run(plan: Plan, line_of: LineOf = no_line) -> None:
    """Add the plan to devices of the same names in an empty network namespace, which ends with it.

    Raise UserError with tc's words if the kernel lacks a kind or refuses a parameter, and MachineError without the
    permission for a namespace. The real devices do not change.
    """
    devices = [each.port.device for each in plan.interfaces]
    steps = [Step(each.command(), each) for interface in plan.interfaces for each in _ordered(interface.objects)]
    # A name longer than a pair's leaves no room for that of its other end.
    links = "".join(f"ip link add name {device} type veth peer name qoslab-{n}\n" for n, device in enumerate(devices))
    script = f"set -e\n{links}exec tc -batch -\n"
    own = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    _run([*own, "sh", "-c", script], steps, line_of)


def apply(plan: Plan, *, line_of: LineOf = no_line) -> Applied:
    """Check a plan, apply it and read it back; the result restores the devices.

    Raise UserError before the first change if the kernel cannot carry it out or a device has qdiscs of its own, and
    DeviceError if the kernel shows something else afterwards; the devices are restored then.
    """
    plan.check()
    dry_run(plan, line_of)
    for each in plan.interfaces:
        check_free(each.port.device)
    applied = Applied(plan, line_of)
    try:
        applied.change(plan)
    except BaseException:
        applied.restore()
        raise
    return applied


def check_free(device: str) -> None:
    """Raise UserError if a device has other qdiscs than the kernel's default ones."""
    state = seen(device)
    if state:
        found = ", ".join(f"{value['kind']} {key[1]}" for key, value in state.items() if key[0] == "qdisc")
        raise UserError(
            f"{device}: found the qdiscs {found}, expected the kernel's default",
            hint=f"save and remove them: tc qdisc del dev {device} root; tc qdisc del dev {device} clsact",
        )


@dataclass
class Applied:
    """A plan on the kernel. As a context manager it restores the devices at the end."""

    plan: Plan
    line_of: LineOf = no_line
    devices: set[str] = field(default_factory=set)
    """Devices that were changed."""

    def change(self, plan: Plan) -> list[str]:
        """Change to another plan with the commands for the difference alone; return them.

        Raise UserError with tc's words, and DeviceError if the kernel shows something else afterwards.
        """
        plan.check()
        gone = self.devices - {each.port.device for each in plan.interfaces}
        commands = []
        for device in sorted(gone):
            self._restore(device)
        for interface in plan.interfaces:
            self.devices.add(interface.port.device)
            steps = steps_to(interface, seen(interface.port.device))
            _run(["tc", "-batch", "-"], steps, self.line_of)
            commands += [step.command for step in steps]
        self.plan = plan
        self.verify()
        return commands

    def verify(self) -> None:
        """Raise DeviceError if the kernel does not show the plan."""
        for interface in self.plan.interfaces:
            device = interface.port.device
            found = differences(planned(interface.objects), seen(device))
            if found:
                lines = "\n".join(f"  {title(key)}: {text}" for key, text in found.items())
                raise DeviceError(f"{device}: the kernel shows something else than the plan\n{lines}")

    def restore(self) -> None:
        """Remove the plan; the kernel puts its default qdiscs back. Raise DeviceError if something stays."""
        for device in sorted(self.devices):
            self._restore(device)
        self.devices.clear()

    def _restore(self, device: str) -> None:
        state = seen(device)
        steps = []
        if ("qdisc", "ffff:") in state:
            steps.append(Step(f"qdisc del dev {device} clsact", None))
        if any(key[0] == "qdisc" and value.get("parent") == "root" for key, value in state.items()):
            steps.append(Step(f"qdisc del dev {device} root", None))
        _run(["tc", "-batch", "-"], steps, self.line_of)
        left = seen(device)
        if left:
            raise DeviceError(f"{device}: not restored, the kernel still has {', '.join(map(title, left))}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()


def _ordered(objects: Iterable[TcObject]) -> list[TcObject]:
    """Return objects in an order in which no packet meets a chain without filters: chain 0 is last."""
    found = list(objects)
    return [
        *(each for each in found if not isinstance(each, Filter)),
        *(each for each in found if isinstance(each, Filter) and each.chain),
        *(each for each in found if isinstance(each, Filter) and not each.chain),
    ]


def steps_to(interface: InterfacePlan, state: State) -> list[Step]:
    """Return the commands from a device's state to a plan: none if they are equal."""
    device, wanted = interface.port.device, planned(interface.objects)
    objects: dict[Key, TcObject] = {key: each for each in interface.objects for key in planned((each,))}
    differing = differences(wanted, state)
    steps: list[Step] = []
    if _tree_differs(differing, wanted, state):
        if any(value.get("parent") == "root" for key, value in state.items() if key[0] == "qdisc"):
            steps.append(Step(f"qdisc del dev {device} root", None))
        state = {key: value for key, value in state.items() if key[0] == "filter" or key == ("qdisc", "ffff:")}
        differing = differences(wanted, state)
    if ("qdisc", "ffff:") in state and ("qdisc", "ffff:") not in wanted:
        steps.append(Step(f"qdisc del dev {device} clsact", None))
        differing = {key: text for key, text in differing.items() if key[0] != "filter" and key[1] != "ffff:"}
    for key in differing:
        if key[0] == "filter" and key in state:
            steps.append(Step(f"filter del dev {device} {key[1]} chain {key[2]} pref {key[3]}", None))
    changed = [objects[key] for key in differing if key in objects]
    verbs = {key: "add" if key[0] == "filter" or key not in state else "change" for key in objects}
    for key in differing:
        if _is_leaf(key, state) and key in wanted and _fixed_differs(wanted[key], state[key]):
            steps.append(Step(f"qdisc del dev {device} parent {state[key]['parent']}", None))
            verbs[key] = "add"
    keys = {id(each): key for key, each in objects.items()}
    steps += [Step(each.command(verbs[keys[id(each)]]), each) for each in _ordered(changed)]
    return steps


def _is_leaf(key: Key, state: State) -> bool:
    """Return whether the kernel has a qdisc that is not the root one."""
    return key[0] == "qdisc" and key in state and state[key].get("parent", "root") != "root"


def _fixed_differs(wanted: Value, found: Value) -> bool:
    return any(wanted.get(name) != found.get(name) for name in FIXED)


def _tree_differs(differing: dict[Key, str], wanted: State, state: State) -> bool:
    """Return whether qdiscs or classes differ in more than parameters: the tree is made again then."""
    for key in differing:
        if key[0] == "filter" or key == ("qdisc", "ffff:"):
            continue
        if (key in wanted) != (key in state):
            return any(one[0] in ("class", "qdisc") and one[1] != "ffff:" for one in state)
        if not _is_leaf(key, state) and _fixed_differs(wanted[key], state[key]):
            return True
    return False


def _run(argv: Sequence[str], steps: Sequence[Step], line_of: LineOf) -> None:
    """Run commands by `tc -batch`. Raise UserError with tc's words and the command that failed."""
    if not steps:
        return
    text = "".join(f"{step.command}\n" for step in steps)
    try:
        done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError as error:
        raise MachineError(f"found no program {error.filename}", hint="install iproute2 and util-linux") from None
    except subprocess.TimeoutExpired:
        raise MachineError(f"{' '.join(argv[:1])}: no end after {TIMEOUT_S:g} s") from None
    if done.returncode == 0:
        return
    found = FAILED.search(done.stderr)
    if found is None:
        hint = "run as root, or with `unshare --user --map-root-user`" if "ermission" in done.stderr else ""
        raise MachineError(f"{argv[0]}: {_words(done.stderr) or f'exit status {done.returncode}'}", hint=hint)
    step = steps[int(found[1]) - 1]
    raise UserError(_failure(step, done.stderr, line_of), hint=_hint(step, done.stderr))


def _words(stderr: str) -> str:
    """Return what tc says, without the words that it always says."""
    lines = [NOISE.sub("", line).strip() for line in stderr.splitlines()]
    return "; ".join(line for line in lines if line)


def _failure(step: Step, stderr: str, line_of: LineOf) -> str:
    place = "" if step.object is None else f"{step.object.origin}: "
    line = "" if step.object is None else line_of(step.object)
    return f"{f'{line}: ' if line else ''}{place}the kernel refused `tc {step.command}`: {_words(stderr)}"


def _hint(step: Step, stderr: str) -> str:
    """Return the kinds that the kernel lacks; of comparisons, which cannot be tried alone, those that it needs."""
    if step.object is None or not UNKNOWN.search(stderr):
        return ""
    needed = kinds_of(step.object)
    by_what = {what: [kind for one, kind in sorted(needed) if one == what] for what in ("qdisc", "filter", "action")}
    lacking = probe_machine().missing(by_what["qdisc"], by_what["filter"], by_what["action"])
    if lacking:
        return f"the kernel lacks {', '.join(lacking)}"
    ematches = [f"{kind} (module em_{kind})" for what, kind in sorted(needed) if what == "ematch"]
    return f"the kernel may lack the ematch {', '.join(ematches)}" if ematches else ""
