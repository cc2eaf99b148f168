"""Ports of loopback: whether one can be listened at, and a free one.

Django is not imported here: the test suite starts its engine before ``django.setup()``.
"""

from __future__ import annotations

import secrets
import socket

LOOPBACK = "127.0.0.1"
_OWN_PORTS = range(20_000, 32_000)


def port_obstacle(port: int) -> str | None:
    """Return why nothing can listen on this port of loopback ("8000 is taken"), or None if something can."""
    with socket.socket() as probe:
        # Without it, the closing connections of a server that just ended would count as an obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except PermissionError:
            return f"{port} is reserved for root"
        except OverflowError:
            return f"{port} does not exist"
        except OSError:
            return f"{port} is taken"
    return None


def free_port() -> int:
    """Return a port of loopback that nobody listens at.

    One below those that the kernel gives to connections (32768 on Linux, 49152 elsewhere): until a server has
    started and listens, somebody's connection would otherwise have taken it.
    """
    while port_obstacle(port := secrets.choice(_OWN_PORTS)):
        pass
    return port
