#!/usr/bin/env python3
"""An agent that remembers: what stands in BERTH_STATE_DIR after a turn is there again in the next one, in whatever pod."""

import json
import os
import pathlib
import sys

request = json.loads(sys.stdin.readline())
file = pathlib.Path(os.environ["BERTH_STATE_DIR"], "notes.json")
notes = json.loads(file.read_text()) if file.exists() else []
notes.append(request["input"])
file.write_text(json.dumps(notes))

print(f"turn {request['turn']['index']} in incarnation {request['session']['incarnation']}")
print(os.environ["BERTH_RESULT_START_MARKER"])
print(json.dumps({"status": "success", "output": {"notes": notes}}))
print(os.environ["BERTH_RESULT_END_MARKER"])
