# One image for the web server, the commands, the workers and AWS Lambda: `make image` builds it, docs/operations.md says
# how to run it. No step needs BuildKit, so docker, podman and buildah build the same.
ARG PYTHON=docker.io/library/python:3.11-slim-bookworm

FROM ${PYTHON} AS build
WORKDIR /srv/pooldesk
RUN python3 -m venv /opt/build
COPY requirements.lock ./
RUN /opt/build/bin/pip install --no-cache-dir --disable-pip-version-check --no-compile --no-deps --only-binary :all: \
    --require-hashes --target /opt/packages -r requirements.lock
COPY infra/slim_packages.py infra/
RUN python3 infra/slim_packages.py /opt/packages \
    && python3 -m compileall -q -j 0 -x '/(dns|holidays)/' --invalidation-mode unchecked-hash /opt/packages
COPY manage.py ./
COPY portal portal
COPY tenants tenants
COPY delivery delivery
COPY tickets tickets
COPY api api
COPY templates templates
COPY locale locale
COPY static static
ENV PYTHONPATH=/opt/packages PYTHONHASHSEED=0
RUN SECRET_KEY=only-to-collect-static-files python3 manage.py collectstatic --noinput \
    && rm -r infra requirements.lock /opt/packages/django/contrib/admin/static /opt/packages/django_htmx/static \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /srv/pooldesk

FROM ${PYTHON}
# Nothing in a running container installs anything.
RUN rm -rf /usr/local/lib/python3*/site-packages/pip* /usr/local/lib/python3*/ensurepip /usr/local/bin/pip* \
    && groupadd --gid 10001 pooldesk \
    && useradd --uid 10001 --gid 10001 --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin pooldesk
COPY --from=build /opt/packages /opt/packages
COPY --from=build /srv/pooldesk /srv/pooldesk
WORKDIR /srv/pooldesk
ENV PYTHONPATH=/opt/packages PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 DJANGO_SETTINGS_MODULE=portal.settings
USER 10001:10001
# The root file system may be read-only. Uploads of more than half a megabyte are kept here while they arrive.
VOLUME /tmp
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=15s \
    CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
# For a command or worker: `python3 manage.py run_stream`. For Lambda: entry point `python3 -m awslambdaric`, and the
# handler as the command.
CMD ["python3", "-m", "gunicorn", "--config", "python:portal.web.gunicorn_config", "--bind", "0.0.0.0:8000", "portal.wsgi"]
