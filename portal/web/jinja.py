"""Set up Jinja2 for the pages: its environment, and the functions and filters that every template may use.

Other packages have theirs in a module with GLOBALS and FILTERS, which settings.TEMPLATES names. Django's admin, and the
pages that extend it, keep Django's templates.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from functools import lru_cache
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.forms.renderers import TemplatesSetting
from django.http import HttpRequest
from django.middleware.csrf import get_token
from django.template import defaultfilters
from django.templatetags.static import static
from django.utils import translation
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from jinja2 import Environment, StrictUndefined, Template, Undefined, nodes, pass_context, pass_eval_context
from jinja2.compiler import CodeGenerator, Frame, optimizeconst
from jinja2.nodes import EvalContext
from jinja2.runtime import Context, Macro
from jinja2.utils import _PassArg
from jinja2.visitor import NodeTransformer
from markupsafe import Markup, escape
from markupsafe._speedups import _escape_inner

from portal import clock
from portal.web import access, desk_prefix, locales
from portal.web.locales import Locale
from portal.web.stash import PAGE_MARK

SCRIPTS: Final = Path(settings.BASE_DIR) / "static" / "js"
_TEXT: Final = r'"((?:[^"\\]|\\.)*)"'
MARKED: Final = re.compile(rf"\bn?gettext\(\s*{_TEXT}(?:,\s*{_TEXT})?")


@lru_cache(maxsize=1)
def marked() -> frozenset[tuple[str, str]]:
    """Return the texts that scripts mark, each with its form for many, "" where it has none."""
    scripts = (path.read_text() for path in SCRIPTS.glob("*.js"))
    return frozenset((one, many) for script in scripts for one, many in MARKED.findall(script))


def script_words() -> Markup:
    """Return the element with the texts of scripts in the language of the page. English needs none."""
    return _element(locales.current().language)


@lru_cache(maxsize=8)
def _element(language: str) -> Markup:
    with translation.override(language):
        told = {
            one: [translation.ngettext(one, many, count) for count in (1, 2)] if many else translation.gettext(one)
            for one, many in sorted(marked())
        }
    return Markup('<template id="words">{}</template>').format(json.dumps(told, ensure_ascii=False))


def escaped(value: Any) -> str:
    """Return a value as HTML, equal to `markupsafe.escape`, which makes two objects for each value on a page."""
    kind = type(value)
    if kind is str:
        return _escape_inner(value)
    if kind is int:
        return str(value)
    return value if kind is Markup else escape(value)


class PageTemplate(Template):
    """A compiled template that escapes by the function above."""

    @classmethod
    def _from_namespace(cls, environment: Environment, namespace: Any, globals: Any) -> Template:
        namespace |= {"escape": escaped, "escape_text": _escape_inner, "fill": str.__mod__}
        namespace |= {"texts": _texts, "language": locales.language}
        return super()._from_namespace(environment, namespace, globals)


_ESCAPE_BEGINS: Final = "(escape_text(_v) if (_t := type(_v := "
_ESCAPE_ENDS: Final = ")) is str else _v if _t is Markup else escape(_v))"


class PageCode(CodeGenerator):
    """Compile what a page does hundreds of times without calls of Python: each value that is escaped, each attribute.

    A template gives all of its text at once, and not each piece by itself through all templates around it. Functions
    of GLOBALS are called directly, a text of ours is found and filled in without a call, and a kept piece found.
    """

    _written: nodes.Expr | None = None  # the text of ours that goes onto the page as it is

    def enter_frame(self, frame: Frame) -> None:
        super().enter_frame(frame)
        if frame.parent is None:  # a template's or a block's own
            self.buffer(frame)

    def leave_frame(self, frame: Frame, with_python_scope: bool = False) -> None:
        if frame.parent is None:
            self.writeline(f"yield concat({frame.buffer})")
        super().leave_frame(frame, with_python_scope=with_python_scope)

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        if _is_text(node, frame):
            self._written = node
        elif _is_escaped(frame):
            self.write(_ESCAPE_BEGINS)
        else:
            super()._output_child_pre(node, frame, finalize)

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        if _is_text(node, frame):
            self._written = None
        elif _is_escaped(frame):
            self.write(_ESCAPE_ENDS)
        else:
            super()._output_child_post(node, frame, finalize)

    @optimizeconst
    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:
        name = repr(node.attr)
        self.write(f"(_o[{name}] if type(_o := ")
        self.visit(node.node, frame)
        self.write(f") is dict and {name} in _o else _v if (_v := getattr(_o, {name}, missing)) is not missing")
        self.write(f" else environment.getattr(_o, {name}))")

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:
        if _is_text(node, frame):
            self._write_text(node, frame)
            return
        called: Any = self.environment.globals.get(node.node.name) if isinstance(node.node, nodes.Name) else None
        wanted = _PassArg.from_obj(called) if called else _PassArg.context
        if wanted in (_PassArg.context, _PassArg.environment) or node.dyn_args or node.dyn_kwargs:
            super().visit_Call(node, frame, forward_caller=forward_caller)
            return
        self.visit(node.node, frame)
        self.write("(context.eval_ctx, " if wanted else "(")
        for one in (*node.args, *node.kwargs):
            self.visit(one, frame)
            self.write(", ")
        self.write(")")

    @optimizeconst
    def visit_Filter(self, node: nodes.Filter, frame: Frame) -> None:
        kept: Mapping[str, Any] = getattr(self.environment, "kept", {})
        if node.name not in kept or node.node is None or node.dyn_args or node.dyn_kwargs:
            super().visit_Filter(node, frame)
            return
        self.write(f"environment.kept[{node.name!r}](language(), ")
        self.visit(node.node, frame)
        for one in (*node.args, *node.kwargs):
            self.write(", ")
            self.visit(one, frame)
        self.write(")")

    def _write_text(self, node: nodes.Call, frame: Frame) -> None:
        """Write what `text` returns."""
        found = f"texts[language()][{node.args[0].as_const()!r}]"
        if not node.kwargs:
            self.write(found)
            return
        self.write(f"fill({found}, {{" if node is self._written else f"Markup(fill({found}, {{")
        for one in node.kwargs:
            self.write(f"{one.key!r}: {_ESCAPE_BEGINS}")
            self.visit(one.value, frame)
            self.write(f"{_ESCAPE_ENDS}, ")
        self.write("})" if node is self._written else "}))")


def _is_escaped(frame: Frame) -> bool:
    return bool(frame.eval_ctx.autoescape) and not frame.eval_ctx.volatile


def _is_text(node: nodes.Node, frame: Frame) -> bool:
    """Tell whether an expression is a text of ours on a page, `_("...", name=value)`."""
    return (
        isinstance(node, nodes.Call)
        and isinstance(node.node, nodes.Name)
        and node.node.name == "_"
        and [type(one) for one in node.args] == [nodes.Const]
        and not (node.dyn_args or node.dyn_kwargs)
        and _is_escaped(frame)
    )


class _Inlining(NodeTransformer):
    """Put what a template includes in its place, with names of its own: Jinja makes a context for each."""

    def __init__(self, environment: PageEnvironment) -> None:
        self._environment = environment

    def visit_Include(self, node: nodes.Include) -> nodes.Node:
        if not isinstance(node.template, nodes.Const) or not node.with_context or node.ignore_missing:
            return node
        name = node.template.value
        source, filename, _ = self._environment.loader.get_source(self._environment, name)  # type: ignore[union-attr]
        return nodes.Scope(self._environment._parse(source, name, filename).body, lineno=node.lineno)


class PageEnvironment(Environment):
    """An environment in which a key of a dict comes before its methods, as in Django's templates.

    An undefined name is an error, but for the templates of forms that are Django's own.
    """

    template_class = PageTemplate
    code_generator_class = PageCode
    of_forms: Environment | None = None
    kept: Mapping[str, Callable[..., str]] = {}  # pieces by name, of a language and their arguments

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        page = super()._parse(source, name, filename)
        # A running development server sees changes of what is included.
        return page if self.auto_reload else _Inlining(self).visit(page)

    def getattr(self, obj: Any, attribute: str) -> Any:
        if type(obj) is dict and attribute in obj:
            return obj[attribute]
        try:
            return getattr(obj, attribute)
        except AttributeError:
            return self.getitem(obj, attribute)

    def make_globals(self, d: Any) -> Any:
        """Return the names that each template knows: one dict of all, where Jinja makes a chain for each template."""
        return {**self.globals, **d} if d else self.globals

    def get_template(self, name: Any, *args: Any, **options: Any) -> Template:
        if self.of_forms and str(name).startswith(("django/forms/widgets/", "django/forms/errors/")):
            return self.of_forms.get_template(name, *args, **options)
        return super().get_template(name, *args, **options)


def environment(*, libraries: Sequence[str], **options: Any) -> Environment:
    """Return the environment of all pages. `libraries` are modules with GLOBALS, FILTERS and PIECES.

    PIECES are macros by template, each with the number of its results that are kept: a page has the same pieces many
    times. A macro knows nothing but its arguments and the language, so these and their types are the whole key: safe
    HTML equals a text.
    """
    # cache_size: all templates stay, and none has to be found in the order of their use.
    ours = {"undefined": StrictUndefined, "keep_trailing_newline": True, "cache_size": -1}
    made = PageEnvironment(**{**options, **ours})
    modules = [import_module(library) for library in (__name__, *libraries)]
    for library in modules:
        made.globals.update(library.GLOBALS)
        made.filters.update(library.FILTERS)
    for library in modules:
        for template, sizes in library.PIECES.items():
            macros = made.get_template(template).module
            kept = {name: _kept(getattr(macros, name), size) for name, size in sizes.items()}
            made.kept = {**made.kept, **kept}
            made.filters.update({name: _in_language(piece) for name, piece in kept.items()})
    made.of_forms = made.overlay(undefined=Undefined, keep_trailing_newline=False)
    return made


def _kept(macro: Macro, size: int) -> Callable[..., str]:
    """Return a macro that keeps its latest results, by language, which comes before its arguments."""
    return lru_cache(size, typed=True)(lambda language, *args, **options: macro(*args, **options))


def _in_language(kept: Callable[..., str]) -> Callable[..., str]:
    def piece(*args: Any, **options: Any) -> str:
        return kept(locales.language(), *args, **options)

    # Else Jinja would render one with constant arguments when the template is compiled, in the language of that moment.
    piece.jinja_pass_arg = _PassArg.context  # type: ignore[attr-defined]  # as `pass_context` does
    return piece


class _Texts(dict[str, Markup]):
    """Texts of ours as safe HTML in one language."""

    def __missing__(self, message: str) -> Markup:
        found = self[message] = Markup(gettext(message))  # noqa: S704  # ours, or its translation
        return found


_texts: Final = defaultdict[str, _Texts](_Texts)  # by language; each is asked for in the one in use


@pass_eval_context
def text(page: EvalContext, message: str, /, **values: Any) -> str:
    """Return a text of ours in the language of the page, as `_()` in templates: safe HTML, with the values escaped; in
    plain text, such as that of a mail, nothing is escaped.

    A message is a literal of a template, never a value: a test sees to it. So what is kept here is bounded.
    """
    if not page.autoescape:
        return gettext(message) % values if values else gettext(message)
    found = _texts[locales.language()][message]
    return _filled_in(page, found, values) if values else found


@pass_eval_context
def text_of_count(page: EvalContext, one: str, many: str, num: int, /, **values: Any) -> str:
    """Return a text of ours in the form that the language has for a count, as `ngettext()` in templates.

    %(num)s is the count, written with the marks of the person's form.
    """
    return _filled_in(page, ngettext(one, many, num), {"num": grouped(num), **values})


def _filled_in(page: EvalContext, message: str, values: dict[str, Any]) -> str:
    """Return a text with its values: `Markup` would make an object around each of them."""
    if not page.autoescape:
        return str.__mod__(message, values)
    return Markup(str.__mod__(message, {name: escaped(one) for name, one in values.items()}))  # noqa: S704  # escaped


class PageForms(TemplatesSetting):
    """The renderer of forms. Nearly all lists of errors are empty, and cost no template."""

    def render(self, template_name: str, context: dict[str, Any], request: HttpRequest | None = None) -> SafeString:
        if template_name.startswith("django/forms/errors/") and not context["errors"]:
            return SafeString("")
        return SafeString(super().render(template_name, context, request))


@pass_context
def form_guard(context: Context, kept: str = "") -> Markup:
    """Return the two hidden inputs of every POST form: Django's CSRF token and the mark of person and tenant.

    `kept` is the mark of a form that is sent again. It stands where nobody can say who is calling, because the
    engine is down; where the tenant is known, the page belongs to that one.
    """
    request = context["request"]
    tenant = getattr(request, "tenant", None)
    mark = tenant.page_mark if tenant else kept
    made: tuple[str, Markup] | None = getattr(request, "form_guard", None)  # a page has several forms
    if made is None or made[0] != mark:
        inputs = f'<input type="hidden" name="csrfmiddlewaretoken" value="{get_token(request)}">'
        if mark:
            inputs += f'<input type="hidden" name="{PAGE_MARK}" value="{escape(mark)}">'
        made = request.form_guard = mark, Markup(inputs)  # noqa: S704  # Django's token is of letters and digits
    return made[1]


@pass_context
def switched_off_while_closing(context: Context, page: Markup) -> Markup:
    """Put a disabled fieldset into each form that would be refused, where the desk at work is closing.

    Each view declares whether a closing desk takes its form. So no template has to ask, and a new form is switched
    off without being told to.
    """
    request = context.get("request")
    if not getattr(getattr(request, "tenant", None), "closes_at", ""):
        return page
    return Markup(_FORM.sub(lambda form: _switched_off(form, request), str(page)))  # noqa: S704  # of the page's own pieces


_FORM = re.compile(r"(<form\b[^>]*>)(.*?)(</form>)", re.DOTALL)
_OFF = '<fieldset class="switched-off" disabled>'
_POSTS = re.compile(r'\bmethod="post"', re.IGNORECASE)
_ACTION = re.compile(r'\baction="([^"?#]*)')


def _switched_off(form: re.Match[str], request: Any) -> str:
    begin, inner, end = form.groups()
    action = _ACTION.search(begin)
    if (
        _OFF in inner
        or not _POSTS.search(begin)
        or not access.is_shut_while_closing((action and action[1]) or request.path)
    ):
        return form[0]
    return f"{begin}{_OFF}{inner}</fieldset>{end}"


_STYLES = ("variables", "base", "components", "queue", "ticket", "dashboard", "desk", "pages", "search", "articles")
_MODULES = (
    *(
        "words",
        "page",
        "files",
        "forms",
        "limits",
        "menus",
        "selection",
        "drafts",
        "keyboard",
        "neighbours",
        "updates",
        "folds",
        "undo",
    ),
    *("search", "completion", "composer", "articles", "zone", "live", "due"),
)


@lru_cache(maxsize=1)
def assets() -> Markup:
    """Name what every page loads: style sheets, htmx, our modules. The same for all pages, so addressed once."""
    links = [Markup('<link rel="icon" href="{}" type="image/svg+xml">').format(static("img/favicon.svg"))]
    links += [Markup('<link rel="stylesheet" href="{}">').format(static(f"css/{name}.css")) for name in _STYLES]
    links.append(Markup('<script src="{}" defer></script>').format(static("django_htmx/htmx-2.min.js")))
    links += [Markup('<script type="module" src="{}"></script>').format(static(f"js/{name}.js")) for name in _MODULES]
    return Markup("\n  ".join(links))  # noqa: S704  # of safe strings


@lru_cache(maxsize=1)
def outside_assets() -> Markup:
    """Name what the pages of people outside the desks load: a few of the style sheets, and no script."""
    sheets = ("variables", "base", "components", "articles", "outside")
    links = [Markup('<link rel="stylesheet" href="{}">').format(static(f"css/{name}.css")) for name in sheets]
    return Markup("\n  ".join(links))  # noqa: S704  # of safe strings


@lru_cache(maxsize=128)
def icon(name: str) -> Markup:
    """Return a symbol of the page's sprite (`portal/_sprite.html`), for the eye only."""
    return Markup('<svg class="icon icon-{}" aria-hidden="true"><use href="#i-{}"/></svg>').format(name, name)


