"""Keep requesters: people outside the desk for whom tickets are opened, each with one or several mail addresses.

Begin with `requesters.py`. A requester's id has a form that no user id has, so that a requester is never a member.
"""
