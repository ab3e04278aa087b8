"""Explorables: a picture with knobs. This draws the state it begins with; a script takes over where there is one.

What can be moved stands in `charts/explorables/`, and nothing here knows one of them. The words are the page's: the
question, the knobs' labels, the sentences, the table's heads.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from course_site.charts import explorables
from course_site.charts.explorables import Explorable, Knob, Shown
from course_site.lint import explorable_words
from course_site.lint.values_in_prose import faults_of, unit_of_head
from course_site.pages.block_settings import TEXT, Plain, Shape, read
from course_site.pages.blocks import Block, DirectiveError
from course_site.sessions.run_view import embedded
from course_site.site.render.writer import Writer, div
from course_site.values.values import UnknownName, evaluate

_ANYTHING = Plain("a table", lambda value: isinstance(value, dict))
SETTINGS: dict[str, Shape] = {
    "ask": TEXT, "alt": TEXT, "caption?": TEXT, "knobs": _ANYTHING, "data?": _ANYTHING, "words?": _ANYTHING,
    "says": _ANYTHING, "row": _ANYTHING,
}  # fmt: skip
_KNOB: dict[str, Shape] = {
    "label": TEXT,
    "at": Plain("a place of the knob", lambda _: True),
    "choices?": _ANYTHING,
}
_HOLE = re.compile(r"\{(\w+)\}")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_GROUP = re.compile(r"(?P<stem>[A-Za-z_][\w.]*)\.\*")
SCRIPTS = "assets/js"


def explorable(writer: Writer, block: Block) -> str:
    """Return a picture with knobs, in the state that it begins with."""
    if not writer.has_numbers:
        return div("banner waiting", "Something to try out will appear here once this page is measured.")
    if block.argument not in explorables.known():
        raise DirectiveError(f"unknown explorable; known: {', '.join(explorables.known())}")
    kind = explorables.named(block.argument)
    settings = read(block.text, SETTINGS)
    knobs = {name: _knob(name, kind.KNOBS, said) for name, said in settings["knobs"].items()}
    _complete("knobs", settings["knobs"], kind.KNOBS)
    _complete("data", settings.get("data", {}), kind.DATA)
    _complete("words", settings.get("words", {}), getattr(kind, "WORDS", ()))
    _complete("says", settings["says"], kind.SENTENCES)
    for text in _words(settings):
        writer.lint(text)
    drawn = list(_expressions(settings.get("data", {})))
    writer.of_one_card(drawn, " ".join([settings["ask"], settings.get("caption", ""), *_words(settings)]))
    data: dict[str, Any] = {name: _recorded(writer, said) for name, said in settings.get("data", {}).items()}
    data |= {"given": kind.given(), "names": _names(settings), "card": _card(writer)}
    words = {str(name): {"html": html.escape(str(said))} for name, said in settings.get("words", {}).items()}
    data |= {"words": words} if words else {}
    state = {name: said["at"] for name, said in knobs.items()}
    try:
        shown = kind.work(state, data)
    except KeyError as missing:
        raise DirectiveError(
            f"one of its data has no {missing}, and another has: take names of one group"
        ) from None
    says = {name: str(text) for name, text in settings["says"].items()}
    row = {str(head): str(text) for head, text in settings["row"].items()}
    _tie(writer, settings, shown)
    alt = writer.plain(settings["alt"])
    drawing = explorables.svg(kind, data, shown, alt)
    for fault in _faults_of_words(kind, settings, shown, drawing):
        writer.problem(f"explorable {block.argument}: {fault}")
    key = f"{block.argument}-{len(writer.out.slots)}"
    plan = {"data": data, "says": says, "row": list(row.values())}
    figure = "".join(
        [
            writer.question(settings["ask"]),
            drawing,
            _form(key, kind.KNOBS, knobs, shown),
            f'<p class="says" role="status" aria-live="polite">{_sentence(says, shown, data)}</p>',
            _table(row, shown, data),
            f'<script type="application/json">{embedded(plan)}</script>',
        ]
    )
    scripts = [f"{SCRIPTS}/explorable.js", f"{SCRIPTS}/explorables/{block.argument}.js"]
    needs = [
        f'<link rel="stylesheet" href="{writer.shared("assets/css/explorable.css")}">',
        *(f'<script src="{writer.shared(name)}" defer></script>' for name in scripts),
    ]
    token = writer.slot(
        "".join(need for need in needs if not any(need in raw for raw in writer.out.slots.values()))
        + f'<figure class="chart explorable" id="{key}" data-explorable="{block.argument}">{figure}</figure>'
    )
    writer.out.pictures[token] = drawing, alt
    below = f"\n\n{writer.text(settings['caption'])}\n{{: .caption }}" if settings.get("caption") else ""
    return token + below


def _tie(writer: Writer, settings: Mapping[str, Any], shown: Shown) -> None:
    """Note a recorded value whose unit is not what the words after it, or the head over it, say."""
    for head, text in [
        *((f"{name}:", said) for name, said in settings["says"].items()),
        *settings["row"].items(),
    ]:
        for hole in _HOLE.finditer(str(text)):
            path = shown.texts.get(hole[1], "")
            if isinstance(path, str) or path[0] not in settings.get("data", {}):
                continue
            said = settings["data"][path[0]]
            for part in path[1:]:
                said = said[part] if isinstance(said, dict) else str(said).replace(".*", f".{part}")
            written = str(said).removeprefix("{{").removesuffix("}}")
            expression, _, spec = (part.strip() for part in written.partition(":"))
            behind = str(text)[hole.end() :] or unit_of_head(str(head))
            for fault in faults_of(expression, spec, behind, writer.scope):
                writer.problem(f"explorable: {{{hole[1]}}} is {expression}: {fault}")


def _faults_of_words(
    kind: Explorable, settings: Mapping[str, Any], shown: Shown, drawing: str
) -> Iterator[str]:
    """Yield words that are not of their case, data that are another's, an alternative text of another state."""
    said = {**settings.get("words", {}), **settings["says"]}
    yield from explorable_words.faults_of_cases(kind.CASES, {name: str(text) for name, text in said.items()})
    yield from explorable_words.faults_of_data(kind.DATA, settings.get("data", {}))
    counts = [str(len(found)) for found in settings.get("data", {}).values() if isinstance(found, dict)]
    counts += [str(len(knob["at"])) for knob in settings["knobs"].values() if isinstance(knob["at"], list)]
    knobs = [str(value) for knob in settings["knobs"].values() for value in _flat(knob["at"])]
    labels = [
        text for knob in settings["knobs"].values() for text in map(str, knob.get("choices", {}).values())
    ]
    texts = [text for text in shown.texts.values() if isinstance(text, str)]
    drawn = re.sub(r"<[^>]*>", " ", drawing)
    sentences = [str(said[name]) for name in shown.says]
    yield from explorable_words.faults_of_alt(
        settings["alt"],
        [*counts, *knobs, *labels, *texts, drawn, *sentences, *settings["row"]],
        shown.says,
        getattr(kind, "ALT", {}),
    )


