"""The report in at most 200 lines of Markdown, for pull requests and CI summaries."""

from __future__ import annotations

from roledrift.report.model import (
    Advice,
    AlertCard,
    Block,
    Cell,
    Note,
    Pairs,
    Prose,
    Report,
    RunReport,
    Section,
    Table,
)
from roledrift.report.sanitise import escaped, fenced, one_line
from roledrift.report.texts.diffing import side

LINES = 200
"""Most lines that a rendering has."""

_SHOWN = ("summary", "alerts", "verdicts", "costs", "data")
_TEXT = 400
_ROWS = 30


def render_markdown(report: Report) -> str:
    """Render ``report`` as Markdown; what does not fit is left out and named at the end."""
    head = [f"# {escaped(report.title)}", ""]
    for block in report.overview:
        head += _block(block)
    tail = [f"Made by roledrift {report.version}: `{one_line(report.command.replace('`', ''))}`"]
    room = LINES - len(head) - len(tail) - 2
    body: list[str] = []
    left_out: list[str] = []
    for run in report.runs:
        for chunk, name in _chunks(run, several=len(report.runs) > 1):
            if len(body) + len(chunk) <= room:
                body += chunk
            else:
                left_out.append(f"{run.name}: {name}")
    if left_out:
        named = ", ".join(escaped(name) for name in left_out[:8])
        more = f" and {len(left_out) - 8} more" if len(left_out) > 8 else ""
        tail.insert(0, f"Left out for length (see index.html): {named}{more}.")
        tail.insert(1, "")
    return "\n".join((head + body + tail)[:LINES]) + "\n"


def _chunks(run: RunReport, *, several: bool) -> list[tuple[list[str], str]]:
    """Pieces of a run in the order in which they are given up last."""
    title = [f"## {escaped(run.name)}", ""] if several else []
    facts = " · ".join(escaped(fact) for fact in (*run.facts, *run.notes))
    notices = [line for notice in run.notices for line in (f"> {escaped(notice)}", "")]
    chunks = [
        (
            [
                *title,
                f"**{run.state}**: {escaped(run.headline)}",
                "",
                *notices,
                facts,
                "",
            ],
            "headline",
        )
    ]
    sections = {section.key: section for section in run.sections}
    for key in _SHOWN:
        if key in sections:
            chunks += _section(sections[key])
    return chunks


def _section(section: Section) -> list[tuple[list[str], str]]:
    chunks: list[tuple[list[str], str]] = []
    lines = [f"### {escaped(section.title)}", ""]
    for block in section.blocks:
        if isinstance(block, AlertCard):
            chunks.append((_card(block), f"alert {block.title}"))
        else:
            lines += _block(block)
    return [(lines, section.title), *chunks] if len(lines) > 2 else chunks


def _card(card: AlertCard) -> list[str]:
    lines = [f"#### {escaped(card.title)}", "", escaped(card.facts), ""]
    for block in card.blocks:
        lines += _block(block)
    return lines


def _block(block: Block) -> list[str]:
    if isinstance(block, Prose):
        return [escaped(block.text), ""]
    if isinstance(block, Note):
        items = [f"- {escaped(item)}" for item in block.items[:_ROWS]]
        if len(block.items) > _ROWS:
            items.append(f"- {len(block.items) - _ROWS} more")
        return [escaped(block.text), "", *items, *([""] if items else [])]
    if isinstance(block, Advice):
        items = [f"{index}. {escaped(item)}" for index, item in enumerate(block.items, start=1)]
        return [f"{escaped(block.title)}:", "", *items, ""]
    if isinstance(block, Table) and not block.collapsed:
        return _table(block)
    if isinstance(block, Pairs):
        return _pairs(block)
    return []


def _table(table: Table) -> list[str]:
    if not table.rows:
        return []
    title = [f"{escaped(table.title)}:", ""] if table.title else []
    lines = [
        *title,
        _row([escaped(column) for column in table.columns]),
        _row(["---"] * len(table.columns)),
    ]
    lines += [_row([_cell(cell) for cell in row]) for row in table.rows[:_ROWS]]
    hidden = len(table.rows) - _ROWS
    return [*lines, "", *([f"{hidden} more rows.", ""] if hidden > 0 else [])]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    note = f" ({escaped(cell.note)})" if cell.note else ""
    return f"{escaped(cell.text)}{note}"


def _pairs(block: Pairs) -> list[str]:
    lines = [f"{escaped(block.title)}:", ""]
    for pair in block.pairs:
        sides = ((pair.left, side(pair.pieces, "-")), (pair.right, side(pair.pieces, "+")))
        for excerpt, text in sides:
            head = f"{excerpt.when}, step {excerpt.step}, {excerpt.tokens} tokens"
            head += f", reward {excerpt.reward.text}"
            lines += [f"{escaped(head)}:", "", *fenced(one_line(text, _TEXT)).split("\n"), ""]
    return lines
