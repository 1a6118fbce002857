"""Run lock of routers: an alias in the running configuration that names the run.

It is entered after the rollback timers have started, and removed when the router is restored; it is never saved. If a
run is killed, the lock remains, like the run's configuration, and `lab rescue` removes both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from qoslab.errors import DeviceError, UserError
from qoslab.ios.device_config.restore import MARK
from qoslab.ios.refusals import find_refusal
from qoslab.model.units import Duration
from qoslab.run.devices.pushed_routers import RollbackGuard
from qoslab.run.real.access.rollback_timer import Ask

HINT = (
    "Wait for it to finish. If it crashed, restore the router: `qoslab lab rescue` on the machine that started it, "
    f"or by hand, and `no {MARK}` last."
)

UNLOCK_LINES = ("configure terminal", f"no {MARK}", "end")
"""Lines that remove a run lock."""


def lock_lines(who: str) -> tuple[str, ...]:
    """Return the lines that enter a run lock."""
    return "configure terminal", f"{MARK} {who}", "end"


def lock_owner(ask: Ask, router: str) -> str:
    """Return the owner of a router's run lock; empty if there is none."""
    (shown,) = ask(router, f"show running-config | include ^{MARK}")
    return find_lock(shown)


def find_lock(running: str) -> str:
    """Return the owner of the run lock in a running configuration; empty if there is none."""
    found = [line for line in running.splitlines() if line.startswith(f"{MARK} ")]
    return found[0].removeprefix(MARK).strip() if found else ""


def refuse_locked_routers(ask: Ask, routers: Iterable[str], own: str = "") -> Mapping[str, str]:
    """Return the owner of each router's run lock. Raise `UserError` with all locks of runs other than `own`."""
    whose = {router: lock_owner(ask, router) for router in routers}
    locked = [f"{router} is locked by another run: {who}" for router, who in whose.items() if who not in ("", own)]
    if locked:
        raise UserError("\n".join(locked), hint=HINT)
    return whose


def remove_lock(ask: Ask, router: str, who: str) -> None:
    """Remove this run lock; leave the lock of another run."""
    if lock_owner(ask, router) == who:
        ask(router, *UNLOCK_LINES)


class RunLocks:
    """Rollback timers together with the run locks of the routers."""

    def __init__(
        self,
        inner: RollbackGuard,
        ask: Ask,
        routers: Iterable[str],
        who: str,
        keep: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`who` is the name in the lock; `keep` receives it before it is entered anywhere."""
        self._inner = inner
        self._ask = ask
        self._routers = list(routers)
        self._who = who
        self._keep = keep
        self.marked: list[str] = []
        """Routers that carry it."""

    def arm(self, traffic: Duration) -> None:
        """See `Guard`. Raise `UserError` if a router now has the lock of another run."""
        whose = refuse_locked_routers(self._ask, self._routers, self._who)
        self._inner.arm(traffic)
        if not self.marked:
            self._keep(self._who)
        for router in self._routers:
            # A router that has restarted has lost its lock.
            if whose[router] != self._who:
                self._enter(router)

    def _enter(self, router: str) -> None:
        answers = self._ask(router, *lock_lines(self._who))
        if refused := next(filter(None, map(find_refusal, answers)), None):
            raise DeviceError(f"{router} refuses the run lock: {refused}")
        if router not in self.marked:
            self.marked.append(router)
        # If two runs enter their locks at once, one of them reads the other's.
        refuse_locked_routers(self._ask, [router], self._who)

    def disarm(self) -> None:
        """See `Guard`. The lock is removed last: another run could otherwise start, and its timer be stopped here."""
        self._inner.disarm()
        for router in list(self.marked):
            remove_lock(self._ask, router, self._who)
            self.marked.remove(router)
