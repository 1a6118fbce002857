"""Configuration and observation of routers: Ansible's session and inventory, the observer with Unicon and Genie."""
