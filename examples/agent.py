#!/usr/bin/env python3
"""An agent of one turn: a request comes on stdin, the answer goes between the markers. Whatever else it prints is log."""

import json
import os
import sys

request = json.loads(sys.stdin.readline())
print("importing a library that likes to print …")

answer = {"status": "success", "output": {"n": request["input"]["n"], "square": request["input"]["n"] ** 2}}

print(os.environ["BERTH_RESULT_START_MARKER"])
print(json.dumps(answer))
print(os.environ["BERTH_RESULT_END_MARKER"])
print("and again at exit")