_LONG_WORD = re.compile(r"\S{24,}")
_BREAKS = re.compile(r"(?<=[@/.,?&=_])(?=[^/\W])")


def breakable(text: str) -> Markup:
    """Return text whose long words, such as addresses, break behind their parts where they do not fit, and not within
    them."""
    plain, words = _LONG_WORD.split(text), _LONG_WORD.findall(text)
    broken = [Markup("<wbr>").join(_BREAKS.split(word)) for word in words]
    return Markup().join(piece for pair in zip_longest(plain, broken, fillvalue="") for piece in pair)


_CODE = re.compile(r"`([^`]+)`")


def coded(text: str) -> Markup:
    """Return text of ours whose words between backticks are shown as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704  # escaped before


def stamps_as_moments(text: str, *, is_exact: bool = True) -> Markup | str:
    """Return a text as it is, but a stored stamp as a moment, with its seconds and zone where it is exact."""
    if clock.is_stamp(text):
        with suppress(ValueError, OverflowError):  # people may name a thing like a stamp of no day, or of the last one
            at = clock.parse(text)
            return locales.current().exact(at, seconds=True) if is_exact else moment(at)
    return text


def when(moment: datetime | None) -> Markup | str:
    """Return a moment as a person says it, with the exact time for who asks."""
    if moment is None:
        return ""
    locale = locales.current()
    return Markup(f"{_time_begins(locale, moment)}{locale.ago(moment)}</time>")  # noqa: S704  # as in _time


def moment(moment: datetime, *, seconds: bool = False) -> Markup:
    """Return day and time of a moment, with the zone for who asks."""
    locale = locales.current()
    return _time(moment, locale.moment(moment, seconds=seconds), locale.exact(moment, seconds=seconds))


def time_of_day(moment: datetime, *, seconds: bool = False) -> Markup:
    """Return the time of a moment without its day, with both and the zone for who asks."""
    locale = locales.current()
    return _time(moment, locale.time(moment, seconds=seconds), locale.exact(moment, seconds=seconds))


def exact(moment: datetime, *, seconds: bool = False) -> str:
    """Return day, time and zone of a moment as plain text."""
    return locales.current().exact(moment, seconds=seconds)


def day(day: date) -> Markup | str:
    """Return a day. That of a moment is the day in the person's zone, with the exact time for who asks."""
    locale = locales.current()
    return _time(day, locale.day(day), locale.exact(day)) if isinstance(day, datetime) else locale.day(day)


