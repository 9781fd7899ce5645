"""An agent that keeps a diary: it reads dates as people write them and remembers them from turn to turn."""

import json
import os
import pathlib
import sys
from datetime import datetime

import humanize
from dateutil import parser


def answer(envelope):
    print(os.environ["BERTH_RESULT_START_MARKER"], json.dumps(envelope), os.environ["BERTH_RESULT_END_MARKER"])


def read(file):
    """The entries that earlier turns of the session kept, as {"when": ISO 8601, "what": text}."""
    return json.loads(file.read_text()) if file.exists() else []


def lines(entries):
    before = None
    for entry in entries:
        when = datetime.fromisoformat(entry["when"])
        later = f" ({humanize.naturaldelta(when - before)} later)" if before else ""
        yield f"{when:%Y-%m-%d %H:%M} {entry['what']}{later}"
        before = when


def main():
    asked = json.loads(sys.stdin.readline())["input"]
    file = pathlib.Path(os.environ["BERTH_STATE_DIR"], "diary.json")
    entries = read(file)
    print(f"{len(entries)} entries are in the diary")  # goes to the log of the turn: it is not between the markers
    try:
        entries.append({"when": parser.parse(asked["when"]).isoformat(), "what": asked["what"]})
    except ValueError as error:
        answer({"status": "error", "error": f"when: {error}"})
        return
    entries.sort(key=lambda entry: entry["when"])
    file.write_text(json.dumps(entries))
    answer({"status": "success", "output": {"diary": list(lines(entries))}})


main()
