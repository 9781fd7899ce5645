"""Gives a session a turn for each line of stdin, and prints the milliseconds until its result."""

import sys
import time

from berth_client import Berth

with Berth() as berth:
    session = berth.session(sys.argv[1])
    for _ in sys.stdin:
        began = time.perf_counter()
        session.turns.create(input="hello").result()
        print((time.perf_counter() - began) * 1000, flush=True)
