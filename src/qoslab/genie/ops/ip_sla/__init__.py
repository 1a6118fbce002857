"""`device.learn("ip_sla")`: the IP SLA operations of a device, and their measurements."""
