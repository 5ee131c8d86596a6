"""`python -m benchmarks extremes`: the slowest calls over extreme values, printed and written into docs/performance.md.

The calls are those of `tests/extreme_values.py`, of which one in so many is made here: three minutes.
"""

from __future__ import annotations

import collections
import pathlib
import platform

from tests.extreme_values import GROUPS, Outcome, outcomes

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- extremes -->\n", "<!-- end of extremes -->\n"
EVERY = {"orders": 29, "draws": 3, "solvers": 13, "sizes": 1, "functions": 193, "distributions": 41}
SHOWN = 4  # slowest cases of a group


def table() -> None:
    lines = [
        f"One run on Python {platform.python_version()}, processor time.",
        "",
        "| group | cases | calls | at fault | slowest call | ms |",
        "|---|---|---|---|---|---|",
    ]
    for group in GROUPS:
        calls: collections.Counter[str] = collections.Counter()
        slowest: dict[str, Outcome] = {}
        faults = 0
        for outcome in outcomes(group, every=EVERY[group]):
            calls[outcome.case] += 1
            faults += bool(outcome.text)
            if outcome.seconds >= slowest.setdefault(outcome.case, outcome).seconds:
                slowest[outcome.case] = outcome
        first = f"{group} | {len(calls)} | {calls.total():,} | {faults}"
        for outcome in sorted(slowest.values(), key=lambda o: -o.seconds)[:SHOWN]:
            lines.append(f"| {first} | {outcome.case} `{outcome.arguments}` | {outcome.seconds * 1e3:.1f} |")
            first = " | | | "
    text = "\n".join(lines) + "\n"
    print(text)
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    PAGE.write_text(before + BEGIN + text + END + rest.split(END)[1])
