"""Answers with quotes and signatures, as mail programs write them in many languages: folded, never dropped."""

from __future__ import annotations

from tests.letters.cases import Case, case, plain

ANSWER = "Thank you, it prints again."
OLD = "Is the printer on?"

# The sentence before a quote, by language and program.
ATTRIBUTIONS = {
    "Gmail en": "On Mon, Jan 1, 2024 at 10:00 AM Joe <joe@example.org> wrote:",
    "Gmail en wrapped": "On Mon, Jan 1, 2024 at 10:00 AM Joe Longname of Somewhere\n<joe@example.org> wrote:",
    "Gmail en wrapped late": "On Mon, Jan 1, 2024 at 10:00 AM Joe <joe@example.org>\nwrote:",
    "Apple en": "On Jan 1, 2024, at 10:00, Joe <joe@example.org> wrote:",
    "Thunderbird en": "On 1/1/24 10:00, Joe wrote:",
    "Gmail de": "Am Mo., 1. Jan. 2024 um 10:00 Uhr schrieb Joe <joe@example.org>:",
    "ours de": "Am 2024-01-01 10:00 UTC schrieb Joe:",
    "Thunderbird de": "Am 01.01.24 um 10:00 schrieb Joe:",
    "Apple de": "Am 01.01.2024 um 10:00 schrieb Joe <joe@example.org>:",
    "Gmail fr": "Le lun. 1 janv. 2024 à 10:00, Joe <joe@example.org> a écrit :",
    "Thunderbird fr": "Le 01/01/2024 à 10:00, Joe a écrit\u00a0:",
    "Gmail es": "El lun, 1 ene 2024 a las 10:00, Joe (<joe@example.org>) escribió:",
    "Apple es": "El 1 ene 2024, a las 10:00, Joe <joe@example.org> escribió:",
    "Gmail pt": "Em seg., 1 de jan. de 2024 às 10:00, Joe <joe@example.org> escreveu:",
    "Gmail it": "Il giorno lun 1 gen 2024 alle ore 10:00 Joe <joe@example.org> ha scritto:",
    "Gmail nl": "Op ma 1 jan 2024 om 10:00 schreef Joe <joe@example.org>:",
    "Gmail da": "Den man. 1. jan. 2024 kl. 10.00 skrev Joe <joe@example.org>:",
    "Gmail pl": "pon., 1 sty 2024 o 10:00 Joe <joe@example.org> napisał(a):",
    "Gmail ja": "2024年1月1日(月) 10:00 Joe <joe@example.org>:",
    "Outlook ja": "2024/01/01 10:00、Joe <joe@example.org>のメール:",
    "Gmail zh": "Joe <joe@example.org> 于2024年1月1日周一 10:00写道：",
    "Gmail ko": "2024년 1월 1일 (월) 오전 10:00, Joe <joe@example.org>님이 작성:",
    "Gmail ru": "пн, 1 янв. 2024 г. в 10:00, Joe <joe@example.org>:",
    "GMX": "Joe schrieb am 01.01.2024 um 10:00 Uhr:",
    "Horde": "Zitat von Joe <joe@example.org>:",
    "Gnus": "Joe <joe@example.org> writes:",
    "Yahoo": "--- On Mon, 1/1/24, Joe <joe@example.org> wrote:",
    "a name alone": "Joe wrote:",
}

