"""Endpoint: a model behind any server that speaks as OpenAI's does, `POST BASE/chat/completions`.

The key comes from the environment, goes into one header and nowhere else: it is taken out of the environment that the
processes of strangers' files inherit, and a server's words are searched for it before they are shown. No redirect is
followed, since it would carry the key to another host.
"""

from __future__ import annotations

import ast
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from course_harness.proposer import History, Proposal, Stopped, shortened
from course_harness.tasks import Task, Unusable
from course_judge.protocol.verdict import escaped

KEY = "HARNESS_API_KEY"  # the variable that holds the key, unless another is named
REPLY_BYTES = 4 * 2**20
LONGEST_WAIT_S = 60.0
LOOPBACK = ("127.0.0.1", "::1", "localhost")
AGAIN = (408, 409, 425, 429, 500, 502, 503, 504)
FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[^`]*")
ANSWER = "\n\nAnswer with one code block that holds the whole file.\n"


@dataclass(frozen=True)
class Settings:
    """Settings of a server and of its model.

    Attributes:
        base_url: such as http://127.0.0.1:8000/v1
        model: the name that the server knows.
        sampling: temperature, top_p, seed, max_tokens and the like; sent as they are.
        key_from: the variable of the environment with the key; it may be unset, for a server that wants none.
        timeout_s: for each try.
        tries: how often it is asked, at most.
    """

    base_url: str
    model: str
    sampling: Mapping[str, int | float] = field(default_factory=dict)
    key_from: str = KEY
    timeout_s: float = 300.0
    tries: int = 4


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any, **keywords: Any) -> None:
        return None


class Endpoint:
    """Proposer behind a server."""

    name, own = "endpoint", True

    def __init__(
        self,
        settings: Settings,
        words: Callable[[Task], str],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """
        Args:
            settings: server and model.
            words: what the model is told of a task.
            sleep: waits between two tries.
        Raises:
            Unusable: the address is none, or would carry the key in the open.
        """
        self._settings, self._words, self._sleep = settings, words, sleep
        # Taken out: whatever this process starts inherits its environment, workers with strangers' files among them.
        self._key = os.environ.pop(settings.key_from, "").strip()
        _check(settings, bool(self._key))
        self._opener = urllib.request.build_opener(_NoRedirect())

    def described(self) -> dict[str, Any]:
        """Return model and sampling; of the server its host alone, and nothing of the key."""
        parts = urlsplit(self._settings.base_url)
        return {
            "model": self._settings.model,
            "host": parts.hostname or "",
            "sampling": dict(self._settings.sampling),
        }

    def propose(self, task: Task, history: History) -> Proposal:
        """Ask for the next file.

        Raises:
            Stopped: the server did not answer, or said no.
        """
        reply = self._ask(self._body(task, history))
        try:
            choice = reply["choices"][0]
            content = choice["message"]["content"] or ""
            if not isinstance(content, str):
                raise TypeError
        except (KeyError, IndexError, TypeError):
            raise Stopped(
                f"{self._settings.model}: the server's answer has no choices[0].message.content"
            ) from None
        content = self._hide(content)  # once more: JSON may spell it by escapes
        usage = reply.get("usage")
        said = {
            "model": self._short(reply.get("model")),
            "finish_reason": self._short(choice.get("finish_reason")),
            "usage": {
                name: value
                for name, value in (usage.items() if isinstance(usage, dict) else ())
                if isinstance(value, int)
            },
        }
        text = code_of(content, task.name)
        note = "" if text else f"the answer has no code block that defines {task.name}"
        if note and said["finish_reason"] == "length":
            note += "; it was cut at its longest"
        return Proposal(shortened(text), note, said)

    def _body(self, task: Task, history: History) -> bytes:
        messages = [{"role": "user", "content": self._words(task) + ANSWER}]
        for turn in history.turns:
            messages.append({"role": "assistant", "content": f"```python\n{turn.proposal.text}```"})
            messages.append({"role": "user", "content": turn.feedback + ANSWER})
        asked = {"model": self._settings.model, "messages": messages, **self._settings.sampling}
        return json.dumps(asked).encode()

    def _ask(self, body: bytes) -> dict[str, Any]:
        why = ""
        for number in range(self._settings.tries):
            wait = min(2.0**number, LONGEST_WAIT_S)
            try:
                return self._once(body)
            except urllib.error.HTTPError as error:
                why = f"{error.code} {self._clean(error.reason)}{self._complaint(error)}"
                if error.code not in AGAIN:
                    break
                wait = _retry_after(error.headers.get("Retry-After"), wait)
            except (OSError, http.client.HTTPException, ValueError) as error:
                # Its name too: some say nothing else.
                why = f"{type(error).__name__}: {self._clean(getattr(error, 'reason', None) or error)}"
            if number + 1 < self._settings.tries:
                self._sleep(wait)
        tried = f" after {number + 1} tries" if number else ""
        raise Stopped(f"{self._settings.model} at {urlsplit(self._settings.base_url).hostname}: {why}{tried}")

    def _once(self, body: bytes) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        url = self._settings.base_url.rstrip("/") + "/chat/completions"
        request = urllib.request.Request(url, body, headers, method="POST")
        with self._opener.open(request, timeout=self._settings.timeout_s) as answer:
            data = answer.read(REPLY_BYTES + 1)
        if len(data) > REPLY_BYTES:
            raise ValueError(f"its answer is longer than {REPLY_BYTES} bytes")
        found = json.loads(self._hide(data.decode()))
        if not isinstance(found, dict):
            raise ValueError("its answer is no JSON object")
        return found

    def _complaint(self, error: urllib.error.HTTPError) -> str:
        """Return what the server says is wrong, shortened."""
        try:
            told = json.loads(error.read(REPLY_BYTES))
            return f": {self._clean(told['error']['message'])}"
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
            return ""

    def _clean(self, words: object) -> str:
        return escaped(self._hide(str(words)), 200)

    def _short(self, told: object) -> str:
        return escaped(self._hide(told), 100) if isinstance(told, str) else ""

    def _hide(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


def _check(settings: Settings, has_key: bool) -> None:
    try:
        parts = urlsplit(settings.base_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise Unusable("--url: no address; expected such as http://127.0.0.1:8000/v1") from None
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise Unusable("--url: no address; expected such as http://127.0.0.1:8000/v1")
    if parts.username or parts.password:
        raise Unusable(f"--url: holds a password; put the key into {settings.key_from}")
    if has_key and parts.scheme == "http" and host not in LOOPBACK:
        raise Unusable(
            f"--url: {host} without https would get the key in the open; unset {settings.key_from}, or use https"
        )
    if not settings.model:
        raise Unusable("--model: expected the name of a model that the server knows")


def _retry_after(told: str | None, otherwise: float) -> float:
    try:
        return min(max(float(told or ""), 0.0), LONGEST_WAIT_S)
    except ValueError:
        return otherwise


def code_of(reply: str, function: str) -> str:
    """Return the file in a model's reply: its last code block that defines the function; empty where there is none.

    A block that is no Python counts where it names the function: the judge says what is wrong with it. A reply that is
    Python as a whole is taken as it is.
    """
    if _defines(reply, function):
        return reply
    blocks = _blocks(reply)
    for block in reversed(blocks):
        if _defines(block, function):
            return block
    for block in reversed(blocks):
        if re.search(rf"\bdef\s+{re.escape(function)}\b", block):
            return block
    return ""


def _blocks(reply: str) -> list[str]:
    """Return the code blocks of a reply, in one pass; one that is not closed was cut, and is none."""
    found: list[str] = []
    fence, lines = "", list[str]()
    for line in reply.split("\n"):
        mark = line.strip()
        if not fence:
            begins = FENCE.fullmatch(line)
            fence, lines = (begins[1] if begins else ""), []
        elif mark and set(mark) == {fence[0]} and len(mark) >= len(fence):
            found.append("".join(f"{one}\n" for one in lines))
            fence = ""
        else:
            lines.append(line)
    return found


def _defines(text: str, function: str) -> bool:
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return True
        if isinstance(node, ast.Assign) and any(
            isinstance(one, ast.Name) and one.id == function for one in node.targets
        ):
            return True
    return False
