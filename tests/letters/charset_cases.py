"""Texts in many character sets, declared rightly, wrongly or not at all."""

from __future__ import annotations

from tests.letters.cases import HTML, Case, case, encoded, head, joined, letter, part

TEXTS = {
    "us-ascii": "Hello",
    "utf-8": "Grüße, 你好, 😊",
    "UTF8": "Grüße",
    "utf-16": "Grüße",
    "utf-16le": "Grüße",
    "utf-7": "Grüße",
    "iso-8859-1": "Grüße aus Zürich",
    "iso-8859-2": "Zażółć gęślą jaźń",
    "iso-8859-5": "Привет",
    "iso-8859-7": "Καλημέρα",
    "iso-8859-8-i": "שלום",
    "iso-8859-9": "Günaydın İstanbul",
    "iso-8859-15": "10 €",
    "windows-1250": "Příliš žluťoučký kůň",
    "windows-1251": "Привет",
    "windows-1252": "“10 €” – so",
    "windows-1253": "Καλημέρα",
    "windows-1255": "שלום",
    "windows-1256": "مرحبا",
    "windows-1257": "Ačiū",
    "windows-1258": "Xin chao",
    "windows-874": "สวัสดี",
    "tis-620": "สวัสดี",
    "koi8-r": "Привет",
    "koi8-u": "Привіт",
    "macintosh": "Grüße",
    "cp850": "Grüße",
    "iso-2022-jp": "こんにちは",
    "shift_jis": "こんにちは",
    "windows-31j": "こんにちは①",
    "euc-jp": "こんにちは",
    "gb2312": "你好",
    "gbk": "你好",
    "gb18030": "你好",
    "big5": "你好",
    "euc-kr": "안녕하세요",
    "ks_c_5601-1987": "안녕하세요",
}
CODECS = {"iso-8859-8-i": "iso8859-8", "windows-874": "cp874", "windows-31j": "cp932"}
GUESSED_8 = "The letter is not in the character set that it names; it was read as UTF-8."
GUESSED_W = "The letter is not in the character set that it names; it was read as Windows-1252."
NONE_W = "The letter does not name its character set; it was read as Windows-1252."
SOME = "Some characters of the letter could not be read."


def written(name: str, content: bytes, charset: str, encoding: str = "", **expected: object) -> Case:
    type_ = f"text/plain; charset={charset}" if charset else "text/plain"
    return case(f"text: {name}", letter(part(type_, content, encoding=encoding)), **expected)


def typed(name: str, type_: str, content: bytes, **expected: object) -> Case:
    return case(f"text: {name}", letter(part(type_, content)), **expected)


LATIN = "Grüße aus Zürich".encode("latin-1")

# Long texts that name no character set, or a wrong one.
LONG = {
    "koi8-r": "Здравствуйте, у нас не работает принтер на третьем этаже. Пожалуйста, помогите нам. ",
    "cp1251": "Здравствуйте, у нас не работает принтер на третьем этаже. Пожалуйста, помогите нам. ",
    "cp932": "お世話になっております。プリンターが動きません。よろしくお願いいたします。",
    "gb18030": "您好，我们三楼的打印机坏了，请帮助我们。谢谢。",
    "big5": "您好，我們三樓的印表機壞了，請幫助我們。謝謝。",
    "cp949": "안녕하세요. 3층 프린터가 작동하지 않습니다. 도와주세요. ",
    "cp1253": "Καλημέρα, ο εκτυπωτής στον τρίτο όροφο δεν λειτουργεί. ",
}
LONG_LATIN = ("Grüße aus Zürich, der Drucker läuft nicht. " * 10).strip()

