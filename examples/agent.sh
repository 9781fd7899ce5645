#!/bin/sh
# An agent in a line of shell: the request on stdin, the answer between the markers.
read -r request
echo "a request of ${#request} characters came"
printf '%s\n{"status": "success", "output": "hello from %s"}\n%s\n' \
  "$BERTH_RESULT_START_MARKER" "$(uname -s)" "$BERTH_RESULT_END_MARKER"
