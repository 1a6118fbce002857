"""`device.learn("ip_sla")`: the operations of a device, and what they have measured."""
