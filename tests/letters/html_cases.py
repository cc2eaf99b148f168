"""HTML of letters, as text and as HTML that is safe to show."""

from __future__ import annotations

from tests.letters.cases import Case, case, letter, part

CUT = "The formatted letter is long; its end is in the original only."
# The HTML, and its text.
TEXTS = {
    "paragraphs": ("<p>a</p><p>b</p>", "a\n\nb"),
    "lines": ("a<br>b<br/>c", "a\nb\nc"),
    "blocks": ("<div>a</div><div>b</div>", "a\nb"),
    "Outlook's paragraphs": ('<p class="MsoNormal">a</p><p class="MsoNormal">b</p>', "a\nb"),
    "paragraphs without margin": ('<p style="margin:0">a</p><p style="margin:0">b</p>', "a\nb"),
    "empty lines of Gmail": ("<div>a</div><div><br></div><div>b</div>", "a\n\nb"),
    "blanks": ("<p>  a \n\n b&nbsp;&nbsp;c </p>", "a b c"),
    "entities": ("<p>&lt;b&gt; &amp; &euro; &#8364; &#x20AC; &unknown;</p>", "<b> & € € € &unknown;"),
    "huge entities": ("<p>a&#99999999999999;b&#0;c", None),
    "a list": ("<ul><li>a</li><li>b</li></ul>", "- a\n- b"),
    "a numbered list": ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
    "a list in a list": ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "- a\n  - b\n- c"),
    "a table": ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a  b\nc"),
    "headings": ("<h1>a</h1>b", "a\n\nb"),
    "a rule": ("a<hr>b", "a\n\n---\n\nb"),
    "a quote": ("<blockquote>a<br>b</blockquote>", "> a\n> b"),
    "a quote in a quote": ("a<blockquote>b<blockquote>c</blockquote></blockquote>", None),
    "code": ("<pre>a\n  b\n</pre>", "a\n  b"),
    "a link": ('<a href="https://example.org/x">here</a>', "here (https://example.org/x)"),
    "a link that shows itself": ('<a href="https://example.org/">https://example.org</a>', "https://example.org"),
    "an address": ('<a href="mailto:a@example.org">a@example.org</a>', "a@example.org"),
    "a link that lies": (
        '<a href="https://evil.example/">https://bank.example</a>',
        "https://bank.example (https://evil.example/)",
    ),
    "a link of a script": ('<a href="javascript:alert(1)">x</a>', "x"),
    "a very long link": (f'<a href="https://example.org/{"x" * 500}">x</a>', "x"),
    "a link without an end": ('<a href="https://example.org/">x<p>y', None),
    "a picture with a text": ('<img src="https://example.org/a.png" alt="Logo">', "[Logo]"),
    "a picture of the letter": ('<img src="cid:a@b">', "[image]"),
    "a pixel": ('<img src="https://example.org/p.gif" width=1 height=1>x', "x"),
    "a script": ("<script>alert('</p>')</script>x", "x"),
    "a style": ("<style>p { color: red }</style>x", "x"),
    "a script without an end": ("x<script>alert(1)", None),
    "a title": ("<html><head><title>t</title></head><body>x</body></html>", "x"),
    "comments": ("a<!-- x -->b<!--[if mso]>c<![endif]-->d", "abd"),
    "an empty comment": ("a<!-->b", "ab"),
    "a comment without an end": ("a<!-- b", "a"),
    "the text of other programs than Outlook": ("<!--[if !mso]><!-->a<!--<![endif]-->", "a"),
    "tags of Office": ("<o:p>a</o:p>", "a"),
    "text before a nested document": ("a<html><body><p>b</p></body></html>", "a\n\nb"),
    "unclosed tags": ("<div><b>a<p>b", "a\n\nb"),
    "crossed tags": ("<b>a<i>b</b>c</i>", "abc"),
    "closed tags alone": ("</div></p></td>a", "a"),
    "attributes without quotes": ("<p class=x title=it's>a</p>", "a"),
    "a sign in an attribute": ('<p title="a > b">c</p>', "c"),
    "a quote that never ends": ('<p title="a>b</p>c', "b\nc"),
    "less than": ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
    "a less-than sign before a letter": ("a <b", None),
    "a tag that never ends": ("a<p title=", "a"),
    "no tags": ("just text", "just text"),
    "nothing": ("", ""),
    "a zero byte": ("a\x00b", "ab"),
    "318 blocks in each other": ("<div>" * 318 + "a" + "</div>" * 318, "a"),
    "20,000 blocks in each other": ("<div>" * 20_000 + "a", "a"),
    "2,000 quotes in each other": ("<blockquote>" * 2_000 + "a", "> " * 8 + "a"),
    "4,000 formats in paragraphs": ("".join(f"<p><font color=c{n}>" for n in range(4_000)) + "a", "a"),
    "3,000 tables in each other": ("<table><tr><td>" * 3_000 + "a", "a"),
    "100,000 less-than signs": ("<" * 100_000, "<" * 100_000),
    "100,000 comments without an end": ("a" + "<!--" * 100_000, "a"),
    "100,000 styles without an end": ("a" + "<style>" * 100_000, "a"),
    "100,000 attributes": ("<p " + "a=1 " * 100_000 + ">b", "b"),
    "100,000 quotes without an end": ("<a b='" * 100_000, None),
}
# The HTML, and the HTML that is shown.
SHOWN = {
    "formats": ("<p>a <b>b</b> <i>c</i></p>", "<p>a <b>b</b> <i>c</i></p>"),
    "unclosed tags": ("<p>a<p>b", "<p>a</p><p>b</p>"),
    "scripts": ("a<script>alert(1)</script><p onclick='x()'>b</p>", "a<p>b</p>"),
    "styles that load": (
        '<p style="background:url(https://example.org/x);color:red">a</p>',
        '<p style="color:red">a</p>',
    ),
    "a form": ("<form action=x><input name=a><button>b</button></form>", "b"),
    "a frame": ('<iframe src="https://example.org"></iframe>a', "a"),
    "a drawing": ("<svg><script>alert(1)</script></svg>a", "a"),
    "a link": (
        '<a href="https://example.org/">a</a>',
        '<a href="https://example.org/" target="_blank" rel="nofollow noopener noreferrer">a</a>',
    ),
    "a link of a script": (
        '<a href="JaVaScRiPt:alert(1)">a</a>',
        '<a target="_blank" rel="nofollow noopener noreferrer">a</a>',
    ),
    "a link of data": (
        '<a href="data:text/html,x">a</a>',
        '<a target="_blank" rel="nofollow noopener noreferrer">a</a>',
    ),
    "a link to the portal": (
        '<a href="/acme/settings/">a</a>',
        '<a target="_blank" rel="nofollow noopener noreferrer">a</a>',
    ),
    "a picture": ('<img src="https://example.org/a.png" onerror="x()">', '<img data-src="https://example.org/a.png">'),
    "a picture without a scheme": ('<img src="//example.org/a.png">', '<img data-src="https://example.org/a.png">'),
    "a picture of the letter": ('<img src="cid:a@b">', '<img alt="image">'),
    "a picture in data": (f'<img src="data:image/png;base64,{"A" * 500}">', '<img alt="image">'),
    "a picture in the background": ('<table background="https://example.org/a.png"><tr><td>a</td></tr></table>', None),
    "an escaped tag": ("&lt;script&gt;alert(1)&lt;/script&gt;", "&lt;script&gt;alert(1)&lt;/script&gt;"),
    "a tag in an attribute": ('<img alt="<script>alert(1)</script>" src=x>', None),
    "a quote in an attribute": ("<p title='\" onclick=\"x()'>a</p>", '<p title="&quot; onclick=&quot;x()">a</p>'),
    "cells": (
        "<table><tr><td>a<td>b<tr><td>c</table>",
        "<table><tbody><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></tbody></table>",
    ),
    "an end in a cell": (
        "<div><table><tr><td>a</div>b</td></tr></table></div>",
        "<div><table><tbody><tr><td>ab</td></tr></tbody></table></div>",
    ),
    "a link in a link": ('<a href="https://a.example">a<a href="https://b.example">b</a></a>', None),
}


