"""The small table of the four weeks on the page of the arc says what handbook/sessions/cohort.toml says."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_the_four_weeks_is_the_plan() -> None:
    text = (ROOT / "handbook/00_before_you_teach/the_whole_arc.py").read_text(encoding="utf-8")
    rows = re.findall(r"^# \| (\d) \|(.*)\|$", text, re.MULTILINE)
    said = {
        (int(week), day): [name.lower() for name in re.findall(r"\[(\w+)\]", cell)]
        for week, cells in rows
        for day, cell in enumerate(cells.split("|"), 1)
        if cell.strip()
    }
    plan = tomllib.loads((ROOT / "handbook/sessions/cohort.toml").read_text(encoding="utf-8"))
    assert said == {(day["week"], day["day"]): day["sessions"] for day in plan["day"]}
