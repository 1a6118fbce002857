"""Priority of a process next to packets of a measurement.

Linux groups processes by session (`sched_autogroup`, sched(7)) and shares processors out between the groups first: a
nice value counts within its session only. What leads a session of its own, as everything here does that starts behind a
terminal of its own, would get as much as all senders together, and keep them waiting for whole time slices.
"""

from __future__ import annotations

import errno
import os
import platform
import threading
import time
from pathlib import Path

BEHIND_TRAFFIC = 5
"""The nice value of what must not delay packets: Ansible, the collector, command lines of virtual routers. A third of
the usual weight: next to four processes that are always busy Ansible still starts within its time."""
LEAST_PRIORITY = 19
"""The nice value of what may wait until nothing else wants the machine."""
GROUP = Path("/proc/self/autogroup")
"""The nice value of the session; there is none if the kernel does not group sessions."""
AGAIN_S = 0.1
"""The kernel lets ordinary users change a group so often, on the whole machine."""
TRIES = 50


def processors() -> int:
    """Return the processors that this process may use within a container or `taskset`; all without such limits."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def step_behind_traffic(*, again: bool = True) -> None:
    """Give this process, and its session where it leads one, a lower priority; what it starts inherits the former.

    Where somebody else has just done so, a thread of its own tries `again`.
    """
    # Who has less already, as under `nice`, may not take more.
    os.setpriority(os.PRIO_PROCESS, 0, max(BEHIND_TRAFFIC, os.getpriority(os.PRIO_PROCESS, 0)))
    if os.getsid(0) == os.getpid() and not _lower_group() and again:
        threading.Thread(target=_keep_trying, name="priority", daemon=True).start()


def step_last() -> None:
    """Give this thread what all others leave; processes that it starts inherit that. Only Linux' threads have any."""
    if platform.system() == "Linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LEAST_PRIORITY)


def _lower_group() -> bool:
    """False if it is worth another try."""
    try:
        GROUP.write_text(str(BEHIND_TRAFFIC), encoding="ascii")
    except OSError as error:
        return error.errno != errno.EAGAIN
    return True


def _keep_trying() -> None:
    for _ in range(TRIES):
        time.sleep(AGAIN_S)
        if _lower_group():
            return


def shell_step_behind_traffic() -> str:
    """The same of the session as lines of sh, for what the shell becomes under `nice`; takes 0.3 s at most."""
    return (
        "read -r _ _ _ _ _ session _ </proc/$$/stat\n"
        'if [ "$session" = $$ ]; then\n'
        "    for pause in 0.1 0.1 0.1 0; do\n"
        f"        {{ echo {BEHIND_TRAFFIC} >/proc/$$/autogroup; }} 2>/dev/null && break\n"
        "        sleep $pause\n"
        "    done\n"
        "fi\n"
    )
