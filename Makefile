# `make run` and `make test` do all of the set-up they need; everything else is listed by `make help`.

PORT ?= 8000
ENGINE ?= ministack
ENGINE_PORT ?= 0
VENV := .venv
PY := $(VENV)/bin/python
CHECKOV_VERSION := 3.3.30
UV_VERSION := 0.13.9
CYCLONEDX_VERSION := 7.5.0
VERSION := $(shell sed -n 's/^VERSION: Final = "\(.*\)"/\1/p' portal/version_number.py)
IMAGE ?= pooldesk
# Docker's command may be there without its daemon.
BUILDER ?= $(shell for name in docker podman; do $$name info >/dev/null 2>&1 && echo $$name && exit; done; \
	command -v buildah)
DEBIAN_BASE := localhost/pooldesk-python
# What the official image leaves out of Debian, too.
LEFT_OUT := /usr/share/doc/* /usr/share/man/* /usr/share/locale/* /usr/share/info/*
# The system's own Python is usually built with more optimisation than pyenv's: on Debian, tests of pages took a seventh
# less of processor time. First one with the venv module; where none has it, the rule below says what is missing.
PYTHON ?= $(shell for needs in sys,ensurepip,venv sys; do \
	for name in /usr/bin/python3.11 /usr/bin/python3 python3.11 python3.12 python3.13 python3.14 python3; do \
		$$name -c "import $$needs; sys.exit(sys.version_info < (3, 11))" 2>/dev/null && echo $$name && exit; done; done)
DEMO = $(PY) manage.py demo --engine $(ENGINE) --engine-port $(ENGINE_PORT)
# A dozen processes load the same modules: let the first one keep what it has compiled.
unexport PYTHONDONTWRITEBYTECODE
option = $(if $($(1)),--$(2) $($(1)))
text = $(if $($(1)),--$(2) '$($(1))')
# uv installs in seconds what takes pip a minute. It does not read pip's settings, such as another index, so where it fails
# pip does it. $(1): what it is for, a Python; $(2): what to install.
PIP = $(VENV)/bin/pip --quiet --disable-pip-version-check
install = $(PIP) install uv==$(UV_VERSION) && $(VENV)/bin/uv pip install --quiet --python $(1) $(2) || \
	{ echo "uv could not install this; pip tries."; $(PIP) --python $(1) install $(2); }
on_stack = $(PY) manage.py stack $(1) "$(STACK)" $(call option,REGION,region) $(if $(YES),--yes)
stack_parameters = $(if $(filter command line,$(origin IMAGE)),--image $(IMAGE)) $(call option,CERTIFICATE,certificate) \
	$(call option,ADDRESS,address) $(call text,FROM,sender) $(call option,MAIL_DOMAIN,mail-domain) \
	$(call text,EMAIL_URL,email-url) $(call option,SIZE,size) $(call option,PROCESSOR,processor) \
	$(call option,ALARM_TOPIC,alarm-topic) $(foreach pair,$(SET),--set '$(pair)')

# What is tried on each placement: what people and systems do with the content of a desk, and what leaves it.
PLACED := $(addprefix tests/,desk/test_tickets.py desk/test_queue_filters.py api/test_writing_tickets.py api/test_reading_tickets.py \
	api/test_idempotency.py search/test_finding.py outbox/test_telling.py webhooks/test_delivering.py requesters/test_requester_pages.py \
	api/test_requesters.py notices/test_telling.py mail_in/test_letter_pages.py)

.DEFAULT_GOAL := help
.PHONY: help run setup test test-fast test-placements fuzz lint format seed shell prove bench image image-base image-test image-tools lock release deploy upgrade operator manage teardown stack-named clean distclean chromium dynamodb-local

help: ## This list
	@echo "Pooldesk: a support desk for many tenants, on DynamoDB alone."
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

run: $(VENV)/run.stamp ## The portal with sample data. PORT=8000 ENGINE=ministack|dynamodb-local ENGINE_PORT= DYNAMODB_ENDPOINT_URL=
	@exec $(DEMO) --port $(PORT)

# Each waits for its downloads most of the time: they come beside each other.
setup: ## Everything that run and test need, and nothing else
	@$(MAKE) --silent --no-print-directory --jobs=3 $(VENV)/cyclonedx-$(CYCLONEDX_VERSION).stamp chromium dynamodb-local

test: setup ## All tests, in a browser too, four at a time. PYTEST_ARGS="-k queue -n 0"
	$(PY) -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

test-fast: $(VENV)/dev.stamp ## Within a minute: without browsers, processes and what writes much (the list: tests/conftest.py). PYTEST_ARGS=
	$(PY) -m pytest -m "not browser and not slow" -n 3 --dist loadfile --no-loadscope-reorder -q $(PYTEST_ARGS)

test-placements: $(VENV)/dev.stamp ## Tests of tickets, search and deliveries, for desks on a bridge and in a silo. PYTEST_ARGS=
	for placement in bridge silo/there; do \
		PLACEMENT=$$placement $(PY) -m pytest -n 3 --dist loadfile --no-loadscope-reorder -q $(PYTEST_ARGS) $(PLACED) || exit 1; done

fuzz: $(VENV)/dev.stamp ## Requests made from the API's document, many more than in `make test`. FUZZ_EXAMPLES=200 FUZZ_SEED=
	FUZZ_EXAMPLES=$(or $(FUZZ_EXAMPLES),200) $(if $(FUZZ_SEED),FUZZ_SEED=$(FUZZ_SEED)) \
		$(PY) -m pytest -n 0 --timeout 7200 tests/api/test_fuzzing.py

lint: $(VENV)/dev.stamp $(VENV)/checkov-$(CHECKOV_VERSION).stamp ## Style, format, types, dead code and the CloudFormation template
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m tests.support.dead_code
	$(VENV)/bin/cfn-lint --regions eu-central-1 us-east-1 -- infra/template.yaml
	@mkdir -p var && sed '/^    Condition: /d' infra/template.yaml > var/unconditional.yaml
	CKV_SKIP_PACKAGE_UPDATE_CHECK=true BC_API_KEY= $(VENV)/checkov/bin/checkov --config-file infra/checkov.yaml

format: $(VENV)/dev.stamp ## Put the code in the format that lint wants
	$(PY) -m ruff check --fix --exit-zero --quiet .
	$(PY) -m ruff format .

seed: $(VENV)/run.stamp ## Add sample data, while `make run` runs or not. TENANTS= USERS= TICKETS= SEED=
	@exec $(DEMO) seed $(call option,TENANTS,tenants) $(call option,USERS,users) \
		$(call option,TICKETS,tickets) $(call option,SEED,seed)

shell: $(VENV)/run.stamp ## A Python shell on the data of `make run`
	@exec $(DEMO) shell

prove: $(VENV)/run.stamp ## Attack the layers between tenants, on the data of `make run`. REQUESTS=20000
	@$(DEMO) seed --if-empty
	@exec $(DEMO) prove_isolation --keep $(call option,REQUESTS,requests)

bench: $(VENV)/dev.stamp ## Measurements, on DynamoDB Local. BENCH_ARGS=
	$(PY) -m benchmarks $(BENCH_ARGS)

image: ## The container image, by docker, podman or buildah. IMAGE=pooldesk BUILDER= BUILD_ARGS=
	@test -n "$(BUILDER)" || { echo "docker, podman or buildah is missing: sudo apt-get install -y buildah"; exit 1; }
	BUILDX_NO_DEFAULT_ATTESTATIONS=1 $(BUILDER) build $(if $(findstring docker,$(BUILDER)),,--format docker) \
		--label org.opencontainers.image.title=pooldesk --label org.opencontainers.image.version=$(VERSION) \
		--label org.opencontainers.image.revision=$(shell git describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null) \
		$(BUILD_ARGS) --tag $(IMAGE) .

image-tools:
	@{ command -v buildah && command -v mmdebstrap; } >/dev/null || \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq buildah mmdebstrap >/dev/null; }

image-base: image-tools ## A base for the image of Debian's packages, where docker.io cannot be reached. As root
	@mkdir -p var
	mmdebstrap --quiet --variant=minbase --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
		--include=usr-is-merged,python3-minimal,python3-venv,ca-certificates \
		$(foreach path,$(LEFT_OUT),'--dpkgopt=path-exclude=$(path)') bookworm var/base.tar
	container=$$(buildah from scratch) && buildah add --quiet $$container var/base.tar / && \
		buildah commit --quiet --rm $$container $(DEBIAN_BASE)
	@rm var/base.tar

image-test: $(VENV)/dev.stamp image-tools ## Build the image with buildah, start it read-only and sign in. As root; installs what is missing
	IMAGE_TEST=1 $(PY) -m pytest -n 0 -q tests/deployment/test_image.py $(PYTEST_ARGS)

lock: $(VENV)/bin/pip ## Write requirements.lock anew: all packages of the image, by hash
	$(PIP) install uv==$(UV_VERSION)
	$(VENV)/bin/uv pip compile --quiet requirements-image.txt --generate-hashes --python-version 3.11 --no-header \
		--no-annotate --output-file requirements.lock

release: $(VENV)/dev.stamp $(VENV)/cyclonedx-$(CYCLONEDX_VERSION).stamp ## All checks, parts list and licences of the version in portal/version_number.py. TAG=1 tags it
	@$(PY) -m infra.release $(if $(TAG),--tag)

deploy: stack-named $(VENV)/run.stamp ## The whole service on AWS (docs/deploy.md). STACK= IMAGE= CERTIFICATE= ADDRESS= FROM= MAIL_DOMAIN= SIZE= REGION= SET=
	@$(call on_stack,deploy) $(stack_parameters)

upgrade: stack-named $(VENV)/run.stamp ## This version, or other parameters, for a stack that is there. STACK= IMAGE= ... as deploy
	@$(call on_stack,upgrade) $(stack_parameters)

operator: stack-named $(VENV)/run.stamp ## The first operator of a stack; asks for a password. STACK= EMAIL= NAME=
	@$(call on_stack,operator) $(call option,EMAIL,email) $(call text,NAME,person)

manage: stack-named $(VENV)/run.stamp ## A command of manage.py in a task of a stack. STACK= COMMAND="check_health" ROLE=Web|Seed|Lifecycle
	@$(call on_stack,run) $(call text,COMMAND,command) $(call option,ROLE,role)

teardown: stack-named $(VENV)/run.stamp ## Remove a stack and keep its data. STACK= DELETE_DATA=1 deletes that too
	@$(call on_stack,teardown) $(if $(DELETE_DATA),--delete-data)

stack-named:
	@test -n "$(STACK)" || { echo "Name the stack: STACK=pooldesk-prod"; exit 1; }

clean: ## Remove var/ (all data of `make run`) and caches
	@test ! -d var || echo "Removing var/: $$(du -sh var | cut -f1) of data, logs and mail of \`make run\`."
	@rm -rf var .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## Remove the virtual environment as well
	rm -rf $(VENV)

$(VENV)/run.stamp: requirements.txt requirements-local.txt | $(VENV)/bin/pip
	@$(call install,$(PY),-r requirements-local.txt)
	@touch $@

$(VENV)/dev.stamp: requirements.txt requirements-local.txt requirements-otel.txt requirements-dev.txt | $(VENV)/bin/pip
	@$(call install,$(PY),-r requirements-dev.txt)
	@touch $@

# checkov pins a boto3 of its own, so it cannot share a venv with ministack.
$(VENV)/checkov-$(CHECKOV_VERSION).stamp: | $(VENV)/dev.stamp
	@echo "Installing checkov, once: 300 MB."
	$(PY) -m venv --clear --without-pip $(VENV)/checkov
	@$(call install,$(VENV)/checkov/bin/python,checkov==$(CHECKOV_VERSION))
	@touch $@

# It brings packages that others would import if they found them, such as chardet.
$(VENV)/cyclonedx-$(CYCLONEDX_VERSION).stamp: | $(VENV)/dev.stamp
	$(PY) -m venv --clear --without-pip $(VENV)/cyclonedx
	@$(call install,$(VENV)/cyclonedx/bin/python,cyclonedx-bom==$(CYCLONEDX_VERSION))
	@touch $@

# pip arrives last, so a venv that was interrupted half-way is made again.
$(VENV)/bin/pip:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Python 3.11 or newer is missing$(if $(PYTHON),: PYTHON is $(PYTHON)): apt-get install -y python3 python3-venv"; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "The venv module of $(PYTHON) is missing: apt-get install -y python3-venv"; exit 1; }
	@echo "Installing packages for $(PYTHON) in $(VENV)."
	@"$(PYTHON)" -m venv $(VENV)

# Without it some tests are skipped, each with its reason.
dynamodb-local: | $(VENV)/bin/pip
	-@$(PY) -m portal.engines.dynamodb_local

# Without it the browser tests are skipped, each with its reason. Debian has its engine without windows apart, which is
# quicker; others have it whole.
chromium:
	@for name in chromium-headless-shell chromium chromium-browser google-chrome; do \
		command -v $$name >/dev/null && exit 0; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq; \
		for package in chromium-headless-shell chromium; do \
			DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$package >/dev/null && exit 0; \
		done; \
	fi; \
	echo "The browser tests need Chromium: sudo apt-get install -y chromium"
