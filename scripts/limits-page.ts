import { apiConfig } from '../api/config.ts';
import { maxQueuedTurns } from '../controller/settings/queued-turns.ts';
import { DEFAULT_RESOURCES } from '../controller/settings/resources.ts';
import { MAX_TIMEOUT_SECONDS } from '../core/enter/command-start.ts';
import { DEFAULT_HISTORY, DEFAULT_TIMEOUTS, DEFAULT_TTL } from '../core/resources/defaults.ts';
import * as limits from '../core/resources/limits.ts';
import { TIMEOUTS } from '../core/resources/schema.ts';
import { DEFAULT_TIMEOUT_SECONDS, NO_READER_MS } from '../runner/commands/command.ts';
import { KEPT_MS, LOG_ROOM_BYTES, MAX_ENDED, MAX_RUNNING } from '../runner/commands/commands.ts';
import { KEPT_BYTES, WINDOW_BYTES } from '../runner/commands/log.ts';

const table = (head: string[], rows: string[][]) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);

/** Size as people write it: 16 KiB, 64 MiB. */
function size(bytes: number): string {
  const { KiB, MiB } = limits;
  return bytes % MiB === 0 ? `${bytes / MiB} MiB` : `${bytes / KiB} KiB`;
}

function time(seconds: number): string {
  const [unit, of] = (
    [
      ['days', 86_400],
      ['h', 3600],
      ['min', 60],
    ] as const
  ).find(([, of]) => seconds % of === 0) ?? ['s', 1];
  return `${seconds / of} ${unit}`;
}

