"""What ends a cell because the user wants the run to end."""


class Interrupted(KeyboardInterrupt):
    """The user wants the run to end; raised in the thread of the cell."""