def _flat(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _complete(where: str, given: Mapping[str, Any], wanted: Any) -> None:
    if wrong := [name for name in wanted if name not in given]:
        raise DirectiveError(f"`{where}:` needs {', '.join(wrong)}")
    if wrong := [str(name) for name in given if name not in wanted]:
        raise DirectiveError(f"`{where}:` has {', '.join(wrong)}, which it does not know")


def _knob(name: str, known: Mapping[str, Knob], said: Any) -> dict[str, Any]:
    if name not in known:
        raise DirectiveError(f"unknown knob {name!r}; known: {', '.join(known)}")
    if not isinstance(said, dict):
        raise DirectiveError(f"the knob {name!r} needs a `label:` and its position, `at:`")
    settings = read(json.dumps(said), _KNOB)
    if not known[name].holds(settings["at"]):
        raise DirectiveError(f"the knob {name!r} cannot stand at {settings['at']!r}")
    return settings


def _words(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reader sees of an explorable, for the lint of typed numbers."""
    for knob in settings["knobs"].values():
        yield str(knob["label"])
        yield from map(str, knob.get("choices", {}).values())
    said = [*settings.get("words", {}).values(), *settings["says"].values()]
    yield from map(str, [*said, *settings["row"], *settings["row"].values()])


def _expressions(data: Any) -> Iterator[str]:
    """Yield every recorded value that an explorable asks for, as it is written."""
    if isinstance(data, dict):
        for below in data.values():
            yield from _expressions(below)
    else:
        yield str(data).removeprefix("{{").removesuffix("}}").partition(":")[0]


def _recorded(writer: Writer, said: Any) -> dict[str, Any]:
    """Return a recorded value with the link that prose has, see `Writer.value`; a table of them stays one.

    With a `*` in its expression it becomes a table by what stands in its place. A recorded trace is its columns.
    """
    if isinstance(said, dict):
        return {str(name): _recorded(writer, below) for name, below in said.items()}
    asked = (
        str(said).removeprefix("{{").removesuffix("}}")
    )  # as in prose, where a format would read like a number
    expression, _, spec = (part.strip() for part in asked.partition(":"))
    group = _GROUP.search(expression)
    if (columns := _columns(writer, expression)) is not None:
        return {"value": columns, "html": html.escape(expression)}
    if group is None:
        value = evaluate(expression, writer.scope).value
        return {"value": value, "html": writer.value(expression, spec)}
    names = [name for name, _ in writer.scope.group(group.group())]
    if not names[0].startswith(f"{group['stem']}."):  # another page's, which names them without its own name
        names = [f"{group['stem'].partition('.')[0]}.{name}" for name in names]
    return {
        name.removeprefix(f"{group['stem']}."): _recorded(
            writer, f"{expression.replace(group.group(), name)}:{spec}"
        )
        for name in names
    }


def _columns(writer: Writer, expression: str) -> Any:
    """Return the columns of a recorded trace, by name; None for all else."""
    if not _NAME.fullmatch(expression):
        return None
    try:
        ((_, leaf),) = writer.scope.group(expression)
    except (UnknownName, ValueError):  # a value of a leaf, a definition, several
        return None
    return leaf["columns"] if leaf["kind"] == "trace" else None


def _names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page calls the entries of its tables."""
    tables = [said for said in settings.get("data", {}).values() if isinstance(said, dict)]
    return {str(name): {"html": html.escape(str(name))} for said in tables for name in said}


def _card(writer: Writer) -> str:
    """Return the card that the page was measured on; "" where we have no data sheet of it."""
    return writer.scope.machine.slug if writer.scope.machine else ""


def _value(data: Any, path: list[str]) -> str:
    for part in path:
        data = data[part]
    return str(data["html"])


def filled(template: str, shown: Shown, data: Mapping[str, Any]) -> str:
    """Return a sentence with its numbers: what is worked out is marked, what was recorded is a link to its row."""

    def fill(hole: re.Match[str]) -> str:
        if hole[1] not in shown.texts:
            raise DirectiveError(f"{{{hole[1]}}} is none of {', '.join(shown.texts)}")
        found = shown.texts[hole[1]]
        if isinstance(found, str):
            return f'<span class="computed">{html.escape(found)}</span>'
        return _value(data, found)

    return _HOLE.sub(fill, html.escape(template, quote=False))


def _sentence(says: Mapping[str, str], shown: Shown, data: Mapping[str, Any]) -> str:
    return " ".join(filled(says[name], shown, data) for name in shown.says)


def _table(row: Mapping[str, str], shown: Shown, data: Mapping[str, Any]) -> str:
    heads = "".join(f"<th>{html.escape(head)}</th>" for head in row)
    cells = "".join(f"<td>{filled(text, shown, data)}</td>" for text in row.values())
    return (
        '<details class="data"><summary>This state as a row of a table</summary>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="A row of a table: {html.escape(", ".join(row))}">'
        f"<table><thead><tr>{heads}</tr></thead><tbody><tr>{cells}</tr></tbody></table></div></details>"
    )


def _form(key: str, known: Mapping[str, Knob], knobs: Mapping[str, Any], shown: Shown) -> str:
    """Return the knobs, hidden until a script turns them."""
    made = "".join(_input(f"{key}-{name}", name, known[name], said, shown) for name, said in knobs.items())
    return f'<form class="knobs" autocomplete="off" hidden>{made}</form>'


def _input(key: str, name: str, knob: Knob, said: Mapping[str, Any], shown: Shown) -> str:
    label, at = html.escape(said["label"]), said["at"]
    given = {str(value): text for value, text in said.get("choices", {}).items()}
    choices = {value: given.get(str(value), text) for value, text in knob.choices.items()}
    if knob.kind == "choice":
        radios = "".join(
            f'<label><input type="radio" name="{key}" data-knob="{name}" value="{html.escape(str(value))}"'
            f"{' checked' * (value == at)}><span>{html.escape(str(text))}</span></label>"
            for value, text in choices.items()
        )
        return f'<fieldset class="knob"><legend>{label}</legend><div class="places">{radios}</div></fieldset>'
    if knob.kind == "select":
        options = "".join(
            f'<option value="{html.escape(str(value))}"{" selected" * (value == at)}>{html.escape(str(text))}</option>'
            for value, text in choices.items()
        )
        field = f'<select id="{key}" data-knob="{name}">{options}</select>'
    elif knob.kind == "numbers":
        numbers = ", ".join(f"{number:g}" for number in at)
        field = (
            f'<input type="text" id="{key}" data-knob="{name}" data-numbers="{knob.low} {knob.high}" '
            f'value="{numbers}" spellcheck="false">'
        )
    else:
        high = shown.most.get(name, knob.high)
        field = (
            f'<input type="range" id="{key}" data-knob="{name}"{" data-steps" * (knob.kind == "steps")} '
            f'min="{knob.low}" max="{high}" value="{at}">'
        )
    stands = shown.texts.get(name, "")
    tells = (
        f'<b class="at">{html.escape(stands)}</b>'
        if knob.kind in ("range", "steps") and isinstance(stands, str)
        else ""
    )
    return f'<div class="knob"><label for="{key}">{label} {tells}</label>{field}</div>'
