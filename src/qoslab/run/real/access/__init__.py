"""A proxy in front of each device: a port of this machine, with its own password, for Ansible and Unicon.

One process behind it (`process`) has the devices' secrets and logs in to them: by SSH, with algorithms of their age
where that is asked for, by telnet, through a jump host, on a console. It lets logins follow each other slowly, keeps
transcripts without secrets, and says in its own words why a device lets nobody in.

`ways` has the values, `client` is what a run uses; `reach`, `login`, `transcript` and `process` are of the process.
"""