/** Returns the page of all limits and defaults, whose figures are those of the programs. `notice`: how it is made. */
export function limitsPage(notice: string): string {
  const api = apiConfig.parse({});
  const { requests: requested, limits: allowed } = DEFAULT_RESOURCES;
  const amount = (resource: string) => `${allowed[resource]} (reserved: ${requested[resource]})`;
  return [
    '# Limits and defaults',
    '',
    `<!-- ${notice} -->`,
    '',
    'The class of a session sets most of these; a session sets what its class allows. `kubectl explain sessionclass.spec` describes every field.',
    '[Editing a session](sessions.md#editing-a-session) tells from when on a change counts.',
    '',
    '## Times',
    '',
    ...table(
      ['field', 'default', 'meaning'],
      Object.entries(TIMEOUTS).map(([name, text]) => [
        `\`timeouts.${name}\``,
        DEFAULT_TIMEOUTS[name as keyof typeof TIMEOUTS] ?? 'no limit',
        text,
      ]),
    ),
    `| \`ttlAfterFinished\` | ${DEFAULT_TTL.finished.One}, with \`turns: Many\` ${DEFAULT_TTL.finished.Many} | Time from the end of a finished session until it is deleted. |`,
    `| \`ttlAfterSuspended\` | ${DEFAULT_TTL.suspended} | Time that a session may be suspended until it is deleted. |`,
    '',
    'A class bounds the timeouts by `maxTimeouts`. [Suspension](suspension.md) explains them.',
    '',
    '## A pod',
    '',
    ...table(
      ['resource', 'limit by default', 'beyond it'],
      [
        ['CPU', amount('cpu'), 'processes get less time'],
        ['memory', amount('memory'), 'the turn ends as [`MemoryLimit`](sandbox.md) or `OOMKilled`'],
        ['disk of the node', amount('ephemeral-storage'), 'the pod is evicted; the turn ends as `DiskFull`'],
      ],
    ),
    '',
    'These hold where neither session nor class sets `resources`. The classes of the chart set some; `kubectl get sessionclass default -o yaml` shows them.',
    'The embedded cluster limits [memory alone](sandbox.md#on-the-embedded-cluster).',
    '',
    '## A turn',
    '',
    ...table(
      ['what', 'limit', 'beyond it'],
      [
        ['input', size(limits.MAX_INPUT_BYTES), 'refused'],
        [
          'nested arrays and objects of JSON',
          `${limits.MAX_JSON_DEPTH}`,
          'refused, or the turn ends as `InputTooDeep`',
        ],
        ['output', size(limits.MAX_OUTPUT_BYTES), 'the turn fails as `OutputTooLarge`'],
        [
          'output in the Turn itself',
          size(limits.MAX_INLINE_OUTPUT_BYTES),
          'stored behind `outputRef`; `berth get turn` shows it',
        ],
        ['log', size(limits.MAX_LOG_BYTES), 'its beginning is dropped, and `log.truncated` says so'],
        [
          'artifacts by default',
          `${size(limits.DEFAULT_ARTIFACT_BYTES)}, ${limits.DEFAULT_ARTIFACT_FILES} files`,
          'named as left out',
        ],
        [
          'artifacts at most',
          `${size(limits.MAX_ARTIFACT_BYTES)}, ${limits.MAX_ARTIFACT_FILES} files`,
          'a class may not allow more',
        ],
        [
          'an event of the agent',
          size(limits.MAX_EVENT_BYTES),
          'refused; as a line of JSON lines, it is text of the log',
        ],
        [
          'the text of a question, its payload',
          `${size(limits.MAX_PROMPT_BYTES)}, ${size(limits.MAX_PAYLOAD_BYTES)}`,
          'refused',
        ],
        ['attempts', `${limits.MAX_ATTEMPTS}`, 'refused'],
      ],
    ),
    '',
    '## A session',
    '',
    ...table(
      ['what', 'limit', 'set by'],
      [
        ['waiting turns', `${maxQueuedTurns(undefined)}`, '`limits.maxQueuedTurns` of the class'],
        [
          'ended turns that are kept',
          `${DEFAULT_HISTORY.turns}, and ${DEFAULT_HISTORY.bytes}`,
          '`history.turns`, `history.bytes`',
        ],
        ['what these have in the store', DEFAULT_HISTORY.stored, '`history.stored`'],
        ['state, packed', size(limits.MAX_STATE_BYTES), '`persistence.maxState`, at most this'],
        [
          'files of the agent, unpacked',
          `${size(limits.MAX_AGENT_FILES_BYTES)}, ${limits.MAX_AGENT_FILES.toLocaleString('en-US')} files`,
          'fixed',
        ],
        ['files in `inline`', size(limits.MAX_INLINE_FILES_BYTES), 'fixed'],
        ['an Environment, packed', size(limits.MAX_ENVIRONMENT_BYTES), 'fixed'],
        [
          'all Blobs of a cluster',
          size(limits.DEFAULT_STORE_CEILING_BYTES),
          '`controller.storeCeilingBytes` of the chart',
        ],
      ],
    ),
    '',
    '[Capacity](capacity.md) has the limits of running sessions, [the sandbox](sandbox.md#limits-of-an-agents-processes) those of processes.',
    '',
    '## Commands in a session',
    '',
    ...table(
      ['what', 'limit'],
      [
        ['commands at once', `${MAX_RUNNING}`],
        [
          'time of a command',
          `${time(DEFAULT_TIMEOUT_SECONDS)}; with \`--timeout\` at most ${time(MAX_TIMEOUT_SECONDS)}`,
        ],
        ['output that nobody has read, before a command waits', size(WINDOW_BYTES)],
        ['newest output that is kept of a detached one', size(KEPT_BYTES)],
        ['output of all commands on the pod’s disk', size(LOG_ROOM_BYTES)],
        ['time without a client until a command is ended, unless it is detached', time(NO_READER_MS / 1000)],
        ['ended commands that are kept', `${MAX_ENDED}, for ${time(KEPT_MS / 1000)}`],
      ],
    ),
    '',
    '## Requests to a replica of the HTTP API',
    '',
    ...table(
      ['requests at the same time', 'default', 'chart'],
      [
        ['all', `${api.BERTH_API_MAX_REQUESTS}`, '`api.limits.requests`'],
        ['that wait for a turn', `${api.BERTH_API_MAX_WAITS}`, '`api.limits.waits`'],
        ['that follow a log or events', `${api.BERTH_API_MAX_STREAMS}`, '`api.limits.streams`'],
        ['for an output, a log or an artifact', `${api.BERTH_API_MAX_CONTENTS}`, '`api.limits.contents`'],
        [
          'into sessions: commands, files, ports',
          [api.BERTH_API_MAX_COMMANDS, api.BERTH_API_MAX_TRANSFERS, api.BERTH_API_MAX_PORTS].join(', '),
          '`api.limits.commands`, `transfers`, `ports`',
        ],
      ],
    ),
    '',
    `One caller gets ${api.BERTH_API_CALLER_SHARE} % of each, and ${api.BERTH_API_CALLER_RATE} requests a second. Beyond them requests are answered 429 or 503, with Retry-After.`,
    '',
  ].join('\n');
}
