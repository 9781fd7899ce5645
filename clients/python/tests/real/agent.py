"""Agent of the tests: its input says what it does."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import berth_agent

given = json.loads(sys.stdin.readline())["input"]
print("begun", flush=True)
output = given.get("print", json.dumps(given.get("question")))
if "ask" in given:
    decision = berth_agent.approve(given["ask"], {"branch": "old"})
    output = json.dumps({"decision": decision["decision"], **decision["response"]})
for n in range(given.get("events", 0)):
    berth_agent.event({"n": n})
    print("line", n, flush=True)
if "file" in given:
    path = os.path.join(os.environ["BERTH_OUTPUT_DIR"], given["file"])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write("content" * 1000)
time.sleep(given.get("sleep", 0))
if "fail" in given:
    berth_agent.error(given["fail"])
    sys.exit()
print(os.environ["BERTH_RESULT_START_MARKER"])
print('{"status": "success", "output": %s}' % output)
print(os.environ["BERTH_RESULT_END_MARKER"])