def short_day(day: date) -> str:
    return locales.current().short_day(day)


def grouped(count: int) -> str:
    """Write 1234567 as 1,234,567, with the marks that the person has chosen."""
    return locales.current().number(count)


@lru_cache(maxsize=8192)
def _time_begins(locale: Locale, moment: datetime) -> str:
    return f'<time datetime="{moment.isoformat()}" title="{locale.exact(moment)}">'


def _time(moment: datetime, said: str, exact: str) -> Markup:
    # Not escaped: none of the three can hold markup, and a page shows dozens.
    return Markup(f'<time datetime="{moment.isoformat()}" title="{exact}">{said}</time>')  # noqa: S704


@lru_cache(maxsize=4096)
def initials(name: str) -> str:
    words = [w for w in str(name).split() if w[0].isalnum()] or ["?"]
    return (words[0][0] + (words[-1][0] if len(words) > 1 else "")).upper()


@lru_cache(maxsize=4096)
def hue(name: str) -> int:
    """Return one of eight colours, by a digest of the name."""
    return hashlib.blake2b(str(name).encode(), digest_size=1).digest()[0] % 8


GLOBALS: Final = {
    "_": text,
    "ngettext": text_of_count,
    "locale": locales.current,
    "url": desk_prefix.address,
    "script_words": script_words,
    "static": static,
    "form_guard": form_guard,
    "assets": assets,
    "outside_assets": outside_assets,
}
PIECES: Final = {"portal/pieces.html": {"shortcuts": 64}}
FILTERS: Final = {
    **{
        name: getattr(defaultfilters, name)
        for name in ("capfirst", "date", "floatformat", "pluralize", "truncatechars", "urlencode")
    },
    "breakable": breakable,
    "coded": coded,
    "day": day,
    "exact": exact,
    "file_size": locales.file_size,
    "grouped": grouped,
    "hue": hue,
    "icon": icon,
    "in_sentence": locales.in_sentence,
    "initials": initials,
    "moment": moment,
    "short_day": short_day,
    "stamps_as_moments": stamps_as_moments,
    "switched_off_while_closing": switched_off_while_closing,
    "time_of_day": time_of_day,
    "when": when,
}