# The headers with which Outlook quotes a whole letter, without signs before its lines.
HEADER_BLOCKS = {
    "en": "From: Joe <joe@example.org>\nSent: Monday, January 1, 2024 10:00 AM\nTo: Jane\nSubject: Printer",
    "en bold": "*From:* Joe <joe@example.org>\n*Sent:* Monday, January 1, 2024 10:00 AM\n*To:* Jane\n*Subject:* Printer",
    "en after a rule": "________________________________\nFrom: Joe <joe@example.org>\nSent: Monday\nTo: Jane\nSubject: Printer",
    "en with Cc": "From: Joe [mailto:joe@example.org]\nSent: Monday\nTo: Jane\nCc: Jim\nSubject: Printer",
    "Apple": "From: Joe <joe@example.org>\nSubject: Printer\nDate: 1 January 2024 at 10:00\nTo: Jane",
    "de": "Von: Joe <joe@example.org>\nGesendet: Montag, 1. Januar 2024 10:00\nAn: Jane\nBetreff: Drucker",
    "GMX": "Gesendet: Montag, 01. Januar 2024 um 10:00 Uhr\nVon: Joe <joe@example.org>\nAn: Jane\nBetreff: Drucker",
    "fr": "De : Joe <joe@example.org>\nEnvoyé : lundi 1 janvier 2024 10:00\nÀ : Jane\nObjet : Imprimante",
    "fr with other blanks": "De\u00a0: Joe <joe@example.org>\nEnvoyé\u00a0: lundi\nÀ\u00a0: Jane\nObjet\u00a0: Imprimante",
    "es": "De: Joe <joe@example.org>\nEnviado el: lunes, 1 de enero de 2024 10:00\nPara: Jane\nAsunto: Impresora",
    "it": "Da: Joe <joe@example.org>\nInviato: lunedì 1 gennaio 2024 10:00\nA: Jane\nOggetto: Stampante",
    "nl": "Van: Joe <joe@example.org>\nVerzonden: maandag 1 januari 2024 10:00\nAan: Jane\nOnderwerp: Printer",
    "da": "Fra: Joe <joe@example.org>\nSendt: 1. januar 2024 10:00\nTil: Jane\nEmne: Printer",
    "sv": "Från: Joe <joe@example.org>\nSkickat: den 1 januari 2024 10:00\nTill: Jane\nÄmne: Skrivare",
    "ja": "差出人: Joe <joe@example.org>\n送信日時: 2024年1月1日 10:00\n宛先: Jane\n件名: プリンター",
    "ja wide": "差出人：Joe <joe@example.org>\n送信日時：2024年1月1日 10:00\n宛先：Jane\n件名：プリンター",
    "zh": "发件人: Joe <joe@example.org>\n发送时间: 2024年1月1日 10:00\n收件人: Jane\n主题: 打印机",
    "ru": "От: Joe <joe@example.org>\nОтправлено: 1 января 2024\nКому: Jane\nТема: Принтер",
}

ORIGINALS = [
    "-----Original Message-----",
    "----- Original Message -----",
    "-----Ursprüngliche Nachricht-----",
    "-------- Original-Nachricht --------",
    "-----Message d'origine-----",
    "-----Mensaje original-----",
    "-----Messaggio originale-----",
    "-----Oorspronkelijk bericht-----",
    "-----Oprindelig meddelelse-----",
    "-----元のメッセージ-----",
    "------ Reply message ------",
]

MOBILE = [
    "Sent from my iPhone",
    "Sent from Outlook for Android",
    "Get Outlook for iOS<https://aka.ms/o0ukef>",
    "Von meinem iPhone gesendet",
    "Diese Nachricht wurde von meinem Android-Mobiltelefon mit GMX Mail gesendet.",
    "Gesendet von Outlook für Android",
    "Envoyé de mon iPhone",
    "Enviado desde mi iPhone",
    "Inviato da iPhone",
    "Verstuurd vanaf mijn iPhone",
    "iPhoneから送信",
    "Отправлено с iPhone",
]

SIGNATURES = ["-- \nJane Doe\nExample Ltd", "--\nJane Doe", "\u2014\nJane Doe\n+44 20 0000"]


def quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def answer(name: str, text: str, *, seen: str = ANSWER, folded: str | None = None, **changed: str) -> Case:
    return case(f"quotes: {name}", plain(text, **changed), text=seen, folded=folded)


