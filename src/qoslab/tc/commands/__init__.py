"""Templates of tc(8) commands for routers whose data plane is the engine: parser, typed tree, and compilation.

    tc qdisc add dev Ethernet0 root cake bandwidth 20mbit

`parse` reads commands into `Commands`; `compile_commands` compiles them to the engine's configuration. Kinds of
queueing disciplines are modules of `kinds`, each with the parameters of tc's manual pages.
"""

from qoslab.tc.commands.command_parser import is_tc, parse
from qoslab.tc.commands.command_words import TcError
from qoslab.tc.commands.tree_compiler import CompiledTrees, compile_commands

__all__ = ["CompiledTrees", "TcError", "compile_commands", "is_tc", "parse"]
