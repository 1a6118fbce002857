"""Output of routers, as pasted from a terminal → a topology, policies and an experiment.

`printed` splits files into the outputs of show commands, `show` and `ports` read them, `chassis` selects the models,
`network` joins the devices, `templates` writes the policies, `load` the traffic, and `ignored` lists the other lines.
"""

from qoslab.exchange.routers.convert import Choices, import_routers

__all__ = ["Choices", "import_routers"]
