"""Worker process of `qoslab.run.cluster.pool`: `python -m qoslab.run.cluster.pool_worker DESCRIPTOR`.

It reads cells from the connection on that descriptor and writes the outcome of each, until the other end is closed.
Then it gives up the running cell and ends its lab.
"""

from __future__ import annotations

import queue
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

from qoslab.run.cluster import remote_worker as cluster_worker
from qoslab.run.events import RunInterrupted


def main(descriptor: int) -> None:
    """Run cells until the connection is closed."""
    connection: Connection[dict[str, Any], dict[str, Any]] = Connection(descriptor)
    tasks: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()

    def read() -> None:
        # A separate thread detects the end of the run at once, for any cause.
        try:
            while True:
                tasks.put(connection.recv())
        except (EOFError, OSError):
            cluster_worker.interrupt()
            tasks.put(None)

    threading.Thread(target=read, daemon=True).start()
    while (task := tasks.get()) is not None:
        try:
            reply = cluster_worker.run_cell(task)
        except RunInterrupted:
            return
        except Exception as error:
            reply = {"failure": f"its worker failed: {type(error).__name__}: {error}"}
        try:
            connection.send(reply)
        except OSError:
            return  # The receiver is gone.


if __name__ == "__main__":
    main(int(sys.argv[1]))
