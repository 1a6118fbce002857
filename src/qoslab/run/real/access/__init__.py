"""Access proxies: one per device, each a port of this machine with its own password, for Ansible and Unicon.

One process behind them (`proxy_process`) has the devices' secrets and logs in to them: by SSH, if required with old
algorithms, by telnet, through a jump host, on a console. It spaces logins, keeps transcripts without secrets, and
reports in its own words why a device refuses a login.

`methods` has the values, `proxies` is the interface for a run; `transport`, `login_dialogue` and `transcript` belong to
the process.
"""
