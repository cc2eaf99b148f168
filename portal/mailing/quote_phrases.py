"""The phrases by which mail programs introduce quotes, forwarded letters and signatures, in many languages.

Each function looks at one line, or at a few that were joined. None searches in a way whose time grows faster than the
line. The phrases are those of Gmail, Outlook, Apple Mail, Thunderbird, GMX and Yahoo.
"""

from __future__ import annotations

import re
from typing import Final

# The beginning of "On Monday, ... wrote:", and its verbs.
_OPENERS: Final = frozenset({
    "on", "am", "le", "el", "em", "il", "op", "den", "på", "w", "dnia", "dne", "ons", "at", "in", "pe", "kl",
    "в", "пн", "вт", "ср", "чт", "пт", "сб", "вс", "ngày", "pada", "vào", "tor", "fre", "lör", "sön", "mån", "tis",
})  # fmt: skip
_VERBS: Final = (
    "wrote", "writes", "schrieb", "schrieben", "a écrit", "a ecrit", "écrit", "escribió", "escribio", "escreveu",
    "ha scritto", "scrisse", "schreef", "geschreven", "skrev", "skrev følgende", "napisał", "napisał(a)", "napisała",
    "pisze", "napsal", "napsal(a)", "kirjoitti", "пишет", "написал", "написала", "написал(а)", "a scris", "írta",
    "yazdı", "şunu yazdı", "写道", "寫道", "のメール", "書きました", "のメッセージ", "작성", "님이 작성", "đã viết", "menulis",
    "said", "has written",
)  # fmt: skip
_NAMED: Final = ("quoting ", "zitat von ", "quote from ", "citando ", "citation de ", "quoted from ")
_HEADERS: Final = {
    "from": "from von de da van från fra od lähettäjä от kimden 差出人 发件人 寄件者 보낸사람 expéditeur remitente od",
    "date": "sent gesendet envoyé enviado inviato verzonden skickat sendt wysłano lähetetty отправлено date datum fecha "
    "data dato дата 送信日時 发送时间 傳送時間 보낸날짜 日時 日付 gönderildi",
    "to": "to an à para a per aan till til do vastaanottaja кому kime 宛先 收件人 받는사람 destinataire",
    "subject": "subject betreff objet asunto assunto oggetto onderwerp ämne emne temat aihe тема konu 件名 主题 主旨 제목",
    "cc": "cc kopie copie 抄送 ccへ",
}
_KIND_OF: Final = {word: kind for kind, words in _HEADERS.items() for word in words.split()}
_ORIGINALS: Final = (
    "original message", "original appointment", "ursprüngliche nachricht", "originalnachricht", "originaltermin",
    "message d'origine", "message original", "mensaje original", "mensagem original", "messaggio originale",
    "oorspronkelijk bericht", "originalmeddelande", "oprindelig meddelelse", "opprinnelig melding", "reply message",
    "wiadomość oryginalna", "исходное сообщение", "元のメッセージ", "original-nachricht", "原始邮件", "原始郵件", "원본 메시지",
    "original mail", "reply to message", "urspr. nachricht",
)  # fmt: skip
_FORWARDS: Final = (
    "forwarded message", "begin forwarded message", "weitergeleitete nachricht", "anfang der weitergeleiteten nachricht",
    "forwarded by", "message transféré", "message réexpédié", "début du message transféré", "début du message réexpédié",
    "mensaje reenviado", "inicio del mensaje reenviado", "mensagem encaminhada", "messaggio inoltrato",
    "doorgestuurd bericht", "転送されたメッセージ", "転送メッセージ", "weitergeleitet von", "пересылаемое сообщение",
)  # fmt: skip
_SUBJECTS: Final = re.compile(
    r"(?i)\s{0,5}(?:fwd?|wg|tr|rv|enc|i|vs|vl|doorst|pd|res?end|weitergeleitet|転送|转发|轉寄|전달)\s{0,3}(?:\[\d+\])?\s{0,3}[:：]"
)
_MOBILE: Final = (
    "sent from my ", "sent from mail for", "sent from yahoo mail", "sent from outlook", "sent via ", "get outlook for",
    "von meinem ", "von meiner ", "gesendet von ", "gesendet mit ", "diese nachricht wurde von meinem", "outlook für",
    "envoyé de mon ", "envoyé depuis ", "envoyé à partir de ", "télécharger outlook", "obtenez outlook",
    "enviado desde ", "enviado de mi ", "enviado do meu", "obtener outlook", "inviato da ", "verstuurd vanaf",
    "skickat från", "sendt fra min", "iphoneから送信", "ipadから送信", "androidから送信", "отправлено с",
    "holen sie sich outlook", "hol dir outlook", "wysłane z", "发自我的", "從我的",
)  # fmt: skip
_RULE: Final = re.compile(r"\s{0,20}(?:[-_=*]{3,}|[\u2500-\u2501]{3,})\s{0,20}")
_LABEL: Final = re.compile(r"[\s*_>|]{0,8}([^\W\d_][^\s:：*]{0,20})[\s*_]{0,4}[:：]")
_TIME: Final = re.compile(r"\d{1,2}[:.h]\d\d|@|\d{4}")
_SIGNATURE: Final = re.compile(r"\s{0,3}(?:--|\u2014|\u2013\u2013)\s{0,3}")
_BRACKETED: Final = re.compile(r"[\s*]{0,4}[-_=]{2,}\s{0,4}(.{4,100}?)\s{0,4}[-_=]{2,}[\s*]{0,4}")
_FIRST: Final = re.compile(r"[\s\-*_<>|\u202a-\u202e]{0,12}([^\s,]{1,20})")
_DATE: Final = re.compile(r"\s{0,5}(?:\d{4}\s?[年/.-]\s?\d{1,2}\s?[月/.-]|\d{1,2}[./]\d{1,2}[./]\d{2})")
_SPACES: Final = "\u00a0\u202f"


