"""Priority of a process relative to the packets of a measurement.

Linux groups processes by session (`sched_autogroup`, sched(7)) and first divides processor time among the groups; a
nice value only has effect within its session. A process that leads a session, as all processes here do that start
without a terminal, would get as much time as all senders together, and delay them for whole time slices.
"""

from __future__ import annotations

import errno
import os
import platform
import threading
import time
from pathlib import Path

BACKGROUND_NICE = 5
"""Nice value of processes that must not delay packets: Ansible, the collector, command lines of virtual routers. It is
a third of the usual weight: next to four processes that are always busy, Ansible still starts within its time.
"""
IDLE_NICE = 19
"""Nice value of work that may wait until the machine is otherwise idle."""
GROUP = Path("/proc/self/autogroup")
"""File with the nice value of the session; it does not exist if the kernel does not group sessions."""
MIN_CHANGE_INTERVAL_S = 0.1
"""Minimum interval of changes to a group by ordinary users, on the whole machine."""
TRIES = 50


def processor_count() -> int:
    """Return the number of processors that this process may use, limited by a container or `taskset`."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def lower_priority(*, again: bool = True) -> None:
    """Lower the priority of this process, and of its session if it leads one. Child processes inherit the priority of
    the process.

    If another process has just changed a session, a separate thread retries if `again`.
    """
    # A process with lower priority, such as under `nice`, may not raise it.
    os.setpriority(os.PRIO_PROCESS, 0, max(BACKGROUND_NICE, os.getpriority(os.PRIO_PROCESS, 0)))
    if os.getsid(0) == os.getpid() and not _lower_session() and again:
        threading.Thread(target=_lower_session_later, name="priority", daemon=True).start()


def step_last() -> None:
    """Give this thread the lowest priority; processes that it starts inherit it. Only Linux has priorities of
    threads.
    """
    if platform.system() == "Linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), IDLE_NICE)


def _lower_session() -> bool:
    """Lower the priority of the session, and return False if it is worth another try."""
    try:
        GROUP.write_text(str(BACKGROUND_NICE), encoding="ascii")
    except OSError as error:
        return error.errno != errno.EAGAIN
    return True


def _lower_session_later() -> None:
    for _ in range(TRIES):
        time.sleep(MIN_CHANGE_INTERVAL_S)
        if _lower_session():
            return


def shell_lower_priority() -> str:
    """Return lines of sh that lower the priority of the session, for a shell under `nice`; they take 0.3 s at most."""
    return (
        "read -r _ _ _ _ _ session _ </proc/$$/stat\n"
        'if [ "$session" = $$ ]; then\n'
        "    for pause in 0.1 0.1 0.1 0; do\n"
        f"        {{ echo {BACKGROUND_NICE} >/proc/$$/autogroup; }} 2>/dev/null && break\n"
        "        sleep $pause\n"
        "    done\n"
        "fi\n"
    )
