"""Imported by Ansible: task results reach ansible-runner through its terminal, and are not written to files.

The callback of ansible-runner writes each event, with all router answers, to a file and prints its position; the reader
of that output also accepts complete printed events.
"""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO


def print_complete_events(callback: Any) -> None:
    """Make the callback module print complete events."""
    context, encoder = callback.event_context, callback.AnsibleJSONEncoderLocal

    def dump_begin(terminal: TextIO) -> None:
        context.dump(terminal, json.loads(json.dumps(context.get_begin_dict(), cls=encoder)))

    context.dump_begin = dump_begin


for module in list(sys.modules.values()):
    if hasattr(module, "IsolatedFileWrite") and hasattr(module, "event_context"):
        print_complete_events(module)
