import { eventLine } from '../../core/pod-log/agent-events.ts';
import { jsonBytes, MAX_EVENT_BYTES } from '../../core/resources/limits.ts';
import { checkDepth, redactValue } from '../../core/result/output.ts';
import type { Hidden } from '../../core/text/hidden.ts';

/**
 * Events of agents as lines of the pod's readable text, numbered over all turns of the pod. They are no frames: whoever
 * follows a session reads its text, and a second, sealed copy would only fill the container's log.
 */
export class AgentEvents {
  readonly #secrets: Hidden;
  #last = 0;

  constructor(secrets: Hidden) {
    this.#secrets = secrets;
  }

  /**
   * Returns the line of an event and the number of values hidden in it. Throws when the event is too large or nested too
   * deep. `at`: RFC 3339 with milliseconds.
   */
  line(event: unknown, turn: string, at: string): { line: string; redactions: number } {
    checkDepth(event, 'the event');
    let redactions = 0;
    const redacted = redactValue(event, this.#secrets.outputs, () => {
      redactions += 1;
    });
    const bytes = jsonBytes(redacted);
    if (bytes > MAX_EVENT_BYTES)
      throw new RangeError(`the event has ${bytes} bytes as JSON; at most ${MAX_EVENT_BYTES} are taken`);
    this.#last += 1;
    return { line: eventLine({ seq: this.#last, turn, at, event: redacted }), redactions };
  }
}
