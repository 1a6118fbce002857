"""Conversion of pasted router output to a topology, policies and an experiment.

`terminal_text` splits files into the outputs of show commands, `show_values` and `configured_interfaces` parse them,
`chassis` selects the models, `network` connects the devices, `policy_template` writes the policies, `load` the traffic,
and `ignored` lists the other lines.
"""

from qoslab.exchange.routers.convert import ImportChoices, import_routers

__all__ = ["ImportChoices", "import_routers"]
