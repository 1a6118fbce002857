"""The program `qoslab`, also `python -m qoslab`."""

from __future__ import annotations

import sys


def main() -> int:
    """The command line (`qoslab.cli`); what keeps it from being loaded is told in a line, as later."""
    # The statuses are those of `qoslab.errors`, which may be what cannot be read.
    try:
        from qoslab.cli import main as command_line
    except KeyboardInterrupt:
        print("qoslab: interrupted", file=sys.stderr)
        return 130
    except (OSError, MemoryError) as error:
        print(f"qoslab: its own files cannot be read: {str(error) or 'there is no memory'}", file=sys.stderr)
        return 2
    return command_line()


if __name__ == "__main__":
    sys.exit(main())
