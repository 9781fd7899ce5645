import { agentFilesBugs } from './agent-files.ts';
import { artifactBugs } from './artifacts.ts';
import { attachBugs } from './attach.ts';
import { type Bug, PLAIN } from './bug.ts';
import { environmentBugs } from './environments.ts';
import { followerBugs } from './followers.ts';
import { leadershipBugs } from './leadership.ts';
import { loopBugs } from './loops.ts';
import { outcomeBugs } from './outcomes.ts';
import { poolBugs } from './pools.ts';
import { releaseBugs } from './releases.ts';
import { restartBugs } from './restarts.ts';
import { shareBugs } from './shares.ts';
import { storyBugs } from './story.ts';
import { visitBugs } from './visits.ts';
import { worldBugs } from './worlds.ts';

export const bugs: readonly Bug[] = [
  {
    name: 'check-then-create admission',
    caughtBy: ['capacity'],
    within: 200,
    focus: { maxRunning: 1 },
    edits: [
      {
        file: 'controller/capacity/reservations.ts',
        find: '    slotUsage.reserve(keyOf({ namespace, name: pod }), { name: key, namespace, class: ofClass, since: clock.now() });',
        replace: '    void [slotUsage, clock, namespace, pod, key, ofClass];',
      },
    ],
  },
  {
    name: 'commit before store',
    caughtBy: ['forward', 'is true'],
    within: 200,
    focus: { rates: { store: 0.5 } },
    edits: [
      { file: 'controller/act/store-delivery.ts', find: '  await effects.store.put(', replace: '  effects.store.put(' },
      {
        file: 'controller/act/store-delivery.ts',
        find: '    owner,\n    signal,\n  );',
        replace: '    owner,\n    signal,\n  ).catch(() => {});',
      },
    ],
  },
  {
    name: 'acknowledge before commit',
    caughtBy: ['committed first'],
    within: 200,
    edits: [
      {
        file: 'controller/act/commit.ts',
        find: '  const written = await writeAtVersion(context, turn, status);',
        replace: `  effects.links.get(turn.status.podUID)?.acknowledge(delivery.result.seq);
  const written = await writeAtVersion(context, turn, status);`,
      },
    ],
  },
  {
    name: 'commit without resourceVersion',
    caughtBy: ['ends once', 'in order', 'is true', 'starts once'],
    within: 200,
    focus: {
      misfortunes: ['a controller is paused, often past its lease'],
      misfortuneEveryMs: 1500,
      deedEveryMs: 200,
      rates: { watchStalled: 0.3, slow: 0.2 },
      ...PLAIN,
    },
    edits: [
      {
        file: 'controller/runtime/status-writer.ts',
        find: '    const writing = this.#options.api.replace(',
        replace: `    const { api } = this.#options;
    const replaceLive: typeof api.replace = async (...call) => {
      const live = await api.get(resource, object.metadata as never, { signal });
      object.metadata.resourceVersion = live.metadata.resourceVersion;
      return api.replace(...call);
    };
    const writing = replaceLive(`,
      },
    ],
  },
  {
    name: 'incarnation not owned before the pod',
    caughtBy: ['owned first'],
    within: 200,
    edits: [
      {
        file: 'controller/act/slots.ts',
        find: '    await write();',
        replace: `    const settings = effective(session, world.class, world.installation);
    if (!isProblem(settings)) await api.create(pods, sessionPod(session, incarnation, settings), { signal });
    await write();`,
      },
      {
        file: 'controller/act/slots.ts',
        find: "import type { ReconcileContext } from './context.ts';",
        replace: `import type { ReconcileContext } from './context.ts';
import { pods } from '../../core/kube/resources.ts';
import { effective, isProblem } from '../settings/effective.ts';
import { sessionPod } from '../pod/pod.ts';`,
      },
    ],
  },
  {
    name: 'delete without uid',
    caughtBy: ['by uid'],
    within: 200,
    edits: [
      {
        file: 'controller/act/perform.ts',
        find: 'await api.delete(pods, { namespace, name }, { uid, signal, ...force })',
        replace: 'await api.delete(pods, { namespace, name }, { signal, ...force })',
      },
    ],
  },
  {
    name: 'lookup by name only',
    caughtBy: ['is true', 'starts once', 'in order', 'goes on', 'consistent', 'spared', 'settles'],
    within: 200,
    focus: { deeds: ['delete a session, and perhaps make another of its name'] },
    edits: [
      {
        file: 'controller/observed/own-turns.ts',
        find: '  return owner(turn)?.uid === session.metadata.uid;',
        replace: '  return owner(turn)?.name === session.metadata.name;',
      },
    ],
  },
  {
    name: 'a leader that is told to stop releases the lease that another has taken',
    edits: [
      {
        file: 'controller/runtime/lease.ts',
        find: 'if (this.#lease.spec?.holderIdentity !== this.identity) return;',
        replace: '',
      },
    ],
    caughtBy: ['one leader'],
    within: 200,
    focus: {
      misfortunes: ['the lease is deleted, and its former holder is told to stop before it learns of it'],
      misfortuneEveryMs: 3000,
    },
  },
  {
    name: 'waking not counted',
    caughtBy: ['capacity'],
    within: 200,
    focus: { maxRunning: 2 },
    edits: [
      {
        file: 'controller/capacity/holders.ts',
        find: '  if (!status?.podName) return undefined;',
        replace: "  if (!status?.podName || status.phase === 'Starting') return undefined;",
      },
    ],
  },
  {
    name: 'second look left out',
    caughtBy: ['spared'],
    within: 200,
    focus: {
      deeds: ['ask a session to suspend once', 'resume a session'],
      deedEveryMs: 200,
      rates: { slow: 0.3, watchStalled: 0.3 },
    },
    edits: [
      { file: 'controller/act/suspension.ts', find: '  if (veto) {', replace: '  if (veto === key) {' },
      // The second read also puts a found turn into the caches, where this condition would undo the suspension.
      {
        file: 'controller/decide/suspend-reason.ts',
        find: ' || ownerless.some((turn) => isToAdopt(session, turn));',
        replace: '; void [ownerless, isToAdopt, session];',
      },
    ],
  },
  {
    name: 'old epoch obeyed',
    caughtBy: ['present leader'],
    within: 200,
    focus: {
      misfortunes: ['a controller is told to stop'],
      misfortuneEveryMs: 5000,
      podRates: { breaks: 0.2 },
    },
    edits: [{ file: 'core/frames/control.ts', find: 'if (epoch < this.#seen.epoch) {', replace: 'if (epoch < 0) {' }],
  },
  {
    name: 'wake by reading',
    edits: [
      {
        file: 'controller/decide/start-failures.ts',
        find: '  if (draft.turns.live.length > 0) return !isParked(draft);',
        replace: `  if (session.metadata.labels?.['seen-by'] && session.status?.phase === 'Suspended') return true;
  if (draft.turns.live.length > 0) return !isParked(draft);`,
      },
    ],
    caughtBy: ['woken by turns'],
    within: 200,
  },
  {
    name: 'turn lost while suspending',
    edits: [
      {
        file: 'controller/decide/policies/pod.ts',
        find: '  if (!pod) {\n    if (!hadBeenBound(draft, lost))',
        replace: `  if (!pod) {
    failLive(draft, draft.turns.lastIndex + 1, { reason: 'PodLost', message: 'its pod was given up' });
    if (!hadBeenBound(draft, lost))`,
      },
    ],
    caughtBy: ['is true'],
    within: 200,
  },
  {
    name: 'blob swept during a commit',
    edits: [
      {
        file: 'controller/garbage/stored.ts',
        find: 'export const MIN_AGE_MS = 3_600_000;',
        replace: 'export const MIN_AGE_MS = 0;',
      },
      {
        file: 'controller/garbage/stored.ts',
        find: '    return mayHaveBrought && entry.createdAt',
        replace: '    return mayHaveBrought && entry.createdAt < 0 && entry.createdAt',
      },
    ],
    caughtBy: ['forward', 'is true', 'kept while named', 'kept a while'],
    within: 200,
    focus: { rates: { slow: 0.2 } },
  },
  {
    name: 'a state swept as soon as it is superseded',
    edits: [
      {
        file: 'controller/garbage/counted-states.ts',
        find: 'const SUPERSEDED_MS = 60_000;',
        replace: 'const SUPERSEDED_MS = 5000;',
      },
    ],
    caughtBy: ['kept a while'],
    within: 200,
  },
  {
    name: 'a state swept before the later one is counted',
    edits: [
      {
        file: 'controller/garbage/sweep-states.ts',
        find: "entry.kind === 'State' && isLater(countedState, entry)",
        replace: "entry.kind === 'State'",
      },
      {
        file: 'controller/garbage/stored.ts',
        find: 'status.state?.ref === key || !isLater(status.state, entry)',
        replace: 'status.state?.ref === key',
      },
    ],
    caughtBy: ['forward', 'is true', 'goes on', 'kept while named', 'kept a while'],
    within: 200,
  },
  {
    name: 'decision delivered twice',
    edits: [
      {
        file: 'controller/decide/loss.ts',
        find: '  if (neverRan ||',
        replace: '  if (turn.status.approval || neverRan ||',
      },
    ],
    caughtBy: ['told once', 'starts once'],
    within: 200,
    focus: { deeds: ['decide on a request'], misfortunes: ['a pod is killed'], misfortuneEveryMs: 2000 },
  },
  {
    name: 'namespaces not served in turn',
    edits: [
      {
        file: 'controller/capacity/queue.ts',
        find: '    this.#servedAt.set(namespace, this.#latest);',
        replace: '    void namespace;',
      },
    ],
    caughtBy: ['in turn'],
    within: 200,
    focus: { maxRunning: 1, deedEveryMs: 400 },
  },
  {
    name: 'priority left out',
    edits: [
      {
        file: 'controller/capacity/queue.ts',
        find: '  if (a.priority !== b.priority) return b.priority - a.priority;\n',
        replace: '',
      },
    ],
    caughtBy: ['in turn'],
    within: 200,
    focus: { maxRunning: 1, deedEveryMs: 400 },
  },
  {
    name: 'position of one who stands alone',
    edits: [
      {
        file: 'controller/capacity/queue.ts',
        find: 'let position = 1 + ahead;',
        replace: 'let position = 1 + 0 * ahead;',
      },
    ],
    caughtBy: ['in turn'],
    within: 200,
    focus: { maxRunning: 1, deedEveryMs: 400 },
  },
  {
    name: 'idle sessions that a class keeps are preempted too',
    edits: [
      {
        file: 'controller/capacity/preemption.ts',
        find: '<= minIdle(candidate.class)) {',
        replace: '< 0) {',
      },
    ],
    caughtBy: ['preempted'],
    within: 200,
    focus: { deeds: [], deedEveryMs: 2500, maxRunning: 1, sessionClass: { minIdle: 1 } },
  },
  {
    name: 'preemption for nobody',
    edits: [
      {
        file: 'controller/decide/suspend-reason.ts',
        find: '  if (preemptFor && (rests(draft)',
        replace: '  if ((rests(draft)',
      },
    ],
    caughtBy: ['preempted'],
    within: 200,
  },
  {
    name: 'activity that only the runner tells of is left out',
    edits: [
      {
        file: 'controller/observed/activity.ts',
        find: 'Math.max(activityOfPeople(world), Math.min(world.link?.lastActivity ?? 0, world.now))',
        replace: 'activityOfPeople(world)',
      },
      { file: 'controller/decide/suspension-veto.ts', find: '    world.link?.lastActivity ?? 0,\n', replace: '' },
    ],
    caughtBy: ['preempted'],
    within: 200,
  },
  {
    name: 'a request to suspend that is done before the pod is gone',
    edits: [
      {
        file: 'controller/decide/session-status.ts',
        find: "(isSeen || request === 'Active') || next.podName) return handled;",
        replace: "(isSeen || request === 'Active')) return handled;",
      },
    ],
    caughtBy: ['settles'],
    within: 200,
    focus: { deeds: ['ask a session to suspend once'] },
  },
  {
    name: 'a part in the group that is looked for and not kept',
    edits: [
      {
        file: 'controller/capacity/groups.ts',
        find: '    group.reserved.add(session);',
        replace: '    void session;',
      },
    ],
    caughtBy: ['groups'],
    within: 200,
    focus: { session: { concurrencyGroup: { name: 'group', limit: 1 } }, deedEveryMs: 500 },
  },
  {
    name: 'a turn counts in the group that its session is in now',
    edits: [
      {
        file: 'controller/capacity/membership.ts',
        find: 'const where = concurrencyGroup === undefined ? own :',
        replace: 'const where = concurrencyGroup !== null ? own :',
      },
    ],
    caughtBy: ['groups'],
    within: 200,
    focus: { session: { concurrencyGroup: { name: 'group', limit: 1 } }, deedEveryMs: 500, groups: true },
  },
  {
    name: 'a turn does not say in which group it began',
    edits: [
      {
        file: 'controller/decide/policies/start.ts',
        find: '...(group ? { concurrencyGroup: group.name } : {})',
        replace: '...(group ? {} : {})',
      },
    ],
    caughtBy: ['groups'],
    within: 200,
    focus: { session: { concurrencyGroup: { name: 'group', limit: 1 } }, deedEveryMs: 500, groups: true },
  },
  {
    name: 'the runner is not told of maxState',
    edits: [
      {
        file: 'controller/act/bind.ts',
        find: 'defined({ maxStateBytes: kept.maxStateBytes, maxPackedBytes',
        replace: 'defined({ maxPackedBytes',
      },
    ],
    caughtBy: ['within maxState'],
    within: 200,
    focus: { session: { persistence: { maxState: '8000' } } },
  },
  {
    name: 'what a turn has used is told in milliseconds',
    edits: [
      {
        file: 'controller/status/outcome.ts',
        find: '{ wall: wallMs / 1000, ...measured }',
        replace: '{ wall: wallMs, ...measured }',
      },
    ],
    caughtBy: ['own usage'],
    within: 200,
  },
  {
    name: 'timeouts of a running turn read anew',
    edits: [
      {
        file: 'controller/settings/granted.ts',
        find: 'turn.status.granted ?? grant(turn, rules);',
        replace: 'grant(turn, rules);',
      },
    ],
    caughtBy: ['granted'],
    within: 200,
    focus: { deeds: ['edit a class'], deedEveryMs: 500 },
  },
  {
    name: 'a turn at which the controller fails holds its session',
    caughtBy: ['settles'],
    within: 200,
    edits: [
      {
        file: 'controller/decide/policies/turns.ts',
        find: '    if (hasBegun(turn)) continue;\n    const full',
        replace: `    if (/^t\\d*7$/.test(turn.metadata.name) && turn.unreadable === undefined) throw new TypeError('planted');
    if (hasBegun(turn)) continue;
    const full`,
      },
      {
        file: 'controller/reconcile.ts',
        find: 'if (isProgrammingError(error) && !signal.aborted)',
        replace: 'if (isProgrammingError(error) && false)',
      },
    ],
  },
  ...outcomeBugs,
  ...leadershipBugs,
  ...artifactBugs,
  ...agentFilesBugs,
  ...environmentBugs,
  ...releaseBugs,
  ...attachBugs,
  ...shareBugs,
  ...storyBugs,
  ...restartBugs,
  ...poolBugs,
  ...followerBugs,
  ...loopBugs,
  ...visitBugs,
  ...worldBugs,
];