def html(name: str, source: str, **expected: object) -> Case:
    return case(f"HTML: {name}", letter(part("text/html; charset=utf-8", source.encode())), **expected)


CASES: list[Case] = [
    *(html(name, source, text=text) for name, (source, text) in TEXTS.items()),
    *(html(f"shown, {name}", source, html=shown) for name, (source, shown) in SHOWN.items()),
    html("remote images are told", '<img src="https://example.org/a.png">', remote_images=True),
    html("no remote images are told", '<img src="cid:a">', remote_images=False),
    html("100,000 paragraphs", "<p>a</p>" * 100_000, text=None, remarks=[CUT, "The letter is long; its end is in the original only."]),
    html("3 MB", "<p>" + "a" * 3_000_000, remarks=[CUT, "The letter is long; its end is in the original only."]),
    html("a picture of 3 MB in data", f'<p>a<img src="data:image/png;base64,{"A" * 3_000_000}">', text="a", remarks=[]),
    html(
        "a quote of Gmail",
        '<div>Yes.</div><div class="gmail_quote"><div>On Mon, Jan 1, 2024 at 10:00 AM Joe &lt;joe@example.org&gt; wrote:<br></div><blockquote>No?</blockquote></div>',
        text="Yes.",
        folded="On Mon, Jan 1, 2024 at 10:00 AM Joe <joe@example.org> wrote:\n\n> No?",
    ),
    html(
        "a quote of Outlook",
        '<p class=MsoNormal>Yes.</p><div style="border-top:solid #E1E1E1 1.0pt"><p class=MsoNormal><b>From:</b> Joe &lt;joe@example.org&gt;<br><b>Sent:</b> Monday<br><b>To:</b> Jane<br><b>Subject:</b> Printer</p></div><p class=MsoNormal>No?</p>',
        text="Yes.",
        folded="From: Joe <joe@example.org>\nSent: Monday\nTo: Jane\nSubject: Printer\nNo?",
    ),
]  # fmt: skip
