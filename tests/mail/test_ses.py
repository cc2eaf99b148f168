"""Amazon SES: what it is sent, what its refusals mean, and what it tells of bounces, in the form that AWS documents."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from email import message_from_bytes
from types import SimpleNamespace
from typing import Any

import environ
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.test import override_settings

from delivery import lambda_handlers
from delivery.mail import bounces
from delivery.mail.stored import BOUNCES
from portal import aws_session
from portal.errors import Invalid, PortalError, Rejected, Throttled, Unavailable
from portal.mailing import mail_transport, ses_backend
from portal.mailing.ses_backend import SendingIdentity
from portal.queueing import sqs_client
from tenants.sign_in import suppressed_addresses
from tenants.sign_in.stored import BOUNCED, COMPLAINED
from tests.support import commands, fakes, mailing
from tests.support.outbox import rows
from tests.support.stacks import PRODUCTION, WITH_FUNCTION, Stack, committed
from tests.support.world import World

NORA = "nora@example.org"
SES = "portal.mailing.ses_backend.SesEmailBackend"


def bounce(address: str = NORA, *, of: str = "Permanent", field: str = "eventType", **mail: Any) -> dict[str, Any]:
    """A record as AWS documents it, with what of it matters here and some that does not."""
    recipient = {"emailAddress": address, "action": "failed", "status": "5.1.1", "diagnosticCode": "smtp; 550 5.1.1 x"}
    return {
        field: "Bounce",
        "bounce": {
            "bounceType": of,
            "bounceSubType": "General",
            "bouncedRecipients": [recipient],
            "timestamp": "2026-11-05T00:41:02.669Z",
            "feedbackId": "01000157c44f053b",
        },
        "mail": {"timestamp": "2026-11-05T00:40:02.012Z", "source": "desk@example.com", **mail},
    }


def complaint(address: str = NORA, feedback: str = "abuse") -> dict[str, Any]:
    return {
        "eventType": "Complaint",
        "complaint": {
            "complainedRecipients": [{"emailAddress": address}],
            "timestamp": "2026-11-05T00:41:02.669Z",
            "complaintFeedbackType": feedback,
        },
        "mail": {"timestamp": "2026-11-05T00:40:02.012Z"},
    }


# --- sending ---


@pytest.fixture
def ses(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from moto import mock_aws  # it loads for a second, and each worker collects all tests
    from moto.sesv2 import sesv2_backends

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws(), override_settings(MAIL_TRANSPORT=SES, EMAIL_HOST="eu-west-1"):
        aws_session.reset()
        yield sesv2_backends["123456789012"]["eu-west-1"]
    aws_session.reset()


def letter(**more: Any) -> EmailMultiAlternatives:
    message = EmailMultiAlternatives("Grüße", "A text.", "Pooldesk <desk@example.com>", [NORA], **more)
    message.attach_alternative("<p>A text.</p>", "text/html")
    return message


def test_ses_gets_the_bytes_that_smtp_would_carry_with_tags_and_the_configuration_set(ses: Any) -> None:
    requests: list[dict[str, Any]] = []
    client = ses_backend.client()
    client.meta.events.register("provide-client-params.sesv2.SendEmail", lambda params, **_: requests.append(params))
    client.create_email_identity(EmailIdentity="desk@example.com")
    message = letter(headers={"Message-ID": "<one@example.com>"})
    message.tags = {"tenant": "a" * 32, "about": "invitation_7"}  # type: ignore[attr-defined]
    with override_settings(SES_CONFIGURATION_SET="pooldesk-mail"):
        assert mail_transport.hand_over(message).state == "taken"
    (request,) = requests
    assert request["ConfigurationSetName"] == "pooldesk-mail"
    assert {tag["Name"]: tag["Value"] for tag in request["EmailTags"]} == {"tenant": "a" * 32, "about": "invitation_7"}
    assert request["Destination"] == {"ToAddresses": [NORA]}
    raw = request["Content"]["Raw"]["Data"]
    assert b"\r\n" in raw
    assert b"\n" not in raw.replace(b"\r\n", b"")
    read = message_from_bytes(raw)
    assert (read["Message-ID"], [part.get_content_type() for part in read.walk()][1:]) == (
        "<one@example.com>",
        ["text/plain", "text/html"],
    )
    assert len(ses.core_backend.sent_messages) == 1


def test_the_id_that_ses_gives_a_mail_is_handed_back(ses: Any) -> None:
    ses_backend.client().create_email_identity(EmailIdentity="desk@example.com")
    assert mail_transport.hand_over(letter()).carrier_id


def test_a_domain_that_ses_does_not_know_yet_becomes_an_identity(ses: Any) -> None:
    assert ses_backend.is_used()
    first = ses_backend.identity("example.net")
    assert ses_backend.client().get_email_identity(EmailIdentity="example.net")
    assert ses_backend.identity("example.net") == first


def test_an_identity_has_the_tokens_of_its_records_and_says_whether_ses_found_them(ses: Any) -> None:
    told = {"DkimAttributes": {"Tokens": ["one", "two"]}, "VerifiedForSendingStatus": True}
    answer = SimpleNamespace(status_code=200), {**told, "ResponseMetadata": {"HTTPStatusCode": 200}}
    ses_backend.client().meta.events.register("before-call.sesv2.GetEmailIdentity", lambda **_: answer)
    assert ses_backend.identity("example.net") == SendingIdentity(("one", "two"), is_verified=True)


def test_email_url_chooses_ses_a_region_and_a_configuration_set() -> None:
    url = "ses://eu-west-1?configuration_set=pooldesk-mail"
    config = environ.Env.email_url_config(url)
    assert (config["EMAIL_BACKEND"], config["EMAIL_HOST"]) == (SES, "eu-west-1")
    assert config["OPTIONS"] == {"CONFIGURATION_SET": "pooldesk-mail"}


@pytest.mark.parametrize(
    ("code", "text", "meaning"),
    [
        ("MessageRejected", "Invalid content", Rejected),
        ("BadRequestException", "Missing final '@domain'", Rejected),
        ("MessageRejected", "Email address is not verified. The following identities failed the check", Unavailable),
        ("TooManyRequestsException", "Maximum sending rate exceeded.", Throttled),
        ("LimitExceededException", "Daily message quota exceeded.", Throttled),
        ("SendingPausedException", "", Unavailable),
        ("AccountSuspendedException", "", Unavailable),
        ("AccessDeniedException", "", Unavailable),
    ],
)
def test_what_ses_refuses_is_the_mails_fault_or_passes(code: str, text: str, meaning: type[PortalError]) -> None:
    error = ClientError({"Error": {"Code": code, "Message": text}}, "SendEmail")
    assert type(ses_backend.translated(error)) is meaning


def test_ses_out_of_reach_passes() -> None:
    error = EndpointConnectionError(endpoint_url="https://email.eu-west-1.amazonaws.com")
    assert type(ses_backend.translated(error)) is Unavailable


def test_an_identity_that_nobody_verified_leaves_the_mail_to_be_tried_again(ses: Any) -> None:
    error = {"Code": "MessageRejected", "Message": "Email address is not verified."}
    answer = SimpleNamespace(status_code=400), {"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}
    ses_backend.client().meta.events.register("before-call.sesv2.SendEmail", lambda **_: answer)
    assert mail_transport.hand_over(letter()).state == "later"
    with pytest.raises(Unavailable):
        get_connection(SES).send_messages([letter()])
    assert get_connection(SES, fail_silently=True).send_messages([letter()]) == 0


# --- what it tells ---


@pytest.mark.parametrize("field", ["eventType", "notificationType"])
@pytest.mark.parametrize("in_envelope", [True, False], ids=["envelope", "raw"])
def test_a_bounce_for_good_suppresses_the_address(engine: None, field: str, in_envelope: bool) -> None:
    text = json.dumps(bounce("Nora@Example.org", field=field))
    if in_envelope:
        text = json.dumps({"Type": "Notification", "Message": text, "TopicArn": "arn:aws:sns:eu-west-1:1:x"})
    assert bounces.apply(text) == "bounced"
    known = suppressed_addresses.of([NORA])[NORA]
    assert (known.kind, known.why, known.at) == (BOUNCED, "smtp; 550 5.1.1 x", "2026-11-05T00:41:02.669000Z")


def test_a_complaint_suppresses_the_address_and_praise_does_not(engine: None) -> None:
    assert bounces.apply(json.dumps(complaint())) == "complained"
    assert "reported as unwanted on 5 November 2026" in suppressed_addresses.of([NORA])[NORA].sentence
    assert suppressed_addresses.of([NORA])[NORA].kind == COMPLAINED
    assert bounces.apply(json.dumps(complaint("nils@example.org", "not-spam"))) == "other"
    assert suppressed_addresses.of(["nils@example.org"]) == {}


@pytest.mark.parametrize("kind", ["Transient", "Undetermined"])
def test_a_bounce_that_passes_suppresses_nobody(engine: None, kind: str) -> None:
    assert bounces.apply(json.dumps(bounce(of=kind))) == "other"
    assert suppressed_addresses.of([NORA]) == {}


@pytest.mark.parametrize(
    "text", ["", "[]", "7", '{"a": 1}', '{"eventType": "Bounce"}', '{"Type": "Notification", "Message": "x"}']
)
def test_what_is_no_notification_is_refused(engine: None, text: str) -> None:
    with pytest.raises(Invalid):
        bounces.apply(text)


def test_a_bounce_is_shown_at_the_invitation_that_the_mail_brought(world: World) -> None:
    alice = world.browser("alice", "acme")
    with override_settings(EMAIL_BACKEND=mailing.OUTBOX):
        alice.send("/desk/invitations/", {"addresses": NORA, "role": "agent"})
    (row,) = rows()
    tags = {"tenant": [world.tenants["acme"].tenant_id], "about": [row.subject.replace("/", "_")]}
    bounces.apply(json.dumps(bounce(timestamp=row.timestamp, tags=tags)))
    (shown,) = alice.get("/desk/invitations/").context["pending"]
    assert shown["unreached"]["why"].startswith("Mail to this address bounced on 5 November 2026")


# --- its queue ---


@pytest.fixture
def queue(engine: None) -> Any:
    """The queue of bounces on the running engine, and what sends to it."""
    connection = sqs_client.queue_connection("worker")
    connection.create(sqs_client.full_name(BOUNCES), {})
    url = connection._send("GetQueueUrl", QueueName=sqs_client.full_name(BOUNCES))["QueueUrl"]
    return lambda body: connection._send("SendMessage", QueueUrl=url, MessageBody=body)


def test_the_command_empties_the_queue_and_says_what_it_held(queue: Any, caplog: pytest.LogCaptureFixture) -> None:
    for body in (json.dumps(bounce()), json.dumps(complaint("nils@example.org")), "rubbish of nora@example.org"):
        queue(body)
    ended = commands.run("note_bounces")
    assert ended.out == "3 notifications: 1 bounced, 1 complained, 0 other, 1 refused.\n"
    assert set(suppressed_addresses.of([NORA, "nils@example.org"])) == {NORA, "nils@example.org"}
    assert "A message was thrown away" in caplog.text
    assert NORA not in caplog.text
    assert bounces.read(wait=0) == {}


def test_the_command_that_waits_for_more_notes_what_it_has_read_and_ends_when_it_is_asked_to(
    queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = bounces.note

    def note(body: str) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return noted(body)

    monkeypatch.setattr(bounces, "note", note)
    queue(json.dumps(bounce()))
    ended = commands.run("note_bounces", "--follow")
    assert (ended.status, ended.out) == (0, "1 notification: 1 bounced, 0 complained, 0 other, 0 refused.\n")
    assert set(suppressed_addresses.of([NORA])) == {NORA}


def test_what_the_database_cannot_note_stays_in_the_queue(engine: None) -> None:
    event = {"Records": [{"messageId": f"m{i}", "body": body} for i, body in enumerate([json.dumps(bounce()), "x"])]}
    assert lambda_handlers.bounce_handler(event, None) == {"batchItemFailures": []}
    with fakes.answering("worker", "PutItem", fakes.refusal("InternalServerError", status=500)):
        answer = lambda_handlers.bounce_handler(event, None)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}


# --- in the template ---


def test_who_sends_by_smtp_gets_nothing_of_ses() -> None:
    stack = Stack(committed(), **PRODUCTION)
    assert not [name for name in stack.resources if name.startswith(("Mail", "Bounces", "SendMail"))]


def test_ses_tells_a_queue_of_the_name_that_the_worker_reads() -> None:
    stack = Stack(committed(), **PRODUCTION, MailService="ses")
    with override_settings(DYNAMODB_TABLE_PREFIX="Pooldesk.Prod"):
        assert stack.properties("BouncesQueue")["QueueName"] == sqs_client.full_name(BOUNCES)
    destination = stack.properties("MailEvents")["EventDestination"]
    assert destination["MatchingEventTypes"] == ["bounce", "complaint"]
    assert stack.properties("BouncesQueueSubscription")["RawMessageDelivery"] is True
    (sending,) = stack.properties("SendMailPolicy")["PolicyDocument"]["Statement"]
    assert sending["Action"] == ["ses:SendEmail", "ses:SendRawEmail"]
    assert "BouncesFunction" not in stack.resources


def test_where_workers_are_functions_one_notes_bounces_and_deliveries_know_the_mail_service() -> None:
    stack = Stack(committed(), **WITH_FUNCTION, MailService="ses")
    assert stack.resolved(committed()["Rules"]["MailIsSent"]["RuleCondition"]) is False
    assert stack.properties("BouncesFunction")["Handler"] == f"{lambda_handlers.__name__}.bounce_handler"
    assert stack.properties("BouncesQueueSource")["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    variables = stack.properties("DeliveryFunction")["Environment"]["Variables"]
    assert variables["EMAIL_URL"] == f"ses://{settings.AWS_REGION}?configuration_set=pooldesk-mail"
    by_smtp = Stack(committed(), **WITH_FUNCTION | {"EmailUrl": "smtp://x"}).properties("DeliveryFunction")
    assert by_smtp["Environment"]["Variables"]["EMAIL_URL"] == "smtp://x"
