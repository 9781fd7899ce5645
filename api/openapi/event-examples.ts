import type { EventType, StreamEvent } from '../../core/follow/events.ts';

/** An example of each type of event, with its id in the stream of its session. */
export const eventExamples: { [T in EventType]: { id: string; event: Extract<StreamEvent, { type: T }> } } = {
  session: {
    id: '1204.1190.1.0.7f0c6f4e',
    event: {
      type: 'session',
      data: {
        session: 'notes',
        uid: '7f0c6f4e-4c39-4c4e-9f4a-1f7d0f0b9c11',
        phase: 'Queued',
        reason: 'AtCapacity',
        message: 'All 20 slots are taken; position 3 in the queue.',
        incarnation: 1,
        queue: { position: 3, since: '2026-01-01T12:00:00Z' },
      },
    },
  },
  turn: {
    id: '1204.1207.1.0.7f0c6f4e',
    event: {
      type: 'turn',
      data: {
        session: 'notes',
        turn: 'notes-4',
        uid: '0b7b6d5c-93ae-4f6b-8f2f-0d2f3b6a8e52',
        phase: 'Succeeded',
        index: 4,
        attempt: 1,
        incarnation: 1,
        startedAt: '2026-01-01T12:00:04Z',
        finishedAt: '2026-01-01T12:00:09Z',
        exitCode: 0,
        outputBytes: 27,
      },
    },
  },
  approval: {
    id: '1204.1211.1.2.7f0c6f4e',
    event: {
      type: 'approval',
      data: {
        session: 'notes',
        turn: 'notes-5',
        requestId: '5d1c0a9be2f47a13',
        prompt: 'Deploy to production?',
        since: '2026-01-01T12:01:00Z',
        decided: { decision: 'Approve', by: 'jane', at: '2026-01-01T12:02:00Z' },
      },
    },
  },
  usage: {
    id: '1204.1214.1.2.7f0c6f4e',
    event: {
      type: 'usage',
      data: {
        session: 'notes',
        turn: 'notes-5',
        usage: { wall: 12.5, cpuSeconds: 3.1, peakMemoryBytes: 73400320, processes: 4 },
      },
    },
  },
  artifacts: {
    id: '1204.1206.1.0.7f0c6f4e',
    event: {
      type: 'artifacts',
      data: {
        session: 'notes',
        turn: 'notes-4',
        artifacts: [
          {
            name: 'report/index.html',
            bytes: 5120,
            digest: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
          },
        ],
        leftOut: { count: 1, entries: [{ name: 'cache', reason: 'Symlink' }] },
      },
    },
  },
  agent: {
    id: '1204.1214.1.3.7f0c6f4e.1767268805127000000.4',
    event: {
      type: 'agent',
      data: {
        session: 'notes',
        turn: 'notes-5',
        at: '2026-01-01T12:02:03.127Z',
        event: { tool: 'search', query: 'berth' },
      },
    },
  },
  log: {
    id: '1204.1214.1.3.7f0c6f4e.1767268806004000000.1',
    event: { type: 'log', data: { session: 'notes', text: 'reading 12 files' } },
  },
  dropped: { id: '1204.1214.1.9.7f0c6f4e', event: { type: 'dropped', data: { session: 'notes', events: 6 } } },
  deleted: {
    id: '1204.1219.1.9.7f0c6f4e',
    event: {
      type: 'deleted',
      data: { session: 'notes', turn: 'notes-1', uid: 'c0a4b1de-2b59-4c5c-8d0f-5a3e2f7f9d20' },
    },
  },
};