def _plain(text: str) -> str:
    """Return a line in lower case, with ordinary blanks and without emphasis around it."""
    for space in _SPACES:
        text = text.replace(space, " ")
    return text.strip(" *_\t\u200b\u200e\u200f").casefold()


def opens_attribution(line: str) -> bool:
    """Tell whether a line may begin a sentence such as "On Monday, ... wrote:"."""
    first = _FIRST.match(line)
    return first is not None and (first[1].casefold().strip(".") in _OPENERS or _DATE.match(line) is not None)


def closes_attribution(text: str) -> bool:
    """Tell whether a text ends as such a sentence does: a verb and a colon, or a verb in its middle and a colon."""
    plain = _plain(text)
    return plain.endswith((":", "：")) and _has_verb(plain)


def ends_attribution(text: str) -> bool:
    """Tell whether a text may be the end of such a sentence."""
    plain = _plain(text)
    return plain.endswith((":", "：", *_VERBS)) or (plain.endswith(">") and _DATE.match(plain) is not None)


def is_attribution(text: str) -> bool:
    """Tell whether a text says who wrote what follows."""
    plain = _plain(text)
    if plain.startswith(_NAMED):
        return True
    return _has_verb(plain) or (_TIME.search(plain) is not None and ("@" in plain or "<" in plain))


def has_time_or_address(text: str) -> bool:
    """Tell whether a text holds a time, a year or an address."""
    return _TIME.search(text) is not None


def _has_verb(plain: str) -> bool:
    return any(verb in plain for verb in _VERBS)


def announces_original(line: str) -> bool:
    """Tell whether a line such as "-----Original Message-----" announces the letter that is answered."""
    found = _BRACKETED.fullmatch(line)
    if found is None:
        return False
    plain = _plain(found[1])
    return plain.startswith(_ORIGINALS) or plain.endswith(_VERBS)


def announces_forward(line: str) -> bool:
    """Tell whether a line announces a forwarded letter."""
    plain = _plain(line).strip("-=_ ")
    return plain.startswith(_FORWARDS) and (len(plain) < 60)


def is_forward(subject: str) -> bool:
    """Tell whether a subject says that the letter is forwarded: Fwd, WG, TR, RV."""
    return _SUBJECTS.match(subject) is not None


def header_of(line: str) -> str:
    """Return which header a line such as "Von: ..." states: from, date, to, cc or subject; "" for another line."""
    found = _LABEL.match(line[:60].replace("\u00a0", " "))
    return _KIND_OF.get(found[1].casefold(), "") if found else ""


def is_rule(line: str) -> bool:
    """Tell whether a line is a horizontal rule."""
    return len(line) < 200 and _RULE.fullmatch(line) is not None


def is_marker(folded: str) -> bool:
    """Tell whether a line in lower case is the marker of a support desk, ours or another, which asks to reply above
    it."""
    if "über dieser zeile" in folded or "oberhalb dieser zeile" in folded:
        return "antwort" in folded or "schreib" in folded
    return "above this line" in folded and ("reply" in folded or "type" in folded or "respond" in folded)


def is_signature_mark(line: str) -> bool:
    """Tell whether a line separates a signature: two hyphens (RFC 3676, 4.3)."""
    return len(line) < 12 and _SIGNATURE.fullmatch(line) is not None


def is_list_footer(lines: list[str]) -> bool:
    """Tell whether the footer of a mailing list begins here: a long rule, and an address to read more at."""
    return len(lines[0].strip()) >= 30 and is_rule(lines[0]) and any("http" in line[:300] for line in lines[1:])


def is_mobile_signature(line: str) -> bool:
    """Tell whether a line names the device or the program from which a letter was sent."""
    return _plain(line).lstrip("<[(").startswith(_MOBILE)
