"""Agent of the scenarios: does what its input says, and adds the input's mark to the file of runs."""

import json
import os
import sys
import time

sys.path.insert(0, os.environ["AGENT_MODULE"])
import berth_agent

request = json.loads(sys.stdin.readline())
given = request["input"]
with open(os.environ["RUNS_FILE"], "a") as runs:
    runs.write(given["mark"] + "\n")
lines = given.get("lines", 0)
events = given.get("events", lines)
for n in range(max(lines, events)):
    if n < lines:
        print("line", n, "of ünï😀", flush=True)
    if n < events:
        time.sleep(given.get("pace", 0))
        berth_agent.event({"n": n, "text": "ünï😀" + "x" * given.get("bytes", 0)})
time.sleep(given.get("sleep", 0))
if "ask" in given:
    print("told", berth_agent.approve(given["ask"], {"why": "conformance"})["decision"], flush=True)
for name, size in given.get("files", {}).items():
    with open(os.path.join(os.environ["BERTH_OUTPUT_DIR"], name), "wb") as file:
        file.write((bytes(range(251)) * (size // 251 + 1))[:size])
if "fail" in given:
    berth_agent.error(given["fail"])
else:
    print(os.environ["BERTH_RESULT_START_MARKER"])
    print('{"status": "success", "output": ' + given.get("output", "null") + "}")
    print(os.environ["BERTH_RESULT_END_MARKER"])
