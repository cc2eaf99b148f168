"""Letters that nobody wrote by hand (RFC 3834, 3464, 5965, 8098, 2919), and some that only look so."""

from __future__ import annotations

from tests.letters.cases import HEADERS, TEXT, Case, case, joined, letter, part, plain

ORIGINAL_ID = "<r.token.1@desk.example>"
ORIGINAL = part("message/rfc822", f"Message-ID: {ORIGINAL_ID}\nSubject: Re: Printer\n\nHello")

# Headers, and the kind of letter that they make.
STATED = {
    "a vacation notice": ({"Auto_Submitted": "auto-replied"}, "answer"),
    "a vacation notice with a parameter": ({"Auto_Submitted": "auto-replied; owner-email=a@b"}, "answer"),
    "a vacation notice in capitals": ({"Auto_Submitted": "AUTO-REPLIED"}, "answer"),
    "a comment before it": ({"Auto_Submitted": "auto-replied (vacation)"}, "answer"),
    "a notification": ({"Auto_Submitted": "auto-notified"}, "answer"),
    "a program": ({"Auto_Submitted": "auto-generated"}, "program"),
    "a program of another kind": ({"Auto_Submitted": "auto-x"}, "program"),
    "sent by hand": ({"Auto_Submitted": "no"}, ""),
    "sent by hand, with a comment": ({"Auto_Submitted": "No ; x"}, ""),
    "Precedence bulk": ({"Precedence": "bulk"}, "bulk"),
    "Precedence junk": ({"Precedence": "Junk"}, "bulk"),
    "Precedence list": ({"Precedence": "list"}, "list"),
    "Precedence auto_reply": ({"Precedence": "auto_reply"}, "answer"),
    "Precedence first-class": ({"Precedence": "first-class"}, ""),
    "a list": ({"List_Id": "People <people.example.org>"}, "list"),
    "an address of a list": ({"List_Post": "<mailto:people@example.org>"}, "list"),
    "a link to unsubscribe alone": ({"List_Unsubscribe": "<https://example.org/u>"}, ""),
    "Exchange, all suppressed": ({"X_Auto_Response_Suppress": "All"}, "program"),
    "Exchange, some suppressed": ({"X_Auto_Response_Suppress": "DR, OOF, AutoReply"}, "program"),
    "Exchange, none suppressed": ({"X_Auto_Response_Suppress": "None"}, ""),
    "X-Autoreply": ({"X_Autoreply": "yes"}, "answer"),
    "X-Autorespond": ({"X_Autorespond": "away"}, "answer"),
    "X-Mail-Autoreply": ({"X_Mail_Autoreply": "yes"}, "answer"),
    "X-Auto-Reply-From": ({"X_Auto_Reply_From": "a@b.example"}, "answer"),
    "X-Loop of another": ({"X_Loop": "a@b.example"}, ""),
    "an empty return path": ({"Return_Path": "<>"}, "answer"),
    "an empty return path with a blank": ({"Return_Path": "< >"}, "answer"),
    "an empty return path and the words of a bounce": (
        {"Return_Path": "<>", "Subject": "Returned mail: see transcript"},
        "bounce",
    ),
    "an empty return path and nobody": ({"Return_Path": "<>", "From": "", "To": "<>"}, "bounce"),
    "an ordinary return path": ({"Return_Path": "<jane@example.org>"}, ""),
    "the words of a bounce alone": ({"Subject": "Undeliverable parcel"}, ""),
    "MAILER-DAEMON": ({"From": "Mail Delivery System <MAILER-DAEMON@example.org>"}, "bounce"),
    "postmaster": ({"From": "postmaster@example.org"}, "bounce"),
    "noreply": ({"From": "noreply@example.org"}, ""),
}

SUBJECTS = {
    "Automatic reply: Printer": "answer",
    "Auto-reply: Printer": "answer",
    "Autoreply: Printer": "answer",
    "Out of Office: Printer": "answer",
    "Out of the office": "answer",
    "Automatische Antwort: Drucker": "answer",
    "Abwesenheitsnotiz: Drucker": "answer",
    "Réponse automatique : Imprimante": "answer",
    "Respuesta automática: Impresora": "answer",
    "Resposta automática: Impressora": "answer",
    "Risposta automatica: Stampante": "answer",
    "Automatisch antwoord: Printer": "answer",
    "自動返信: プリンター": "answer",
    "自動応答：プリンター": "answer",
    "不在通知": "answer",
    "自动回复: 打印机": "answer",
    "Re: Automatic reply to customers is broken": "",
    "Automatic replies do not work": "",
    "Abwesenheitsnotiz einrichten": "",
    "Out of paper": "",
}


def bounce(*recipients: str, kind: str = "delivery-status", original: bytes = ORIGINAL) -> bytes:
    status = part(f"message/{kind}", "Reporting-MTA: dns; mx.example.org\n\n" + "\n\n".join(recipients))
    container = joined(
        "report", part("text/plain", "It did not arrive."), status, original, parameters="; report-type=delivery-status"
    )
    return letter(container, From="MAILER-DAEMON@example.org", Return_Path="<>", Subject="Undelivered")