CASES: list[Case] = [
    *(written(f"long, no set, {name}", (text * 5).encode(name), "", text=(text * 5).strip()) for name, text in LONG.items()),
    *(written(f"long, a wrong set, {name}", (text * 5).encode(name), "us-ascii", text=(text * 5).strip()) for name, text in LONG.items()),
    written("long, no set, Latin-1", LONG_LATIN.encode("latin-1"), "", text=LONG_LATIN, remarks=[NONE_W]),
    *(
        written(f"{charset} in {encoding}", text.encode(CODECS.get(charset, charset)), charset, encoding, text=text, remarks=[])
        for charset, text in TEXTS.items()
        for encoding in ("base64", "quoted-printable")
    ),
    written("8 bits", "Grüße".encode(), "utf-8", "8bit", text="Grüße"),
    written("8bits", "Grüße".encode(), "utf-8", "8bits", text="Grüße"),
    written('8bit"', "Grüße".encode(), "utf-8", '8bit"', text="Grüße"),
    written("an unknown encoding", "Grüße".encode(), "utf-8", "x-strange", text="Grüße"),
    written("Latin-1 in 8 bits", LATIN, "iso-8859-1", "8bit", text="Grüße aus Zürich", remarks=[]),
    written("no character set, UTF-8", "Grüße".encode(), "", text="Grüße", remarks=[]),
    written("no character set, Latin-1", LATIN, "", text="Grüße aus Zürich", remarks=[NONE_W]),
    written("no character set, Japanese", "こんにちは".encode("iso-2022-jp"), "", text="こんにちは"),
    written("ASCII is declared, UTF-8 comes", "Grüße".encode(), "us-ascii", text="Grüße", remarks=[]),
    written("ASCII is declared, Latin-1 comes", LATIN, "us-ascii", text="Grüße aus Zürich", remarks=[GUESSED_W]),
    written("UTF-8 is declared, Latin-1 comes", LATIN, "utf-8", text="Grüße aus Zürich", remarks=[GUESSED_W]),
    written("Shift-JIS is declared, UTF-8 comes", "Grüße".encode(), "euc-jp", text="Grüße", remarks=[GUESSED_8]),
    written("an unknown set", "Grüße".encode(), "x-strange-set", text="Grüße"),
    written("an empty set", "Grüße".encode(), '""', text="Grüße"),
    written("a set in quotes", LATIN, '"iso-8859-1"', text="Grüße aus Zürich"),
    written("a codec that is no set", b"Hello", "punycode", text="Hello"),
    written("a codec of bytes", b"Hello", "zlib", text="Hello"),
    written("escapes of Python", rb"a\x41", "unicode_escape", text=r"a\x41"),
    written("one broken character", "Grüße ".encode() * 50 + b"\xff", "utf-8", remarks=[SOME]),
    written("a text cut in a character", ("日" * 100).encode()[:-1], "utf-8", text="日" * 99 + "\ufffd"),
    written("Shift-JIS with a broken character", "こんにちは".encode("cp932") * 30 + b"\x81\x00", "shift_jis", remarks=[SOME]),
    written("zero bytes", b"He\x00llo", "utf-8", text="Hello"),
    written("halves of characters", "He\ud83dllo".encode("utf-8", "surrogatepass"), "utf-8", text=None),
    written("bells and escapes", b"He\x07l\x1blo\x7f", "utf-8", text="Hello"),
    written("a byte order mark", b"\xef\xbb\xbfHello", "utf-8", text="Hello"),
    written("base64 with rubbish", b"", "utf-8", text=""),
    written("binary in a text", bytes(range(256)), "utf-8"),
    typed("flowed", "text/plain; format=flowed", b"Hello \nthere\n\n> a \n> b\nc", text="Hello there\n\n> a b\nc"),
    typed("flowed with a signature", "text/plain; format=flowed", b"Hello \nthere\n-- \nJane", text="Hello there"),
    typed("flowed and joined", "text/plain; format=flowed; delsp=yes", b"Donaudampf \nschiff", text="Donaudampfschiff"),
    typed("flowed and stuffed", "text/plain; format=flowed", b" From here\n on", text="From here\non"),
    typed("not flowed", "text/plain", b"Hello \nthere", text="Hello\nthere"),
    typed("enriched", "text/enriched", b"<bold>Hello</bold> there", text="Hello there"),
    typed("a type in capitals", "TEXT/PLAIN; CHARSET=UTF-8", "Grüße".encode(), text="Grüße"),
    typed("a type without a subtype", "text", b"Hello", text="Hello"),
    typed("an encoded word as type", "=?utf-8?Q?text/plain?=", b"Hello", text="Hello"),
    typed("an empty type", "", b"Hello", text="Hello"),
    typed("a semicolon at the end", "text/plain; charset=utf-8;", b"Hello", text="Hello"),
    typed("a name for the text", 'text/plain; name="body.txt"', b"Hello", text=None),
    case("text: HTML with a set in a meta tag", letter(part("text/html", '<meta charset="iso-8859-1"><p>Grüße'.encode("latin-1"))), text="Grüße"),
    case("text: HTML with an old meta tag", letter(part("text/html", '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r"><p>Привет'.encode("koi8-r"))), text="Привет"),
    case("text: uuencoded", letter(part("text/plain", b"begin 644 a.txt\n%:&5L;&\\\n`\nend\n", extra="Content-Transfer-Encoding: x-uuencode")), text="hello"),
    case("text: base64 without its padding", head().encode() + b"Content-Transfer-Encoding: base64\n\nSGVsbG8", text="Hello"),
    case("text: base64 with a stray letter", head().encode() + b"Content-Transfer-Encoding: base64\n\nSGVsbG8=\nA", text="Hello"),
    case("text: base64 with spaces and signs", head().encode() + b"Content-Transfer-Encoding: base64\n\nSG Vs!bG8=\n", text="Hello"),
    case("text: quoted-printable with bad escapes", head().encode() + b"Content-Transfer-Encoding: quoted-printable\n\na=ZZb=3", text=None),
    case("text: sets that differ between parts", letter(joined("alternative", part("text/plain; charset=iso-8859-1", LATIN), HTML)), text="Grüße aus Zürich"),
    case("text: a letter of Base64 in capitals", letter(part("text/plain; charset=utf-8", encoded(b"Hello", "base64"), extra="Content-Transfer-Encoding: BASE64")), text="Hello"),
]  # fmt: skip
