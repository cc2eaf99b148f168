"""Settings. All that differs between machines comes from the environment; docs/operations.md lists the variables."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import django
import environ
from csp.constants import NONE, SELF
from django.contrib.messages import constants as message_levels

from portal import secret_environment

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
environ.Env.read_env(BASE_DIR / ".env")
secret_environment.load()

# --- what this is and where it runs ---

DEBUG: bool = env.bool("DEBUG", default=False)
_DEVELOPMENT_KEY = "development-only-key-that-signs-nothing-of-value-0123456789"
SECRET_KEY: str = env.str("SECRET_KEY", default=_DEVELOPMENT_KEY if DEBUG else "")
SECRET_KEY_FALLBACKS: list[str] = env.list("SECRET_KEY_FALLBACKS", default=[])
# Encrypt secrets at rest: the first key seals, and all open what they sealed. Empty: SECRET_KEY and its fallbacks.
ENCRYPTION_KEYS: list[str] = env.list("ENCRYPTION_KEYS", default=[])
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"] if DEBUG else [])
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])
# How many proxies in front add to X-Forwarded-For; 0 trusts the socket's address alone.
TRUSTED_PROXIES: int = env.int("TRUSTED_PROXIES", default=0)
# Links in mails begin with it. Only in development it may be empty: then they begin with a loopback request's host.
PORTAL_BASE_URL: str = env.str("PORTAL_BASE_URL", default="").rstrip("/")
ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True  # pages of people outside a desk are in their language, all others in English
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = "portal.formats"

# --- DynamoDB ---

AWS_REGION: str = env.str("AWS_REGION", default="eu-central-1")
# Only names the resources in policies; the account of the credentials is what counts.
AWS_ACCOUNT_ID: str = env.str("AWS_ACCOUNT_ID", default="000000000000")
# Empty means Amazon DynamoDB itself.
DYNAMODB_ENDPOINT_URL: str = env.str("DYNAMODB_ENDPOINT_URL", default="")
DYNAMODB_TABLE_PREFIX: str = env.str("DYNAMODB_TABLE_PREFIX", default="Pooldesk")
DYNAMODB_CONNECT_TIMEOUT: float = env.float("DYNAMODB_CONNECT_TIMEOUT", default=1.0)  # seconds
# Seconds. An engine on a busy machine is slower than Amazon DynamoDB, of which an answer after a second is not to come.
DYNAMODB_READ_TIMEOUT: float = env.float("DYNAMODB_READ_TIMEOUT", default=5.0 if DYNAMODB_ENDPOINT_URL else 1.5)
DYNAMODB_MAX_ATTEMPTS: int = env.int("DYNAMODB_MAX_ATTEMPTS", default=3)
# The sites at which tenants can have a silo, as JSON by name: endpoint_url, sts_endpoint_url, region, prefix and
# tenant_role_arn, worker_role_arn, platform_role_arn, table_key_arn, table_quota; see portal/dynamo/placement.py.
SILOS: dict[str, dict[str, str]] = env.json("SILOS", default={})
# How many tables the account may have in its region: AWS allows 2,500, and up to 10,000 on request.
DYNAMODB_TABLE_QUOTA: int = env.int("DYNAMODB_TABLE_QUOTA", default=2_500)
# Where the content of a new tenant of a plan lies, "large=bridge"; in the pool where a plan is not named.
PLAN_PLACEMENTS: dict[str, str] = env.dict("PLAN_PLACEMENTS", default={})
# Hold each tenant's request against the policy before it is sent.
DYNAMODB_GUARD: bool = env.bool("DYNAMODB_GUARD", default=True)
# The role assumed for each tenant, with the session tag TenantId. Empty: the process signs for all tenants.
TENANT_ROLE_ARN: str = env.str("TENANT_ROLE_ARN", default="")
STS_ENDPOINT_URL: str = env.str("STS_ENDPOINT_URL", default=DYNAMODB_ENDPOINT_URL)
# Of Amazon SQS. The embedded engine has both at one address.
SQS_ENDPOINT_URL: str = env.str("SQS_ENDPOINT_URL", default=DYNAMODB_ENDPOINT_URL)
# Of Amazon S3. Local engines have it where their queues are.
S3_ENDPOINT_URL: str = env.str("S3_ENDPOINT_URL", default=SQS_ENDPOINT_URL)
# The bucket of letters, raw as they came.
MAIL_BUCKET: str = env.str("MAIL_BUCKET", default=f"{DYNAMODB_TABLE_PREFIX.lower().replace('.', '-')}-mail")
# The origin to which browsers send files and from which they get them, and no other host of the bucket's region.
OBJECTS_ORIGIN: str = (
    "{0.scheme}://{0.netloc}".format(urlsplit(S3_ENDPOINT_URL))
    if S3_ENDPOINT_URL
    else f"https://{MAIL_BUCKET}.s3.{AWS_REGION}.amazonaws.com"
)
# What files of tickets may need, in bytes: one of them, and all of a desk's.
FILE_MOST_BYTES: int = env.int("FILE_MOST_BYTES", default=25_000_000)
FILES_OF_DESK: int = env.int("FILES_OF_DESK", default=10_000_000_000)
# What a form may have with small files in it, which browsers without JavaScript send so.
FORM_FILES_BYTES: int = env.int("FORM_FILES_BYTES", default=6_000_000)
# Who scans files for malware: "guardduty", or "" where nobody does, which is then said of each file.
FILE_SCANNER: str = env.str("FILE_SCANNER", default="")
# Of AWS Lambda, whose functions read the streams where DELIVERY_WORKERS is 0.
LAMBDA_ENDPOINT_URL: str = env.str("LAMBDA_ENDPOINT_URL", default=DYNAMODB_ENDPOINT_URL)
# What leaves the desk is spread over so many queues: 8, 16, 32 or 64, and later never fewer.
DELIVERY_QUEUES: int = env.int("DELIVERY_QUEUES", default=8 if DEBUG else 32)
# What one tenant may have on its way at a time; delivery/queues/limits.py says where it is counted.
REPLY_HOLD_SECONDS: int = env.int("REPLY_HOLD_SECONDS", default=10)
DELIVERY_IN_FLIGHT: int = env.int("DELIVERY_IN_FLIGHT", default=6)
DELIVERY_PER_SECOND: float = env.float("DELIVERY_PER_SECOND", default=18.0)
DELIVERY_BURST: int = env.int("DELIVERY_BURST", default=6)
# How many workers deliver: senders count together what the same workers will do. 0: Lambda serves each queue apart.
DELIVERY_WORKERS: int = env.int("DELIVERY_WORKERS", default=1)
# What one worker delivers at the same time; each slot is a thread.
DELIVERY_SLOTS: int = env.int("DELIVERY_SLOTS", default=24)
# Status-index shards of a newly created tenant.
TICKET_SHARDS: int = env.int("TICKET_SHARDS", default=1)
# Write units a second in one partition of the ticket indexes from which its tenant is resharded by itself; 0: never.
HOT_PARTITION_UNITS: float = env.float("HOT_PARTITION_UNITS", default=500.0)
# API keys that one network address may try in vain at once in one process; see api/edge/key_attempts.py. 0: any number.
API_KEY_ATTEMPTS: int = env.int("API_KEY_ATTEMPTS", default=30)
# Units a second that a tenant of a plan may ask for; see portal/load/tenant_limiter.py. "off": nobody is limited.
TENANT_RATES: str = env.str("TENANT_RATES", default="standard=50 large=250")
# Requests a second of one network address to pages of people outside a desk; see portal/load/guest_limits.py. 0: any.
GUEST_RATE: float = env.float("GUEST_RATE", default=3.0)
# Processes share a tenant's rate. Off: each process lets all of it through.
RATES_SHARED: bool = env.bool("RATES_SHARED", default=True)
# Each process notes who asked for how much, for the operators' page.
NOISE_NOTED: bool = env.bool("NOISE_NOTED", default=True)
# Each process says its sums on stdout, once a minute, as CloudWatch's embedded metrics.
CLOUDWATCH_METRICS: bool = env.bool("CLOUDWATCH_METRICS", default=not DEBUG)
# How many processes there are at least, for the moment before they know each other.
WEB_PROCESSES: int = env.int("WEB_CONCURRENCY", default=2)
# Bulk changes, exports and the like that one tenant may have at work at the same time in one process.
HEAVY_AT_A_TIME: int = env.int("HEAVY_AT_A_TIME", default=2)
# Searches that one tenant may have at work at the same time in one process.
SEARCHES_AT_A_TIME: int = env.int("SEARCHES_AT_A_TIME", default=3)
# Threads of one gunicorn worker; sizes the pool of connections to the engine.
DEMO_PASSWORD: str = env.str("DEMO_PASSWORD", default="demo-pass-123")  # of the sample accounts, which DEBUG alone has
WEB_THREADS: int = env.int("WEB_THREADS", default=8)

# Days between the closing of a desk and the moment from which it may be deleted.
CLOSING_DAYS: int = env.int("CLOSING_DAYS", default=14)
# Signs certificates of deletion: an Ed25519 key in 64 hex digits, as certificate_keys --new makes one.
DEVELOPMENT_CERTIFICATE_KEY: str = "64657665" * 8  # everybody has it
CERTIFICATE_KEY: str = env.str("CERTIFICATE_KEY", default=DEVELOPMENT_CERTIFICATE_KEY if DEBUG else "")
# The public keys that signed before it: what they signed can be verified as long as they stand here.
CERTIFICATE_FORMER_KEYS: list[str] = env.list("CERTIFICATE_FORMER_KEYS", default=[])
# Where the operator publishes their public keys apart from the portal, for auditors: an address, or a few words.
KEYS_PUBLISHED_AT: str = env.str("KEYS_PUBLISHED_AT", default="").strip()
# The word in every API key that says which installation it is for, in 1-12 lower-case letters.
API_KEY_ENVIRONMENT: str = env.str("API_KEY_ENVIRONMENT", default="test" if DEBUG else "live")

# No relational database: the backend refuses SQL, and nothing is migrated.
DATABASES = {"default": {"ENGINE": "portal.nosql.backend"}}
DATABASE_ROUTERS = ["portal.nosql.backend.base.NothingMigrates"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Django ---

INSTALLED_APPS = [
    "portal.apps.PortalConfig",
    "tenants.apps.TenantsConfig",
    "delivery.apps.DeliveryConfig",
    "tickets.apps.TicketsConfig",
    "api.apps.ApiConfig",
    "tenants.apps.OperatorAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
    "django_htmx",
    "csp",
]
# The instruments that prove what the product promises: for development, and not deployed.
if DEBUG and (BASE_DIR / "proofs").is_dir():
    INSTALLED_APPS.append("proofs.apps.ProofsConfig")

MIDDLEWARE = [
    "portal.web.middleware.HealthMiddleware",
    "portal.web.middleware.RequestLogMiddleware",
    "api.edge.edge_middleware.ApiMiddleware",
    "portal.web.middleware.ContentPolicyMiddleware",
    "portal.web.middleware.RequestLimitsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "portal.web.middleware.ErrorPageMiddleware",
    # Before the identity, which needs the engine: the page of an outage carries a form, and the form a token.
    "django.middleware.csrf.CsrfViewMiddleware",
    "tenants.tenancy.tenant_middleware.TenantMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "tenants.tenancy.access_middleware.AccessMiddleware",
]
# Spans for OpenTelemetry, see portal/web/tracing_middleware.py.
TRACES: bool = env.bool("TRACES", default=False)
if TRACES:
    MIDDLEWARE.insert(1, "portal.web.tracing_middleware.TracingMiddleware")

_CONTEXT_PROCESSORS = [
    "django.template.context_processors.request",
    "django.contrib.messages.context_processors.messages",
    "tenants.tenancy.template_context.page",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [BASE_DIR / "templates", Path(django.__file__).parent / "forms" / "jinja2"],
        "OPTIONS": {
            "environment": "portal.web.jinja.environment",
            "libraries": ["tickets.desk.page_texts", "tickets.dashboards.charts"],
            "context_processors": _CONTEXT_PROCESSORS,
        },
    },
    {  # Django's admin and the pages that extend it
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": _CONTEXT_PROCESSORS},
    },
]
FORM_RENDERER = "portal.web.jinja.PageForms"

# --- accounts, sessions, mail ---

AUTH_USER_MODEL = "tenants.User"
AUTHENTICATION_BACKENDS = ["tenants.sign_in.passwords.EmailBackend"]
PASSWORD_HASHERS = ["tenants.sign_in.passwords.BoundedArgon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "tenants:login"
LOGIN_REDIRECT_URL = "tickets:queue"
PASSWORD_RESET_TIMEOUT = 3600  # seconds
# Wrong passwords allowed per window; see tenants/sign_in/attempt_limits.py.
SIGN_IN_ATTEMPTS: int = env.int("SIGN_IN_ATTEMPTS", default=8)
SIGN_IN_ATTEMPTS_PER_NETWORK: int = env.int("SIGN_IN_ATTEMPTS_PER_NETWORK", default=40)
SIGN_IN_ATTEMPTS_PER_ACCOUNT: int = env.int("SIGN_IN_ATTEMPTS_PER_ACCOUNT", default=200)
SIGN_IN_WINDOW = 900  # seconds
# Operators need a second factor for their admin.
OPERATOR_SECOND_FACTOR: bool = env.bool("OPERATOR_SECOND_FACTOR", default=not DEBUG)

# How long an operator may act as a member at once, in minutes; 0: nobody may.
IMPERSONATION_MINUTES: int = env.int("IMPERSONATION_MINUTES", default=30)
# The owners of a desk are mailed when an operator begins to act as one of its members.
IMPERSONATION_MAILS: bool = env.bool("IMPERSONATION_MAILS", default=True)

SESSION_ENGINE = "portal.nosql.session_store"
SESSION_COOKIE_NAME = "pooldesk_session"
SESSION_COOKIE_AGE: int = env.int("SESSION_COOKIE_AGE", default=14 * 24 * 3600)  # seconds
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = not DEBUG
CSRF_COOKIE_NAME = "pooldesk_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = not DEBUG
CSRF_FAILURE_VIEW = "portal.web.views.csrf_failure"

# Messages ride in a signed cookie: showing one never writes to the database.
MESSAGE_STORAGE = "portal.web.middleware.DroppingStorage"
MESSAGE_TAGS = {message_levels.ERROR: "error"}

env.EMAIL_SCHEMES["ses"] = "portal.mailing.ses_backend.SesEmailBackend"  # its host is the region
EMAIL_CONFIG = env.email_url(
    "EMAIL_URL", default=f"filemail:///{BASE_DIR / 'var' / 'mail'}" if DEBUG else "smtp://localhost:25"
)
vars().update(EMAIL_CONFIG)
EMAIL_TIMEOUT = 10  # seconds, of each step of a mail server
# By which SES tells what bounced: EMAIL_URL=ses://eu-central-1?configuration_set=...
SES_CONFIGURATION_SET = str(EMAIL_CONFIG.get("OPTIONS", {}).get("CONFIGURATION_SET", ""))
# What carries mail, and whether the process that writes one waits for that. Else it is written to the outbox, and
# leaves by the queues.
MAIL_TRANSPORT: str = EMAIL_CONFIG["EMAIL_BACKEND"]
MAIL_DIRECT: bool = env.bool("MAIL_DIRECT", default=False)
EMAIL_BACKEND: str = MAIL_TRANSPORT if MAIL_DIRECT else "delivery.mail.outbox_backend.OutboxEmailBackend"
# `<a desk's name in addresses>@MAIL_DOMAIN` is the desk's own mail address.
MAIL_DOMAIN: str = env.str("MAIL_DOMAIN", default="desk.localhost" if DEBUG else "").lower()
# The development mail server, host:port.
MAIL_RECEIVER: str = env.str("MAIL_RECEIVER", default="127.0.0.1:8025" if DEBUG else "")
DEFAULT_FROM_EMAIL: str = env.str("DEFAULT_FROM_EMAIL", default="Pooldesk <pooldesk@localhost>")

# What SPF records name for the mail server of this installation: "include:_spf.mail.example.com".
MAIL_SPF: str = env.str("MAIL_SPF", default="")
# Servers of the name system that check desks' own domains, `address` or `address:port`; empty: those of the machine.
DNS_SERVERS: list[str] = env.list("DNS_SERVERS", default=[])

# --- webhooks ---

# Ports that an endpoint's address may lead to.
WEBHOOK_PORTS: list[int] = env.list("WEBHOOK_PORTS", cast=int, default=[443])
# The origin of the development receiver: the one address of this machine, without TLS, that webhooks may be sent to.
WEBHOOK_RECEIVER: str = env.str("WEBHOOK_RECEIVER", default="http://127.0.0.1:8410" if DEBUG else "").rstrip("/")

# --- what a browser is told ---

SECURE_SSL_REDIRECT: bool = env.bool("SECURE_SSL_REDIRECT", default=not DEBUG)
SECURE_HSTS_SECONDS: int = 0 if DEBUG else env.int("SECURE_HSTS_SECONDS", default=365 * 24 * 3600)
# Both bind names beside the portal's own, and preloading cannot be taken back soon: only who asks for them gets them.
SECURE_HSTS_INCLUDE_SUBDOMAINS: bool = env.bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", default=False)
SECURE_HSTS_PRELOAD: bool = env.bool("SECURE_HSTS_PRELOAD", default=False)
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]  # Django's wishes for both
BEHIND_TLS_PROXY: bool = env.bool("BEHIND_TLS_PROXY", default=False)
if BEHIND_TLS_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
# No other site learns where somebody came from: the addresses of invitations and new passwords are secrets. Not
# "no-referrer", with which browsers send forms with "Origin: null", and Django refuses those.
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:", OBJECTS_ORIGIN],  # previews of files come from the bucket
        "connect-src": [SELF, OBJECTS_ORIGIN],  # files go to the bucket itself
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    },
}

STATIC_URL = "/static/"
# Filled by collectstatic.
STATIC_ROOT: str | None = None if DEBUG else env.str("STATIC_ROOT", default=str(BASE_DIR / "var" / "static"))
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = DEBUG
WHITENOISE_KEEP_ONLY_HASHED_FILES = True  # pages name no others

DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000  # bytes; the longest form is a description of 50,000 characters

# "json": a line of JSON for each record, without anything that people wrote; "line": for people to read.
LOG_FORMAT: str = env.str("LOG_FORMAT", default="line" if DEBUG else "json")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"},
        "json": {"()": "portal.logs.JsonLines"},
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT},
        "faults": {"class": "portal.logs.FaultHandler", "level": "ERROR"},
    },
    "root": {"handlers": ["console", "faults"], "level": env.str("LOG_LEVEL", default="INFO")},
    "loggers": {
        "botocore": {"level": "WARNING"},
        "pynamodb": {"level": "WARNING"},
        "fido2": {"level": "WARNING"},  # names each credential
        "django.request": {"level": "ERROR"},
        "waitress.queue": {"level": "ERROR"},  # warns of each request that waits a moment, as a page's static files do
    },
}