def recipient(address: str, action: str = "failed", status: str = "5.1.1", extra: str = "") -> str:
    return f"Final-Recipient: rfc822; {address}\nAction: {action}\nStatus: {status}{extra}"


def report(name: str, raw: bytes, told: tuple[str, str, str] | None, kind: str = "bounce", **more: object) -> Case:
    return case(f"report: {name}", raw, **({"sender": None, "kind": kind, "report": told} | more))


TOLD = ("joe@example.com", "5.1.1", ORIGINAL_ID)
HEADERS_ONLY = part("text/rfc822-headers", f"Message-ID: {ORIGINAL_ID}\nSubject: Re: Printer\n")
DAEMON = {"From": "MAILER-DAEMON@example.org"}

CASES: list[Case] = [
    *(case(f"automatic: {name}", plain(**headers), kind=kind, sender=None) for name, (headers, kind) in STATED.items()),
    *(case(f"subject: {subject}", plain(Subject=subject), kind=kind) for subject, kind in SUBJECTS.items()),
    report("one recipient", bounce(recipient("joe@example.com")), TOLD, text="It did not arrive.", files=[("Re: Printer.eml", "message/rfc822")]),
    report("headers of the letter only", bounce(recipient("joe@example.com"), original=HEADERS_ONLY), TOLD),
    report("no letter", bounce(recipient("joe@example.com"), original=TEXT), ("joe@example.com", "5.1.1", "")),
    report("the id in the text", bounce(recipient("joe@example.com"), original=part("text/plain", f"> Message-ID: {ORIGINAL_ID}")), TOLD),
    report("a folded id in the text", bounce(recipient("joe@example.com"), original=part("text/plain", f"Message-ID:\n {ORIGINAL_ID}")), TOLD),
    report("an original recipient", bounce("Original-Recipient: rfc822;joe@example.com\n" + recipient("joe2@example.net")), TOLD),
    report("an address in brackets", bounce(recipient("<joe@example.com>")), TOLD),
    report("a recipient in capitals", bounce(recipient("JOE@EXAMPLE.COM")), TOLD),
    report("two recipients, the second failed", bounce(recipient("a@example.com", "delivered", "2.0.0"), recipient("joe@example.com")), TOLD),
    report("delayed", bounce(recipient("joe@example.com", "delayed", "4.4.7")), ("joe@example.com", "4.4.7", ORIGINAL_ID), kind="delay"),
    report("delivered", bounce(recipient("joe@example.com", "delivered", "2.1.5")), ("joe@example.com", "2.1.5", ORIGINAL_ID), kind="delay"),
    report("a status with a comment", bounce(recipient("joe@example.com", status="5.1.1 (unknown user)")), TOLD),
    report("no status", bounce("Final-Recipient: rfc822; joe@example.com\nAction: failed"), ("joe@example.com", "", ORIGINAL_ID)),
    report("an action in capitals", bounce(recipient("joe@example.com", "FAILED")), TOLD),
    report("an unknown action", bounce(recipient("joe@example.com", "exploded")), TOLD),
    report("in UTF-8", bounce("Final-Recipient: utf-8; jöe@example.com\nAction: failed\nStatus: 5.1.1", kind="global-delivery-status"), ("jöe@example.com", "5.1.1", ORIGINAL_ID)),
    report("no recipient", bounce("Action: failed\nStatus: 5.1.1"), None),
    report("an empty status part", bounce(""), None),
    report("rubbish as status part", bounce("\x00\xff" * 1000), None),
    report("a hundred thousand blocks", bounce("\n\n" * 100_000 + recipient("joe@example.com")), None, kind="bounce"),
    report("a thousand recipients", bounce(*[recipient("joe@example.com")] * 1000), TOLD),
    report("a status in base64", letter(joined("report", TEXT, part("message/delivery-status", "Reporting-MTA: dns; a\n\n" + recipient("joe@example.com"), encoding="base64"), ORIGINAL), **DAEMON), TOLD),
    report("a status outside of a report", letter(joined("mixed", TEXT, part("message/delivery-status", "Reporting-MTA: dns; a\n\n" + recipient("joe@example.com")), ORIGINAL)), TOLD),
    report("Exim", plain(f"This message was created automatically.\n\nMessage-ID: {ORIGINAL_ID}\n", X_Failed_Recipients="joe@example.com", **DAEMON).encode(), ("joe@example.com", "5.0.0", ORIGINAL_ID)),
    report("qmail", plain("Hi. This is the qmail-send program.", Subject="failure notice", **DAEMON).encode(), None),
    report("a complaint", letter(joined("report", TEXT, part("message/feedback-report", "Feedback-Type: abuse"), ORIGINAL)), None, kind="complaint"),
    report("a read receipt", letter(joined("report", TEXT, part("message/disposition-notification", "Disposition: manual-action/MDN-sent-manually; displayed"))), None, kind="receipt", text="Hello"),
    report("a report of another kind", letter(joined("report", TEXT, part("text/plain", "x"))), None, kind=""),
    case("automatic: no From, an empty return path", plain(**{name.replace("-", "_"): "" for name in HEADERS}, Return_Path="<>"), sender="", kind="bounce"),
]  # fmt: skip
