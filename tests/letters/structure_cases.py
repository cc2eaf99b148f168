"""Parts in parts: RFC 2045 to 2049, 2183, 2231, 2387, 3462, signed and sealed letters, files and their names."""

from __future__ import annotations

import base64

from tests.letters.cases import HTML, PDF, TEXT, Case, case, head, joined, letter, part

MARKED = "Hello <b>there</b>"
PNG = part('image/png; name="a.png"', b"\x89PNG", encoding="base64", disposition='inline; filename="a.png"')
FOOTER = part("text/plain", "footer")
INNER = head(Subject="Old letter").encode() + b"\nOld"
ENCLOSED = part("message/rfc822", INNER, disposition="attachment")
PDF_FILE = ("a.pdf", "application/pdf")
MANY = "The letter has more parts than can be shown."

# The header of a file, and its name.
NAMES = {
    "in quotes": ('attachment; filename="a.pdf"', "a.pdf"),
    "without quotes": ("attachment; filename=a.pdf", "a.pdf"),
    "a blank without quotes": ("attachment; filename=my file.pdf", "my file.pdf"),
    "a semicolon in quotes": ('attachment; filename="a;b.pdf"', "a;b.pdf"),
    "RFC 2231": ("attachment; filename*=utf-8''%e2%82%ac.pdf", "€.pdf"),
    "RFC 2231 in Latin-1": ("attachment; filename*=iso-8859-1'de'M%FCll.pdf", "Müll.pdf"),
    "RFC 2231 in pieces": ('attachment; filename*0="a"; filename*1="b.pdf"', "ab.pdf"),
    "RFC 2231 in encoded pieces": ("attachment; filename*0*=utf-8''%e2%82; filename*1*=%ac.pdf", None),
    "RFC 2231 without a set": ("attachment; filename*=a.pdf", "a.pdf"),
    "RFC 2231 with an unknown set": ("attachment; filename*=x-strange''a%41.pdf", None),
    "an encoded word": ('attachment; filename="=?utf-8?B?4oKsLnBkZg==?="', "€.pdf"),
    "two encoded words": ('attachment; filename="=?utf-8?Q?a=C3?=\n =?utf-8?Q?=BC.pdf?="', "aü.pdf"),
    "raw UTF-8": ('attachment; filename="€.pdf"', "€.pdf"),
    "a path": ('attachment; filename="../../etc/passwd"', ".._.._etc_passwd"),
    "a path of Windows": (r'attachment; filename="C:\\a.pdf"', "C:_a.pdf"),
    "no name": ("attachment", ""),
    "an empty name": ('attachment; filename=""', ""),
    "a line end": ('attachment; filename="=?utf-8?Q?a=0D=0Ab.pdf?="', "a b.pdf"),
    "a mark that turns the direction": ('attachment; filename="a\u202efdp.exe"', "a fdp.exe"),
    "very long": (f'attachment; filename="{"x" * 5000}.pdf"', None),
    "an unclosed quote": ('attachment; filename="a.pdf', None),
    "name* without a section": ("attachment; filename*", None),
    "sections without an end": ("attachment; filename*0=a; filename*2=c", None),
    "a huge section": ("attachment; filename*99999999999=a", None),
    "capitals": ('ATTACHMENT; FILENAME="a.pdf"', "a.pdf"),
}


def shape(name: str, content: bytes, **expected: object) -> Case:
    return case(f"parts: {name}", letter(content), **({"text": "Hello"} | expected))


def nested(depth: int, content: bytes) -> bytes:
    for number in range(depth):
        content = joined("mixed", content, boundary=f"n{number}")
    return content


