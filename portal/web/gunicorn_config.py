"""gunicorn's configuration: `gunicorn --config python:portal.web.gunicorn_config portal.wsgi`."""

from __future__ import annotations

import gc
from pathlib import Path

import environ

gc.set_threshold(50_000, 20, 50)  # as manage.py does: modules are no garbage
# As portal/settings.py does, since WEB_THREADS sizes the pool of connections there as well.
env = environ.Env()
environ.Env.read_env(Path(__file__).resolve().parents[2] / ".env")

worker_class = "portal.web.gunicorn_worker.BufferingWorker"
workers = env.int("WEB_CONCURRENCY", default=2)
threads = env.int("WEB_THREADS", default=8)
# With the listening sockets and the pool of connections to DynamoDB below the usual limit of 1,024 open files.
worker_connections = 800
# A load balancer of AWS keeps idle connections for 60 seconds. If we closed them first, some requests would fail.
keepalive = 75
# One process loads the portal and the others are forked from it: they start at once, and share what does not change.
preload_app = True
graceful_timeout = 20  # seconds that a worker has to answer what clients have begun to send; they are killed then
control_socket_disable = True  # it would lie in the home directory, for whoever may write there

if env.str("LOG_FORMAT", default="line" if env.bool("DEBUG", default=False) else "json") == "json":
    logconfig_dict = {
        "formatters": {"json": {"()": "portal.logs.JsonLines"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"]},
        "loggers": {"gunicorn.error": {"level": "INFO", "handlers": ["stderr"], "propagate": False}},
    }


def when_ready(server: object) -> None:
    """Keep what is loaded out of garbage collections: a collection in a worker would write to each object, and so copy
    the memory that it shares with this process."""
    gc.collect()
    gc.freeze()
