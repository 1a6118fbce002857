"""Exec commands: `ExecSession` is one login, `EXEC` the table of its commands.

The modules here and `catalyst.exec` register their commands with `EXEC` when they are imported.
"""

from qoslab.ios.exec import applets as applets
from qoslab.ios.exec import automation_tools as automation_tools
from qoslab.ios.exec import catalyst as catalyst
from qoslab.ios.exec import configuration as configuration
from qoslab.ios.exec import flash_files as flash_files
from qoslab.ios.exec import ip_sla as ip_sla
from qoslab.ios.exec import ping as ping
from qoslab.ios.exec import policy as policy
from qoslab.ios.exec import reload as reload
from qoslab.ios.exec import rollback as rollback
from qoslab.ios.exec import services as services
from qoslab.ios.exec import show as show
from qoslab.ios.exec import system as system
from qoslab.ios.exec import tcl as tcl
from qoslab.ios.login import EXEC as EXEC
from qoslab.ios.login import ExecSession as ExecSession
