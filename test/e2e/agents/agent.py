"""An agent as people write them: it prints whatever it likes, keeps a note in its state folder, and puts its result between the markers."""
import json
import os
import sys
import time

START = os.environ["BERTH_RESULT_START_MARKER"]
END = os.environ["BERTH_RESULT_END_MARKER"]


def main():
    request = json.loads(sys.stdin.readline())
    given = request["input"] or {}
    print("loading model... 100%", end="")
    print("\nwarning: deprecated call", file=sys.stderr)
    print('{"output": "not the result"}')
    print("api key: sk-abcdefghijklmnop")

    notes_file = os.path.join(os.environ["BERTH_STATE_DIR"], "notes.json")
    notes = []
    if os.path.exists(notes_file):
        with open(notes_file) as file:
            notes = json.load(file)
    if "note" in given:
        notes.append(given["note"])
        with open(notes_file, "w") as file:
            json.dump(notes, file)
        print("noted", given["note"], file=sys.stderr)
    time.sleep(given.get("sleep", 0))
    if given.get("fail"):
        envelope = {"status": "error", "error": given["fail"], "output": None}
    else:
        output = {"notes": notes, "turn": request["turn"]["name"], "sum": sum(given.get("numbers", []))}
        envelope = {"status": "success", "output": output, "turn_count": len(notes)}
    sys.stdout.write("a line with no end" + START + json.dumps(envelope) + END)
    print("goodbye")
    print("thread still talking")


main()
