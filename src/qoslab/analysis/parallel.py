"""Reading of a run's cells by several processes.

`python -m qoslab.analysis.parallel DESCRIPTOR` is one of these processes.

Reading a cell takes some tenths of a second on one processor, which adds up for a sweep of hundreds. A helper receives
the wanted metrics and then cells over a socket pair, and ends when the other end is closed. It is started as a separate
program, not with `multiprocessing`, which would run the calling script of a user of `qoslab.api` a second time.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any

from qoslab.analysis import Outcome, Readings, analyse
from qoslab.analysis.readings import MisfitError
from qoslab.results import CellFiles, RunFolder
from qoslab.system.priority import processor_count
from qoslab.system.programs import python_module_command

FEWEST = 8
"""Number of cells for which a helper is started, since its start takes as long as reading some cells."""
END_S = 30.0
"""Time limit in seconds for the end of a helper, which may have to finish one cell."""


def analyse_by_helpers(folder: RunFolder, readings: Readings | None = None) -> Outcome:
    """Analyse as `qoslab.analysis.analyse` does, with all processors that this process may use."""
    return analyse(folder, readings, read)


def read(readings: Readings, cells: Sequence[CellFiles], most: int | None = None) -> None:
    """Read all cells with at most `most` helpers, or with one for each additional processor if it is None.

    Cells that a helper fails to read are left unread, and so are cells with records of another cell: reading them later
    raises the error.
    """
    left = deque(cell for cell in cells if readings.is_unread(cell))
    spare = processor_count() - 1 if most is None else most
    helpers = min(spare, len(left) // FEWEST)
    if helpers < 1:
        return
    threads = [threading.Thread(target=_have_read, args=(readings, left), daemon=True) for _ in range(helpers)]
    for thread in threads:
        thread.start()
    try:
        for cell in _take_remaining(left):
            with suppress(MisfitError):
                readings.cell_content(cell)
    finally:
        # The helpers stop if reading was interrupted, or ended by a cell's error.
        left.clear()
    for thread in threads:
        thread.join()


def _take_remaining(left: deque[CellFiles]) -> Iterator[CellFiles]:
    """Yield the remaining cells one by one, while other threads take some as well."""
    with suppress(IndexError):
        while True:
            yield left.popleft()


def _have_read(readings: Readings, left: deque[CellFiles]) -> None:
    """Let one helper read the remaining cells until it dies; the main process then reads its cell."""
    with suppress(EOFError, OSError), _helper() as connection:
        connection.send(readings.reading_arguments)
        for cell in _take_remaining(left):
            connection.send((cell.path, cell.identity))
            if (answer := connection.recv()) is not None:
                readings.take(cell, *answer)


@contextmanager
def _helper() -> Iterator[Connection[Any, Any]]:
    """Start a helper; after the block it has ended."""
    ours, theirs = Pipe()
    with ours:
        with theirs:
            # A separate session: Ctrl-C reaches the main process only, which ends the helper.
            process = subprocess.Popen(
                python_module_command("qoslab.analysis.parallel", str(theirs.fileno())),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        try:
            yield ours
        finally:
            ours.close()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def main(descriptor: int) -> None:
    """Read the received cells until the other end is closed."""
    connection: Connection[Any, Any] = Connection(descriptor)
    with suppress(EOFError, OSError):
        wanted, captures = connection.recv()
        readings = Readings(wanted, captures=captures)
        while True:
            cell, answer = CellFiles(*connection.recv()), None
            seal = cell.seal
            # Errors are reported by the process that shows the result, when it meets the same one.
            with suppress(Exception):
                answer = (seal, readings.cell_content(cell))
            connection.send(answer)
            readings.forget(cell)


if __name__ == "__main__":
    main(int(sys.argv[1]))
