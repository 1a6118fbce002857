"""Objects of the kernel's traffic control, as tc(8) configures them: qdiscs, classes, filters and their actions.

Rates are b/s of the bytes that the kernel counts: on Ethernet the IP packet with its 14 bytes of header on output, the
IP packet alone on input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Hook = Literal["ingress", "egress"]
Protocol = Literal["all", "ip", "ipv6", "arp"]
ROOT = "root"


@dataclass(frozen=True, slots=True)
class Origin:
    """The part of a configuration that produced an object."""

    interface: str
    """IOS name."""
    direction: str = ""
    policy: str = ""
    path: tuple[str, ...] = ()
    """Classes from the outermost one."""

    def __str__(self) -> str:
        parts = [f"{self.interface} {self.direction}".strip()]
        if self.policy:
            parts.append(f"policy-map {self.policy}")
        if self.path:
            parts.append(f"class {' / '.join(self.path)}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Qdisc:
    """A queueing discipline. `options` are pairs of a word and a number, or a word and None for a flag."""

    device: str
    handle: str
    parent: str
    """`root`, a class, or `clsact`."""
    kind: str
    options: tuple[tuple[str, int | float | None], ...]
    origin: Origin

    def command(self, verb: str = "add") -> str:
        """Return the tc command without `tc`."""
        if self.kind == "clsact":
            return f"qdisc {verb} dev {self.device} clsact"
        parent = ROOT if self.parent == ROOT else f"parent {self.parent}"
        words = " ".join(_option_words(self.kind, name, value) for name, value in self.options)
        return (
            f"qdisc {verb} dev {self.device} {parent} handle {self.handle} "
            f"{_size_table_words(words)}{self.kind}{_words_after(words)}"
        )


def _option_words(kind: str, name: str, value: float | None) -> str:
    if value is None:
        return name
    if name == "default":
        return f"default 0x{value:x}"
    return f"{name} {_format_rate(int(value))}" if name == "bandwidth" else f"{name} {value}"


def _size_table_words(words: str) -> str:
    """Return the size table, which precedes the kind."""
    return f"stab {words.split('stab ')[1]} " if "stab " in words else ""


def _words_after(words: str) -> str:
    own = words.split("stab ")[0].strip()
    return f" {own}" if own else ""


@dataclass(frozen=True, slots=True)
class HtbClass:
    """A class of HTB (tc-htb(8))."""

    device: str
    parent: str
    classid: str
    rate_bps: int
    ceil_bps: int
    burst_bytes: int
    cburst_bytes: int
    priority: int
    quantum_bytes: int
    origin: Origin
    overhead_bytes: int = 0
    mpu_bytes: int = 0
    cells: bool = False
    """True if the length of a packet is that of its ATM cells."""

    def command(self, verb: str = "add") -> str:
        """Return the tc command without `tc`."""
        words = [
            f"class {verb} dev {self.device} parent {self.parent} classid {self.classid} htb",
            f"rate {_format_rate(self.rate_bps)} ceil {_format_rate(self.ceil_bps)}",
            f"burst {self.burst_bytes} cburst {self.cburst_bytes} prio {self.priority} quantum {self.quantum_bytes}",
        ]
        if self.overhead_bytes:
            words.append(f"overhead {self.overhead_bytes}")
        if self.mpu_bytes:
            words.append(f"mpu {self.mpu_bytes}")
        if self.cells:
            words.append("linklayer atm")
        return " ".join(words)


def _format_rate(rate_bps: int) -> str:
    """Return a rate with the largest decimal unit in which it is an integer."""
    for factor, unit in ((10**9, "gbit"), (10**6, "mbit"), (10**3, "kbit")):
        if rate_bps >= factor and rate_bps % factor == 0:
            return f"{rate_bps // factor}{unit}"
    return f"{rate_bps}bit"


@dataclass(frozen=True, slots=True)
class Control:
    """Final action of a filter: `pass`, `drop`, or `goto` another chain."""

    chain: int | None = None
    """The chain for `goto`."""
    drop: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of actions that it needs."""
        return ("gact",)

    def words(self) -> str:
        """Return the words behind `action`."""
        return self.verdict()

    def verdict(self) -> str:
        """Return the word for a policer's verdict."""
        return "drop" if self.drop else "pass" if self.chain is None else f"goto chain {self.chain}"


@dataclass(frozen=True, slots=True)
class Police:
    """A token bucket (act_police). Packets that conform go on to the next action."""

    rate_bps: int
    burst_bytes: int
    overhead_bytes: int
    exceed: Control | None
    """Action on packets that exceed; None to continue as for packets that conform."""
    conform_drop: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of actions that it needs."""
        return ("police",)

    def words(self) -> str:
        """Return the words behind `action`."""
        overhead = f" overhead {self.overhead_bytes}" if self.overhead_bytes else ""
        exceed = "pipe" if self.exceed is None else self.exceed.verdict()
        conform = "drop" if self.conform_drop else "pipe"
        # `goto chain` needs blanks around the slash.
        slash = " / " if exceed.startswith("goto") else "/"
        return (
            f"police rate {_format_rate(self.rate_bps)} burst {self.burst_bytes}{overhead} "
            f"conform-exceed {exceed}{slash}{conform}"
        )


@dataclass(frozen=True, slots=True)
class SetField:
    """A new value for some bits of the differentiated services field."""

    network: Literal["ip", "ipv6"]
    value: int
    mask: int

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of actions that it needs."""
        return ("pedit", "csum") if self.network == "ip" else ("pedit",)

    def words(self) -> str:
        """Return the words behind `action`; IPv4 needs a new header checksum."""
        field = "ip dsfield" if self.network == "ip" else "ip6 traffic_class"
        checksum = " pipe action csum ip4h" if self.network == "ip" else ""
        return f"pedit ex munge {field} set 0x{self.value:x} retain 0x{self.mask:x}{checksum} pipe"


@dataclass(frozen=True, slots=True)
class SetClass:
    """The HTB class of a packet, as its priority."""

    classid: str

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of actions that it needs."""
        return ("skbedit",)

    def words(self) -> str:
        """Return the words behind `action`."""
        return f"skbedit priority {self.classid} pipe"


@dataclass(frozen=True, slots=True)
class SetMark:
    """Bits of a packet's mark."""

    value: int
    mask: int

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of actions that it needs."""
        return ("skbedit",)

    def words(self) -> str:
        """Return the words behind `action`."""
        return f"skbedit mark 0x{self.value:x}/0x{self.mask:x} pipe"


Action = Control | Police | SetField | SetClass | SetMark


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter in a chain of clsact. Lower numbers of `order` are tried first."""

    device: str
    hook: Hook
    chain: int
    order: int
    protocol: Protocol
    match: str
    """Classifier and its words, such as `flower ip_tos 0xb8/0xfc` or `matchall`."""
    actions: tuple[Action, ...]
    origin: Origin

    def command(self, verb: str = "add") -> str:
        """Return the tc command without `tc`."""
        where = f"filter {verb} dev {self.device} {self.hook} chain {self.chain} pref {self.order}"
        actions = " ".join(f"action {each.words()}" for each in self.actions)
        return f"{where} protocol {self.protocol} {self.match} {actions}"


TcObject = Qdisc | HtbClass | Filter
