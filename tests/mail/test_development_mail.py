"""The development receiver's page of mail: what was sent stands on it, and its form writes to a desk by SMTP."""

from __future__ import annotations

import email
import email.policy
import html
import http.client
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.conf import LazySettings
from django.core.mail import EmailMultiAlternatives, get_connection

from delivery.management.commands.webhook_receiver import MAIL, mail_page, take_letter
from delivery.webhooks import development_receiver
from delivery.webhooks.development_receiver import ReceiverPage, Receiving
from portal.mailing import development_mail
from tests.support.mailing import MailServer, mail_server

TO_FILES = "django.core.mail.backends.filebased.EmailBackend"
TYPED = {"sender": "jane@example.org", "to": "acme@desk.localhost", "subject": "Größe", "text": "Does it fit?"}


@pytest.fixture
def folder(tmp_path: Path, settings: LazySettings) -> Path:
    settings.EMAIL_FILE_PATH = str(tmp_path / "mail")
    return tmp_path / "mail"


@pytest.fixture
def server(settings: LazySettings) -> Iterator[MailServer]:
    with mail_server() as server:
        settings.MAIL_RECEIVER = f"127.0.0.1:{server.port}"
        yield server


@pytest.fixture
def receiver() -> Iterator[str]:
    pages = {MAIL: ReceiverPage(mail_page, take_letter)}
    with development_receiver.server(0, Receiving(), render=lambda shown: "", pages=pages) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def send(*subjects: str, folder: Path, html_text: str = "") -> None:
    """Write mails to files as the portal does, over one connection."""
    mails = []
    for subject in subjects:
        headers = {"Message-ID": f"<{len(mails)}@desk.localhost>", "Reply-To": "reply+abc@desk.localhost"}
        sender = "Acme <acme@desk.localhost>"
        mail = EmailMultiAlternatives(subject, f"About {subject}", sender, ["jane@example.org"], headers=headers)
        if html_text:
            mail.attach_alternative(html_text, "text/html")
        mails.append(mail)
    get_connection(TO_FILES, file_path=str(folder)).send_messages(mails)


def ask(host: str, method: str = "GET", body: str = "", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, timeout=120)
    connection.request(method, MAIL, body.encode(), headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_mails_are_shown_newest_first_with_all_that_they_say(receiver: str, folder: Path) -> None:
    assert "Nothing yet." in ask(receiver)[1]
    send("Eins · größer", "Two", folder=folder, html_text="<p>Hi <script>alert(1)</script></p>")
    status, page = ask(receiver)
    assert status == 200
    assert re.findall(r'<h3 dir="auto">(.*?)</h3>', page) == ["Two", "Eins · größer"]
    assert "answers to reply+abc@desk.localhost" in page
    assert "About Eins · größer" in page
    (_, framed) = re.findall(r'<iframe sandbox title="[^"]*" srcdoc="([^"]*)"', page)
    assert html.unescape(framed) == "<p>Hi <script>alert(1)</script></p>"
    assert "<script>" not in page


def test_a_page_shows_so_many_mails_and_no_more(folder: Path) -> None:
    send(*map(str, range(development_mail.SHOWN + 5)), folder=folder)
    found = development_mail.sent(folder)
    assert [mail.subject for mail in found] == [str(n) for n in range(development_mail.SHOWN + 4, 4, -1)]


def test_a_mail_is_shown_with_its_copies_and_the_names_of_its_files(folder: Path) -> None:
    mail = EmailMultiAlternatives("It", "See it.", "acme@desk.localhost", ["jane@example.org"], cc=["lin@example.org"])
    mail.attach("Anleitung ä.txt", "text", "text/plain")
    get_connection(TO_FILES, file_path=str(folder)).send_messages([mail])
    page = mail_page()
    assert "copies to lin@example.org" in page
    assert "Files: Anleitung ä.txt" in page


def test_where_a_mail_server_carries_mail_the_page_says_so(settings: LazySettings) -> None:
    settings.EMAIL_FILE_PATH = None
    assert "EMAIL_URL names a mail server" in mail_page()


def test_the_form_sends_a_letter_and_an_answer_names_the_mail_that_it_answers(
    receiver: str, folder: Path, server: MailServer
) -> None:
    assert ask(receiver, "POST", urlencode(TYPED))[0] == 303
    send("Your order", folder=folder)
    page = ask(receiver)[1]
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.split("Answer as")[1]))
    values = {name: html.unescape(value) for name, value in hidden.items()}
    assert ask(receiver, "POST", urlencode(TYPED | values))[0] == 303
    first, answer = (email.message_from_string(text, policy=email.policy.default) for text in server.letters)
    assert (first["From"], first["To"], first["Subject"]) == ("jane@example.org", "acme@desk.localhost", "Größe")
    assert first.get_content().strip() == "Does it fit?"
    assert first["In-Reply-To"] is None
    assert answer["In-Reply-To"] == answer["References"] == "<0@desk.localhost>"
    assert first["Message-ID"] != answer["Message-ID"]


@pytest.mark.parametrize(
    ("changed", "answers", "sentence"),
    [
        ({}, {"RCPT": "550 5.1.1 No desk has this address"}, "No desk has this address"),
        ({"subject": "Two\nlines"}, {}, "This is no letter"),
        ({"sender": "a\r\nBcc: b@example.org"}, {}, "This is no letter"),
    ],
)
def test_a_letter_that_is_not_taken_is_still_in_the_form_with_the_reason(
    changed: dict[str, str], answers: dict[str, str], sentence: str, receiver: str, folder: Path, server: MailServer
) -> None:
    server.answers |= answers
    status, page = ask(receiver, "POST", urlencode(TYPED | changed))
    assert status == 200
    assert sentence in html.unescape(page)
    assert "Does it fit?" in page
    assert server.letters == []


def test_without_the_mail_server_the_page_says_so(receiver: str, folder: Path, settings: LazySettings) -> None:
    settings.MAIL_RECEIVER = "127.0.0.1:1"
    assert "The mail server at 127.0.0.1:1 did not take it" in ask(receiver, "POST", urlencode(TYPED))[1]


def test_the_page_of_another_site_sends_nothing(receiver: str, folder: Path, server: MailServer) -> None:
    assert ask(receiver, "POST", urlencode(TYPED), Origin="https://evil.example") == (403, "")
    assert ask(receiver, "POST", urlencode(TYPED), Origin=f"http://{receiver}")[0] == 303
    assert len(server.letters) == 1
