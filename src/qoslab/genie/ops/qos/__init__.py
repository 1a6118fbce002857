"""`device.learn("qos")`: classes, policies, if they are attached, and what they have counted."""
