import type { Bug } from './bug.ts';

/** Mistakes in what people are told who follow sessions. */
export const followerBugs: readonly Bug[] = [
  {
    name: 'a follower opens the log of whatever pod has the name',
    caughtBy: ['told of its own'],
    within: 200,
    focus: { followers: true },
    edits: [
      {
        file: 'core/pod-log/open.ts',
        find: '  if (!pod || !isPodOf(pod, of)) return undefined;',
        replace: '  void [of, isPodOf];\n  if (!pod) return undefined;',
      },
    ],
  },
  {
    name: 'a log is not checked for the pod that has the name once it is open',
    caughtBy: ['told of its own'],
    within: 200,
    focus: { followers: true, rates: { slow: 0.3 } },
    edits: [
      {
        file: 'core/pod-log/open.ts',
        find: '    if (!isChecked) await stillThere(api, pod, options.signal);\n',
        replace: '',
      },
    ],
  },
  {
    name: 'the place of a follower does not move with the lines that it is told',
    caughtBy: ['told once'],
    within: 200,
    focus: { followers: true },
    edits: [{ file: 'core/follow/session-events.ts', find: '        place = item.place;\n', replace: '' }],
  },
  {
    name: 'a follower who comes back is told the present pod from its beginning',
    caughtBy: ['told once'],
    within: 200,
    focus: { followers: true },
    edits: [
      {
        file: 'core/follow/pod-lines.ts',
        find: 'if ((last ?? from?.incarnation ?? incarnation) !== incarnation) [seq, at]',
        replace: 'if (last !== incarnation) [seq, at]',
      },
    ],
  },
  {
    name: 'a log that broke off is followed from the present on',
    caughtBy: ['followed'],
    within: 200,
    focus: { followers: true },
    edits: [
      {
        file: 'core/pod-log/follow.ts',
        find: 'const from = position.reopen() ?? sinceTime;',
        replace: 'const from = position.reopen() ? new Date(clock.now()).toISOString() : sinceTime;',
      },
    ],
  },
  {
    name: 'a follower who comes back is told only what is printed from then on',
    caughtBy: ['followed'],
    within: 200,
    focus: { followers: true },
    edits: [
      {
        file: 'core/follow/session-events.ts',
        find: '    from: start?.place,\n',
        replace: '    from: undefined,\n',
      },
    ],
  },
  {
    name: 'a turn that ended while its follower was away is not told',
    caughtBy: ['followed'],
    within: 200,
    focus: { followers: true },
    edits: [
      {
        file: 'core/follow/states.ts',
        find: 'const isWanted = start ? isAfter(view.metadata.resourceVersion, start.turns) : !isTerminal(view.phase);',
        replace:
          'const isWanted = !isTerminal(view.phase) && (!start || isAfter(view.metadata.resourceVersion, start.turns));',
      },
    ],
  },
  {
    name: 'a replica whose watches are behind a follower takes its place for one of another server',
    caughtBy: ['told once'],
    within: 200,
    focus: { followers: true, rates: { slow: 0.3 } },
    edits: [
      {
        file: 'core/follow/states.ts',
        find: '    if (isAhead()) await this.#catchUp.again(signal);\n',
        replace: '',
      },
    ],
  },
  {
    name: 'a log that followers share has nothing but what is kept of it',
    caughtBy: ['followed'],
    within: 200,
    focus: { followers: true },
    edits: [
      {
        file: 'api/streams/shared-log.ts',
        find: '      if (!isKept) yield* this.#older(cursor, signal);\n      else if',
        replace: '      void [isKept, this.#older];\n      if',
      },
    ],
  },
];
