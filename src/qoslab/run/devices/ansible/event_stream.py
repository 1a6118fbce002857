"""Imported by Ansible itself: what its tasks return goes to ansible-runner by its terminal, and into no file.

ansible-runner's callback writes each event to a file, with all that a router has answered, and prints where; what reads
that takes an event that is printed whole just as well.
"""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO


def keep_out_of_files(callback: Any) -> None:
    """Let the callback module print complete events."""
    context, encoder = callback.event_context, callback.AnsibleJSONEncoderLocal

    def dump_begin(terminal: TextIO) -> None:
        context.dump(terminal, json.loads(json.dumps(context.get_begin_dict(), cls=encoder)))

    context.dump_begin = dump_begin


for module in list(sys.modules.values()):
    if hasattr(module, "IsolatedFileWrite") and hasattr(module, "event_context"):
        keep_out_of_files(module)
