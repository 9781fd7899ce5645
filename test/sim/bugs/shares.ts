import { type Bug, PLAIN } from './bug.ts';

/** Mistakes in what a namespace may store. */
const focus = { ...PLAIN, pools: false, storeCeilingBytes: 100_000 };

export const shareBugs: readonly Bug[] = [
  {
    name: 'a namespace is counted with what all others store',
    caughtBy: ['own share'],
    within: 100,
    focus,
    edits: [
      {
        file: 'core/store/ceiling.ts',
        find: '    const { holding, others } = this.usageOf(namespace);\n    const wanted',
        replace:
          '    const { holding: own, others } = this.usageOf(namespace);\n    const holding = { ...own, states: own.states + others };\n    const wanted',
      },
    ],
  },
  {
    name: 'a namespace may store as long as the store has room',
    caughtBy: ['leaves room'],
    within: 100,
    focus,
    edits: [
      {
        file: 'core/store/share.ts',
        find: 'Math.max(0, ceilingBytes - othersBytes) / (1 + 1 / factor));',
        replace: 'Math.max(0, ceilingBytes - othersBytes) / (1 + 0 / factor));',
      },
    ],
  },
  {
    name: 'a turn waits for room that its namespace has',
    caughtBy: ['own share', 'settles', 'works'],
    within: 100,
    focus,
    edits: [
      {
        file: 'core/store/share.ts',
        find: '  return !fitsAgain(rule, held, othersBytes, last) && fitsAgain(rule, own, othersBytes, last);',
        replace: '  return last.state > 20_000 && fitsAgain(rule, own, othersBytes, last);',
      },
    ],
  },
  {
    name: 'a turn gives way to others before it is counted',
    caughtBy: ['history', 'consistent', 'settles'],
    within: 200,
    focus: { ...focus, storeCeilingBytes: 60_000, rates: { slow: 0.3 } },
    edits: [
      {
        file: 'controller/garbage/make-room.ts',
        find: '  return turn.index <= (status.lastTurn?.index ?? 0) && !isLater(turn.state, status.state);',
        replace: '  return turn.index < Infinity || !isLater(turn.state, status.state);',
      },
      {
        file: 'controller/garbage/make-room.ts',
        find: 'index !== last && refs.length > 0',
        replace: 'index !== last + 1 && refs.length > 0',
      },
    ],
  },
];
