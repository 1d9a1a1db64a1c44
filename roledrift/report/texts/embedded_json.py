"""The texts of a page as JSON in a script element that never runs."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Sequence
from typing import Any

from roledrift.report.texts.episodes import episodes
from roledrift.report.texts.text_blocks import Excerpt, TextBrowser


def embedded_json(browser: TextBrowser) -> str:
    """Encode the texts of ``browser`` as JSON that cannot break out of its script element.

    Packed, it is one JSON string; else an object, in which every ``<`` is an escape.
    """
    text = as_json(browser)
    return f'"{pack(text)}"' if browser.packed else text


def pack(text: str) -> str:
    """Compress ``text`` with gzip and encode it in base64, which a browser can undo by itself.

    The same text gives the same letters wherever zlib is the same.
    """
    # Without a time in its header; level 6 is within two percent of the best.
    squeezed = gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0)
    return base64.b64encode(squeezed).decode("ascii")


def as_json(browser: TextBrowser) -> str:
    """Encode the texts of ``browser`` as compact JSON.

    Rows are short lists and every word that repeats is there once: ten thousand texts have to fit.
    """
    words: dict[str, dict[str, int]] = {"finish": {}, "flags": {}, "prompts": {}, "cuts": {}}

    def index(kind: str, word: str) -> int:
        return words[kind].setdefault(word, len(words[kind]))

    roles = list(dict.fromkeys((*browser.roles, *(excerpt.role for excerpt in browser.items))))
    place = {role: at for at, role in enumerate(roles)}
    groups = _groups(browser.items)
    prompts: dict[str, list[str]] = {}
    rows: list[list[Any]] = []
    for at, excerpt in enumerate(browser.items):
        named = f"{excerpt.prompt}\n{excerpt.prompt_text}"
        prompts.setdefault(named, [excerpt.prompt, excerpt.prompt_text])
        rows.append(
            [
                *(
                    excerpt.key,
                    place[excerpt.role],
                    excerpt.slot,
                    excerpt.turn,
                    excerpt.step,
                    excerpt.tokens,
                ),
                index("finish", excerpt.finish),
                excerpt.reward.text,
                excerpt.advantage.text,
                [index("flags", flag) for flag in excerpt.flags],
                index("prompts", named),
                excerpt.episode,
                groups[at],
                place.get(excerpt.near, -1),
                None
                if excerpt.away is None or not math.isfinite(excerpt.away)
                else round(excerpt.away, 2),
                index("cuts", excerpt.cut),
                excerpt.text,
            ]
        )
    body = {
        **{kind: list(words[kind]) for kind in ("finish", "flags", "cuts")},
        "roles": roles,
        "prompts": list(prompts.values()),
        "rows": rows,
    }
    text = json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _groups(items: Sequence[Excerpt]) -> list[int]:
    """Number of the episode of each text; a text without a name is alone in its own."""
    members = {
        id(excerpt): number
        for number, group in enumerate(episodes(items).values())
        for excerpt in group
    }
    return [members.get(id(excerpt), len(items) + at) for at, excerpt in enumerate(items)]
