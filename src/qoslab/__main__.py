"""`python -m qoslab`: the command line."""

import sys

from qoslab.cli import main

if __name__ == "__main__":
    sys.exit(main())