CASES: list[Case] = [
    *(
        case(
            f"file: {name}",
            letter(joined("mixed", TEXT, part("application/pdf", b"%PDF", encoding="base64", disposition=said))),
            files=[(told, "application/pdf")] if told is not None else None,
            text="Hello",
        )
        for name, (said, told) in NAMES.items()
    ),
    shape("text and HTML", joined("alternative", TEXT, HTML), files=[], html="<p>Hello <b>there</b></p>"),
    shape("HTML before text", joined("alternative", HTML, TEXT), html="<p>Hello <b>there</b></p>"),
    shape("HTML alone", HTML, text="Hello there", html="<p>Hello <b>there</b></p>"),
    shape("an empty text and HTML", joined("alternative", part("text/plain", " \n"), HTML), text="Hello there"),
    shape("a placeholder and HTML", joined("alternative", part("text/plain", "This message requires HTML."), HTML), text="Hello there"),
    shape("a placeholder alone", joined("alternative", part("text/plain", "This message requires HTML.")), text="This message requires HTML."),
    shape("HTML and a picture", joined("alternative", TEXT, joined("related", HTML, PNG, boundary="b2")), files=[("a.png", "image/png")]),
    shape("HTML, a picture and a file", joined("mixed", joined("related", joined("alternative", TEXT, HTML, boundary="b3"), PNG, boundary="b2"), PDF), files=[("a.png", "image/png"), PDF_FILE]),
    shape("text and a file", joined("mixed", TEXT, PDF), files=[PDF_FILE], sizes=[6]),
    shape("a file before the text", joined("mixed", PDF, TEXT), files=[PDF_FILE]),
    shape("a file alone", PDF, text="", files=[PDF_FILE]),
    shape("two texts", joined("mixed", TEXT, FOOTER), text="Hello\n\nfooter"),
    shape("text, picture, text", joined("mixed", TEXT, PNG, FOOTER), text="Hello\n\nfooter", files=[("a.png", "image/png")]),
    shape("HTML and a footer of text", joined("mixed", HTML, FOOTER), text="Hello there\n\nfooter", html="<p>Hello <b>there</b></p>\n<p>footer</p>"),
    shape("text and HTML with a footer", joined("mixed", joined("alternative", TEXT, HTML, boundary="b2"), FOOTER), text="Hello\n\nfooter"),
    shape("a text as file", joined("mixed", TEXT, part("text/plain", "log", disposition='attachment; filename="a.log"')), files=[("a.log", "text/plain")]),
    shape("a text as file without disposition", joined("mixed", TEXT, part('text/plain; name="a.log"', "log")), files=[("a.log", "text/plain")]),
    shape("HTML as file", joined("mixed", TEXT, part("text/html", MARKED, disposition='attachment; filename="a.html"')), files=[("a.html", "text/html")], html=""),
    shape("a table as file", joined("mixed", TEXT, part("text/csv; name=a.csv", "1,2")), files=[("a.csv", "text/csv")]),
    shape("a letter as file", joined("mixed", TEXT, ENCLOSED), files=[("Old letter.eml", "message/rfc822")]),
    shape("a letter as file without disposition", joined("mixed", TEXT, part("message/rfc822", INNER)), files=[("Old letter.eml", "message/rfc822")]),
    shape("a letter of headers only as file", joined("mixed", TEXT, part("message/rfc822", "Subject: Old letter")), files=[("Old letter.eml", "message/rfc822")]),
    shape("a letter as file with a name", joined("mixed", TEXT, part("message/rfc822", INNER, disposition='attachment; filename="b.eml"')), files=[("b.eml", "message/rfc822")]),
    shape("an empty letter as file", joined("mixed", TEXT, part("message/rfc822", "")), files=[("letter.eml", "message/rfc822")]),
    shape("letters in a digest", joined("digest", b"\n" + INNER, b"\n" + INNER), text="", files=[("Old letter.eml", "message/rfc822")] * 2),
    shape("signed by PGP", joined("signed", TEXT, part("application/pgp-signature", "x")), files=[]),
    shape("signed by S/MIME", joined("signed", TEXT, part('application/pkcs7-signature; name="smime.p7s"', "x")), files=None),
    shape("sealed by S/MIME", part('application/pkcs7-mime; name="smime.p7m"', "x"), text="", files=[("smime.p7m", "application/pkcs7-mime")], remarks=["The letter is encrypted or sealed; its content can be read in a mail program only."]),
    shape("sealed by PGP", joined("encrypted", part("application/pgp-encrypted", "Version: 1"), part("application/octet-stream", "x")), text="", remarks=["The letter is encrypted or sealed; its content can be read in a mail program only."]),
    shape("for AMP", joined("alternative", TEXT, part("text/x-amp-html", "<html amp4email>"), HTML), files=[]),
    shape("an unknown container", joined("strange", TEXT, PDF), files=[PDF_FILE]),
    shape("text before and after the parts", joined("mixed", TEXT).replace(b"\n\n--b1", b"\n\npreamble\n--b1", 1) + b"epilogue"),
    shape("no closing boundary", joined("mixed", TEXT, FOOTER).replace(b"--b1--\n", b""), text="Hello\n\nfooter"),
    shape("cut in a file", joined("mixed", TEXT, PDF)[:-30], files=[PDF_FILE]),
    shape("no boundary parameter", joined("mixed", TEXT, FOOTER).replace(b'; boundary="b1"', b""), text="Hello\n\nfooter"),
    shape("another boundary than is stated", joined("mixed", TEXT).replace(b'"b1"', b'"b2"')),
    shape("an empty boundary", joined("mixed", TEXT).replace(b'"b1"', b'""')),
    shape("the boundary -", joined("mixed", TEXT, FOOTER, boundary="-"), text="Hello\n\nfooter"),
    shape("a boundary with signs", joined("mixed", TEXT, boundary="=_(a)+'b'/c:d?")),
    shape("a boundary with a blank at its end", joined("mixed", TEXT).replace(b'"b1"', b'"b1 "')),
    shape("blanks behind boundaries", joined("mixed", TEXT, FOOTER).replace(b"--b1\n", b"--b1  \t\n"), text="Hello\n\nfooter"),
    shape("a boundary without quotes", joined("mixed", TEXT).replace(b'"b1"', b"b1")),
    shape("a boundary that begins as another", joined("mixed", joined("alternative", TEXT, HTML, boundary="b12"), FOOTER), text="Hello\n\nfooter"),
    shape("the same boundary in both containers", joined("mixed", joined("alternative", TEXT, boundary="b1")), text=None),
    shape("boundaries in the text", joined("mixed", part("text/plain", "a\n--b1x\n --b1\nb")), text="a\n--b1x\n --b1\nb"),
    shape("a container without parts", joined("mixed"), text=None),
    shape("a leaf that says it is a container", b"Content-Type: multipart/alternative\n\nHello"),
    shape("a leaf within, that says it is a container", joined("mixed", part("multipart/alternative", "Hello"))),
    shape("parts without headers", joined("mixed", b"\nHello", b"\nthere"), text="Hello\n\nthere"),
    shape("parts without a blank line", joined("mixed", b"Hello")),
    shape("a container in base64", joined("mixed", TEXT).replace(b"\n\n", b"\nContent-Transfer-Encoding: base64\n\n", 1)),
    shape("a part in base64 with a boundary in it", joined("mixed", part("text/plain", "Hello\n--b1\n", encoding="base64")), text="Hello\n--b1"),
    shape("CR and LF", joined("mixed", TEXT, PDF).replace(b"\n", b"\r\n"), files=[PDF_FILE], sizes=[6]),
    shape("two types", b"Content-Type: text/plain\nContent-Type: text/html\n\nHello"),
    shape("an external body", part('message/external-body; access-type=URL; URL="https://example.org/"', "Content-Type: text/plain\n\n"), text=""),
    shape("partial", part("message/partial; id=1; number=1; total=2", "Subject: a\n\nHello"), text=""),
    shape("an address book entry", joined("mixed", TEXT, part("text/vcard; name=a.vcf", "BEGIN:VCARD")), files=[("a.vcf", "text/vcard")]),
    shape("19 containers in each other", nested(18, TEXT)),
    shape("100 containers in each other", nested(100, TEXT), text=None, remarks=[MANY]),
    shape("1000 parts", joined("mixed", *[TEXT] * 1000), text="\n\n".join(["Hello"] * 499), remarks=[MANY]),
    shape("300 files", joined("mixed", TEXT, *[PDF] * 300), files=[PDF_FILE] * 100, remarks=["The letter has more than 100 files; the others are in the original only."]),
    shape("100,000 lines that begin as a boundary", joined("mixed", part("text/plain", "--b1x\n" * 100_000)), text=None, remarks=[MANY, "The letter is long; its end is in the original only."]),
    shape("1000 letters in each other", b"Content-Type: message/rfc822\n\n" * 1000 + b"Hello", text=""),
    shape("a file of 3 MB", joined("mixed", TEXT, part("application/zip", b"x" * 3_000_000, disposition="attachment")), sizes=[3_000_000]),
    shape("a text of 3 MB", part("text/plain", "Hello\n" * 500_000), text=None, remarks=["The letter is long; its end is in the original only."]),
    shape("base64 of nothing", part("application/pdf", b"!!!!", extra="Content-Transfer-Encoding: base64"), text="", sizes=[0]),
    shape("a text of one line of 2 MB", part("text/plain", base64.b64encode(b"x" * 1_500_000)), text=None),
]  # fmt: skip
