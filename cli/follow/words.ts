/** Events of a stream as lines for people. */
import type { StreamEvent } from '../../core/follow/events.ts';
import { formatDuration } from '../../core/resources/duration.ts';
import { clip } from '../../core/resources/limits.ts';
import { printable, printableLine, printableName } from '../print/printable.ts';

/** Length of an agent's event in words, bytes. */
const EVENT_BYTES = 400;

/** Returns the line for an event, safe for a terminal. Colours of printed lines stay where `style` is true. */
export function inWords(event: StreamEvent, style = false): string {
  switch (event.type) {
    case 'session': {
      const { session, phase, reason, message, queue } = event.data;
      const place = queue?.position === undefined ? '' : `, number ${queue.position} in the queue`;
      return `session ${session} ${phase}${place}${why(reason, message)}`;
    }
    case 'turn': {
      const { turn, phase, reason, message, error } = event.data;
      return `turn ${turn} ${phase}${afterTime(event.data)}${error ? why(error.code, error.message) : why(reason, message)}`;
    }
    case 'approval': {
      const { turn, prompt, decided } = event.data;
      if (!decided) return `turn ${turn} asks: ${printableLine(prompt)}`;
      const by = decided.by ? ` by ${printableLine(decided.by)}` : '';
      const verb = decided.decision === 'Approve' ? 'approved' : 'denied';
      return `turn ${turn} ${verb}${by}${decided.note ? `: ${printableLine(decided.note)}` : ''}`;
    }
    case 'usage': {
      const { turn, usage } = event.data;
      const memory = usage.peakMemoryBytes === undefined ? '' : `, ${(usage.peakMemoryBytes / 2 ** 20).toFixed(0)} MiB`;
      const cpu = usage.cpuSeconds === undefined ? '' : `, ${usage.cpuSeconds.toFixed(1)} s of CPU`;
      return `turn ${turn} has run for ${usage.wall.toFixed(0)} s${cpu}${memory}`;
    }
    case 'artifacts': {
      const { turn, artifacts, leftOut } = event.data;
      const names = artifacts.map(({ name, bytes }) => `${printableName(name)} (${bytes} bytes)`).join(', ');
      const without = leftOut ? `; ${leftOut.count} left out` : '';
      return `turn ${turn} left ${clip(names || 'no file', EVENT_BYTES)}${without}`;
    }
    case 'agent':
      return `${event.data.turn}: ${clip(printable(flat(event.data.event)), EVENT_BYTES)}`;
    case 'log':
      return printable(event.data.text, style);
    case 'dropped': {
      const { events } = event.data;
      return events === 1 ? 'one event of the agent was lost' : `${events} events of the agent were lost`;
    }
    case 'deleted': {
      const { session, turn } = event.data;
      return turn === undefined ? `session ${session} deleted` : `turn ${turn} deleted`;
    }
  }
}

/** Returns the duration of an ended turn as ` after 6s`; nothing for another one. */
export function afterTime({
  startedAt,
  finishedAt,
}: {
  startedAt?: string | undefined;
  finishedAt?: string | undefined;
}) {
  if (!startedAt || !finishedAt) return '';
  return ` after ${formatDuration(Math.max(0, Date.parse(finishedAt) - Date.parse(startedAt)))}`;
}

function why(reason: string | undefined, message: string | undefined): string {
  if (!reason) return '';
  return `: ${reason}${message ? `: ${printableLine(message)}` : ''}`;
}

/** An event's fields as `tool: search, query: berth`; what lies deeper as JSON. */
function flat(event: unknown): string {
  if (typeof event === 'string') return event;
  if (typeof event !== 'object' || event === null || Array.isArray(event) || Object.keys(event).length === 0)
    return JSON.stringify(event);
  const fields = Object.entries(event).map(
    ([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return fields.join(', ').replace(/\s+/g, ' ');
}