CASES: list[Case] = [
    *(
        answer(f"{name}, quoted with signs", f"{ANSWER}\n\n{said}\n\n{quoted(OLD)}\n", folded=f"{said}\n\n{quoted(OLD)}")
        for name, said in ATTRIBUTIONS.items()
    ),
    *(
        answer(f"{name}, answered below", f"{said}\n{quoted(OLD)}\n\n{ANSWER}", folded=f"{said}\n{quoted(OLD)}")
        for name, said in ATTRIBUTIONS.items()
    ),
    *(
        answer(f"headers {name}", f"{ANSWER}\n\n{said}\n\n{OLD}\n\nmore of it", folded=f"{said}\n\n{OLD}\n\nmore of it")
        for name, said in HEADER_BLOCKS.items()
    ),
    *(answer(f"{said}", f"{ANSWER}\n\n{said}\n{OLD}", folded=f"{said}\n{OLD}") for said in ORIGINALS),
    *(answer(f"{said}", f"{ANSWER}\n\n{said}", folded=said) for said in MOBILE),
    *(
        answer(f"{said} above a quote", f"{ANSWER}\n\n{said}\n\nOn Jan 1, 2024, at 10:00, Joe <joe@example.org> wrote:\n> {OLD}")
        for said in MOBILE
    ),
    *(
        answer(f"signature {number}", f"{ANSWER}\n{said}", folded="\n".join(map(str.rstrip, said.split("\n"))))
        for number, said in enumerate(SIGNATURES, 1)
    ),
    answer("a signature below the quote", f"{ANSWER}\n\nJoe wrote:\n> {OLD}\n\n-- \nJane"),
    answer("a signature between", f"{ANSWER}\n-- \nJane\n\nOn Jan 1, 2024, at 10:00, Joe <joe@example.org> wrote:\n> {OLD}"),
    answer("a signature that another quotes", f"Joe wrote:\n> {OLD}\n> -- \n> Joe\n\n{ANSWER}"),
    answer("a long text below two hyphens", "a\n--\n" + "b\n" * 40, seen=("a\n--\n" + "b\n" * 40).strip(), folded=""),
    answer("hyphens alone", "--", seen="--", folded=""),
    answer("no quote", ANSWER, folded=""),
    answer("a quote alone", f"Joe wrote:\n> {OLD}", seen=f"Joe wrote:\n> {OLD}", folded=""),
    answer("a quote without who wrote", f"{ANSWER}\n\n> {OLD}", folded=f"> {OLD}"),
    answer("a quote in a quote", f"{ANSWER}\n\nJoe wrote:\n> Jim wrote:\n>> {OLD}\n> yes", folded=f"Joe wrote:\n> Jim wrote:\n>> {OLD}\n> yes"),
    answer(
        "answers between the lines",
        f"Hi Joe,\n\nOn 1/1/24 10:00, Joe wrote:\n> {OLD}\nYes.\n> And now?\nNo.\n\n> Bye\n",
        seen=f"Hi Joe,\n\nOn 1/1/24 10:00, Joe wrote:\n> {OLD}\nYes.\n> And now?\nNo.",
        folded="> Bye",
    ),
    answer(
        "one answer in the middle of a quote",
        f"On 1/1/24 10:00, Joe wrote:\n> {OLD}\n\nYes.\n\n> Regards\n",
        seen="Yes.",
        folded=f"On 1/1/24 10:00, Joe wrote:\n> {OLD}\n> Regards",
    ),
    answer(
        "answers between the lines, and a greeting",
        f"Hi\n\nJoe wrote:\n> {OLD}\n\nYes.\n\n> Regards",
        seen=f"Hi\n\nJoe wrote:\n> {OLD}\n\nYes.",
        folded="> Regards",
    ),
    *(
        answer(f"{name}, without signs", f"{ANSWER}\n\n{ATTRIBUTIONS[name]}\n\n{OLD}\n\nmore", folded=f"{ATTRIBUTIONS[name]}\n\n{OLD}\n\nmore")
        for name in ("Gmail en wrapped", "Apple en", "Gmail de", "Thunderbird fr", "Gmail es", "Outlook ja", "Gmail da")
    ),
    answer("answers below two quotes", f"Joe wrote:\n> {OLD}\nYes.\n> And now?\nNo.", seen=f"Joe wrote:\n> {OLD}\nYes.\n> And now?\nNo.", folded=""),
    answer("nothing above, only a signature", f"Sent from my iPhone\n\n{ORIGINALS[0]}\n{OLD}", seen=f"Sent from my iPhone\n\n{ORIGINALS[0]}\n{OLD}", folded=""),
    answer("our marker", f"{ANSWER}\n\nOn Jan 1, 2024, at 10:00, Desk <reply+x@desk.example> wrote:\n\nPlease reply above this line\n\n{OLD}"),
    answer("our marker in German", f"{ANSWER}\n\n-- Bitte antworten Sie oberhalb dieser Zeile --\n{OLD}", folded=f"-- Bitte antworten Sie oberhalb dieser Zeile --\n{OLD}"),
    answer("our marker, quoted", f"{ANSWER}\n\nDesk wrote:\n> Please reply above this line\n>\n> {OLD}"),
    answer("our marker within hyphens", f"{ANSWER}\n\n--- Please reply above this line ---\n{OLD}", folded=f"--- Please reply above this line ---\n{OLD}"),
    answer("another desk's marker", f"{ANSWER}\n\n##- Please type your reply above this line -##\n{OLD}"),
    answer("our marker above the answer", f"Please reply above this line\n{OLD}\n{ANSWER}", seen=f"Please reply above this line\n{OLD}\n{ANSWER}", folded=""),
    answer("nothing above the headers", f"{HEADER_BLOCKS['en']}\n\n{OLD}", seen=f"{HEADER_BLOCKS['en']}\n\n{OLD}", folded=""),
    answer("a forwarded letter", f"{ANSWER}\n\n{HEADER_BLOCKS['de']}\n\n{OLD}", seen=f"{ANSWER}\n\n{HEADER_BLOCKS['de']}\n\n{OLD}", folded="", Subject="WG: Drucker"),
    answer(
        "a letter forwarded by Gmail",
        f"See below\n\n---------- Forwarded message ---------\n{HEADER_BLOCKS['en']}\n\n{OLD}",
        seen=f"See below\n\n---------- Forwarded message ---------\n{HEADER_BLOCKS['en']}\n\n{OLD}",
        folded="",
    ),
    answer("a form that looks like headers", "From: Berlin\nTo: Hamburg\nDate: 5 May\n\nPlease book.", seen="From: Berlin\nTo: Hamburg\nDate: 5 May\n\nPlease book.", folded=""),
    answer("a form below a text", "Please book:\n\nVon: Berlin\nNach: Hamburg\nDatum: 5. Mai", seen="Please book:\n\nVon: Berlin\nNach: Hamburg\nDatum: 5. Mai", folded=""),
    answer("a sentence that begins with On", "On Monday it printed.\nHe wrote: no.", seen="On Monday it printed.\nHe wrote: no.", folded=""),
    answer("Am Montag schrieb", "Am Montag schrieb mir Ihr Kollege:\nEs geht.", seen="Am Montag schrieb mir Ihr Kollege:\nEs geht.", folded=""),
    answer("the footer of a list", f"{ANSWER}\n{'_' * 47}\nlist mailing list\nhttp://lists.example.org/", folded=f"{'_' * 47}\nlist mailing list\nhttp://lists.example.org/"),
    answer("a table of rules", "a\n-----\nb\n=====\nc", seen="a\n-----\nb\n=====\nc", folded=""),
    answer(">From in the text", ">From here on it is fine", seen=">From here on it is fine", folded=""),
    answer("an arrow", "menu > file > print", seen="menu > file > print", folded=""),
]  # fmt: skip
