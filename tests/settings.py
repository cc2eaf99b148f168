"""Settings of the tests: the portal's own, quick to hash, and mail is carried at once."""

import os
from typing import Any

os.environ.setdefault("DEBUG", "false")
# Only what went wrong takes as long: a busy machine may leave an engine without a processor for seconds.
os.environ.setdefault("DYNAMODB_CONNECT_TIMEOUT", "20")
os.environ.setdefault("DYNAMODB_READ_TIMEOUT", "60")
os.environ.setdefault("SECRET_KEY", "tests-only-0123456789-abcdefghijklmnopqrstuvwxyz-0123456789")

from jinja2 import FileSystemBytecodeCache

from portal.settings import *  # noqa: F403  # the portal's settings, changed below
from portal.settings import INSTALLED_APPS, MIDDLEWARE, STORAGES, TEMPLATES

if "proofs.apps.ProofsConfig" not in INSTALLED_APPS:
    INSTALLED_APPS = [*INSTALLED_APPS, "proofs.apps.ProofsConfig"]
PORTAL_BASE_URL = os.environ.get("PORTAL_BASE_URL", "http://testserver")
ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]
PASSWORD_HASHERS = ["tests.support.hashers.QuickArgon2"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
MAIL_TRANSPORT = EMAIL_BACKEND  # that mail leaves by the outbox is tests/mail's matter
SECURE_SSL_REDIRECT = False
SESSION_COOKIE_SECURE = False
CSRF_COOKIE_SECURE = False
STATIC_ROOT = None
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
MIDDLEWARE = ["tests.support.static_files.FoundOnce" if name.startswith("whitenoise.") else name for name in MIDDLEWARE]
if folder := os.environ.get("TEMPLATE_CODE"):  # each template is compiled by one process of the run, for all of them
    pages: Any = TEMPLATES[0]
    options = {**pages["OPTIONS"], "bytecode_cache": FileSystemBytecodeCache(folder)}
    TEMPLATES = [{**pages, "OPTIONS": options}, *TEMPLATES[1:]]
STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
# A dead engine must fail a test quickly.
DYNAMODB_MAX_ATTEMPTS = 2
MAIL_DOMAIN = "desk.localhost"
OPERATOR_SECOND_FACTOR = False  # tests of second factors turn it on
API_KEY_ATTEMPTS = 0  # many tests try what lets nobody in, all from one address; tests of the bound set one
GUEST_RATE = 0.0
TENANT_RATES = os.environ.get("TENANT_RATES", "off")  # tests of limits set some
RATES_SHARED = False
NOISE_NOTED = CLOUDWATCH_METRICS = False  # tests of the noise board take notes of their own
REPLY_HOLD_SECONDS = 0  # tests of held replies say so
DELIVERY_QUEUES = 8  # as in development; what needs more says so
# Where the desks of the tests lie, if a test says nothing else; "silo/there" is at a site on the tests' own engine.
PLACEMENT = os.environ.get("PLACEMENT", "pool")
SILOS = {"there": {"endpoint_url": os.environ.get("DYNAMODB_ENDPOINT_URL", ""), "prefix": "There"}}
