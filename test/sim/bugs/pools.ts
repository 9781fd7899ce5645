import type { Focus } from '../focus.ts';
import { type Bug, PLAIN } from './bug.ts';

/** Sessions that claim often and at once. */
const CLAIMS: Focus = { pools: true, deedEveryMs: 150, deeds: ['create a session', 'give a turn'] };
/** Sessions reserve pods that others have reserved. */
const RESERVED_TWICE = {
  file: 'controller/capacity/unclaimed-pods.ts',
  find: '    return this.#pods.has(key) && !this.#slotUsage.isTaken(key) && !this.#slotUsage.isReserved(key);',
  replace: '    return this.#pods.has(key);',
};

/** Mistakes with the pods of SessionPools. */
export const poolBugs: readonly Bug[] = [
  {
    name: 'two leaders claim one pod, and the later write wins',
    caughtBy: ['claimed once', 'bound once'],
    within: 200,
    focus: CLAIMS,
    edits: [
      {
        file: 'controller/act/claim-pod.ts',
        find: "    if (!isUnclaimed(pod)) return lose('was claimed by another session');\n",
        replace: '',
      },
      {
        file: 'controller/act/claim-pod.ts',
        find: 'const patch = { metadata: { uid: podUID, resourceVersion, labels,',
        replace: 'const patch = { metadata: { uid: podUID, ...(resourceVersion ? {} : {}), labels,',
      },
      RESERVED_TWICE,
    ],
  },
  {
    name: 'the loser of two claims deletes the pod',
    caughtBy: ['kept for its session'],
    within: 200,
    focus: CLAIMS,
    edits: [
      {
        file: 'controller/decide/policies/claim.ts',
        find: "    draft.released = true;\n    return 'Stop';\n  }\n  if (leaderIsReady)",
        replace:
          "    draft.released = true;\n    const found = draft.world.otherPods[0] ?? unclaimed ?? ({ metadata: { name: podName, uid: podUID, namespace: session.metadata.namespace } } as StoredPod);\n    draft.actions.push({ do: 'DeletePod', pod: found, why: 'another session has it' });\n    return 'Stop';\n  }\n  if (leaderIsReady)",
      },
      RESERVED_TWICE,
    ],
  },
  {
    name: 'a turn given to the runner of a claimed pod before the runner has answered',
    caughtBy: ['bound first'],
    within: 100,
    focus: {
      pools: true,
      poolEveryMs: 500,
      misfortunes: ['a pod is frozen', 'a pod is killed', 'a pod is deleted by somebody', 'a node is lost'],
      misfortuneEveryMs: 600,
    },
    edits: [
      {
        file: 'controller/decide/policies/start.ts',
        find: "  return isFromPool(pod?.metadata.name) ? link?.podUID === podUID && link.phase === 'Bound' : isBound(draft, podUID);",
        replace: '  return isBound(draft, podUID);',
      },
      {
        file: 'controller/decide/policies/start.ts',
        find: '  const { link, pod } = draft.world;\n  return isBound(draft, podUID);',
        replace: '  return isBound(draft, podUID);',
      },
    ],
  },
  {
    name: 'pools are filled before the gate of a new leader has opened',
    caughtBy: ['one pool keeper', 'capacity'],
    within: 200,
    focus: { pools: true, poolEveryMs: 500 },
    edits: [
      {
        file: 'controller/leadership.ts',
        find: '    this.#parts.ledger.open();\n    this.#parts.pools.start();\n',
        replace: '    this.#parts.ledger.open();\n',
      },
      {
        file: 'controller/leadership.ts',
        find: '    admissionGate.start();\n',
        replace: '    admissionGate.start();\n    this.#parts.pools.start();\n',
      },
      {
        file: 'controller/capacity/ledger.ts',
        find: '  room(space: Space & { class: string }): Room {\n    const limits = this.#limitsIfKnown(space);',
        replace: '  room(space: Space & { class: string }): Room {\n    const limits = this.#limits(space);',
      },
    ],
  },
  {
    name: 'a pod of a former version of the class is claimed',
    caughtBy: ['made alike'],
    within: 200,
    focus: { pools: true, deeds: ['edit a class'] },
    edits: [
      {
        file: 'controller/pools/claimable.ts',
        find: ' || labels?.[LABEL_TEMPLATE] !== hash) return false;',
        replace: ' || (labels?.[LABEL_TEMPLATE] ?? hash) === "") return false;',
      },
    ],
  },
  {
    name: 'the hash of a pod says nothing of its class',
    caughtBy: ['made alike'],
    within: 200,
    // Pools change their class, and sessions take their pods.
    focus: { pools: true, poolEveryMs: 300, deedEveryMs: 300, maxRunning: 20, ...PLAIN },
    edits: [
      {
        file: 'controller/pod/pod.ts',
        find: "const pod = podOf(settings, { name: '', namespace: '', class: ofClass, labels:",
        replace: "const pod = podOf(settings, { name: '', namespace: '', class: ofClass.slice(0, 0), labels:",
      },
    ],
  },
  {
    name: 'a pool that keeps the slots that sessions wait for',
    caughtBy: ['settles', 'works'],
    within: 30,
    focus: { pools: true, maxRunning: 2 },
    edits: [
      {
        file: 'controller/capacity/plan.ts',
        find: '[...pods.map(poolCandidate), ...this.#candidates()]',
        replace: 'this.#candidates()',
      },
    ],
  },
  {
    name: 'a pool that is filled ahead of the sessions that wait, beyond the limit',
    caughtBy: ['capacity'],
    within: 30,
    focus: { pools: true, maxRunning: 2 },
    edits: [
      {
        file: 'controller/capacity/ledger.ts',
        find: '    if (!this.room(space).free) return false;\n',
        replace: '',
      },
      {
        file: 'controller/pools/decide.ts',
        find: 'const create = mayCreate && room.free && isTime',
        replace: 'const create = mayCreate && isTime',
      },
    ],
  },
  {
    name: 'a pod of a pool without a NetworkPolicy',
    caughtBy: ['isolated'],
    within: 30,
    focus: { pools: true },
    edits: [
      {
        file: 'controller/pools/act.ts',
        find: '      await tools.networkPolicies.ensure(pool.metadata.namespace, pool.spec.class, signal);\n',
        replace: '',
      },
    ],
  },
  {
    name: 'a pool that is scaled to 0 deletes the pods that sessions have just claimed',
    caughtBy: ['kept for its session'],
    within: 200,
    focus: { pools: true, poolEveryMs: 500 },
    edits: [
      {
        file: 'controller/pools/act.ts',
        find: '  if (!isForced && !ledger.isAvailable(namespace, name)) return false;\n',
        replace: '',
      },
      {
        file: 'controller/pools/act.ts',
        find: '{ uid, resourceVersion, signal, ...force }',
        replace: '{ uid, ...(resourceVersion ? {} : {}), signal, ...force }',
      },
      {
        file: 'controller/pools/observe.ts',
        find: '  const pods = caches\n    .unclaimedPods(uid)\n',
        replace: `  const ofPool = caches.allPods().filter(({ metadata }) => metadata.labels?.['berth.dev/pool-uid'] === uid);
  const pods = (pool.spec.replicas === 0 ? ofPool : caches.unclaimedPods(uid))
`,
      },
      {
        file: 'controller/pools/decide.ts',
        find: '!pod.metadata.deletionTimestamp && !taken);',
        replace: '!pod.metadata.deletionTimestamp && (!taken || pool.spec.replicas === 0));',
      },
    ],
  },
  {
    name: 'a new leader scales a pool down at once, whatever claims of its predecessor are under way',
    caughtBy: ['kept for its session', 'one pool keeper'],
    within: 200,
    focus: {
      pools: true,
      poolEveryMs: 500,
      misfortunes: ['the lease is deleted while requests of the leader are held up'],
      misfortuneEveryMs: 4000,
      deedEveryMs: 300,
    },
    edits: [
      {
        file: 'controller/controller.ts',
        find: '    if (!found && !keys.created) return renewDeadlineMs(leaseMs);\n',
        replace: '    if (!found && !keys.created) return 0;\n',
      },
      {
        file: 'controller/pools/act.ts',
        find: '{ uid, resourceVersion, signal, ...force }',
        replace: '{ uid, ...(resourceVersion ? {} : {}), signal, ...force }',
      },
    ],
  },
  {
    name: 'a runner is bound before the pod has the labels of its session',
    caughtBy: ['bound once'],
    within: 200,
    focus: { pools: true },
    edits: [
      {
        file: 'controller/act/claim-pod.ts',
        find: "      return take(context, await effects.api.patch(pods, { namespace, name }, patch, { type: 'merge', signal }), true);\n",
        replace: `      const early = String(Number(resourceVersion) + 1);
      const metadata = { ...pod.metadata, resourceVersion: early, labels: { ...pod.metadata.labels, ...labels }, ownerReferences: [ownedBy(session)] };
      effects.caches.saw(pods, { ...pod, metadata });
      take(context, { ...pod, metadata }, true);
      void effects.api.patch(pods, { namespace, name }, patch, { type: 'merge' }).catch(() => {});
      return;
`,
      },
    ],
  },
  {
    name: 'the loser of two claims puts its labels on the pod of the winner',
    caughtBy: ['claimed once'],
    within: 200,
    focus: CLAIMS,
    edits: [
      {
        file: 'controller/act/claim-pod.ts',
        find: "    if (!isUnclaimed(pod)) return lose('was claimed by another session');\n",
        replace: `    if (!isUnclaimed(pod)) {
      const late = { metadata: { uid: podUID, labels: sessionLabels(session, session.status?.incarnation ?? 0) } };
      await effects.api.patch(pods, { namespace, name }, late, { type: 'merge', signal });
      return lose('was claimed by another session');
    }
`,
      },
      RESERVED_TWICE,
    ],
  },
  {
    name: 'a pod whose session was deleted is offered to others',
    caughtBy: ['claimed once'],
    within: 200,
    focus: { pools: true },
    edits: [
      {
        file: 'controller/pools/pools.ts',
        find: 'import { msUntil } from',
        replace: "import { pods as podKind } from '../../core/kube/resources.ts';\nimport { msUntil } from",
      },
      {
        file: 'controller/pools/pools.ts',
        find: '    const memory = this.#memory(key, pool);\n    const template',
        replace: `    const sessions = new Set(caches.allSessions().map(({ metadata }) => metadata.uid));
    for (const { metadata } of caches.allPods()) {
      const { labels = {}, uid, resourceVersion } = metadata;
      const owner = labels['berth.dev/session-uid'];
      if (labels['berth.dev/pool-uid'] !== pool.metadata.uid || !owner || sessions.has(owner)) continue;
      const reference = { apiVersion: 'berth.dev/v1alpha1', kind: 'SessionPool', name, uid: pool.metadata.uid, controller: true };
      const patch = { uid, resourceVersion, labels: { 'berth.dev/session-uid': '' }, ownerReferences: [reference] };
      await this.#options.api.patch(podKind, { namespace, name: metadata.name }, { metadata: patch }, { type: 'merge', signal });
    }
    const memory = this.#memory(key, pool);
    const template`,
      },
    ],
  },
  {
    name: 'a claimed pod that is dead behind an open attach counts as a failed start',
    caughtBy: ['claims cost nothing'],
    within: 200,
    focus: { pools: true },
    edits: [
      {
        file: 'controller/decide/start-failures.ts',
        find: "  return { reason: 'ClaimLost', message:",
        replace: "  return { reason: 'StartFailed', message:",
      },
    ],
  },
  {
    name: 'a pod of a pool that was claimed while it started is waited for until the turn has timed out',
    caughtBy: ['claims cost nothing'],
    within: 200,
    focus: {
      ...CLAIMS,
      maxRunning: 60,
      poolEveryMs: 400,
      podRates: { slow: 0.9, image: 0.3 },
      deedEveryMs: 400,
      session: { timeouts: { start: '1s', turn: '20s', idle: '3s', approval: '9s', persist: '9s', lifetime: '99s' } },
    },
    edits: [
      {
        file: 'controller/decide/policies/claim.ts',
        find: '  if (problem) return',
        replace: '  if (problem && !pod) return',
      },
      {
        file: 'controller/decide/policies/claim.ts',
        find: ': claimedAt + Math.min(START_MS, startMs(draft) / 2);',
        replace: ': claimedAt + 2 * startMs(draft);',
      },
    ],
  },
  {
    name: 'pods of a pool are numbered by the lowest number that is free',
    caughtBy: ['named once'],
    within: 30,
    focus: { pools: true },
    edits: [
      {
        file: 'controller/pools/act.ts',
        find: '  const number = memory.numbers.next;\n',
        replace: `  let number = 0;
  while (tools.caches.pod(namespace, poolPodName(uid, number)) || ledger.isTaken(namespace, poolPodName(uid, number)))
    number += 1;
`,
      },
    ],
  },
  {
    name: 'a controller that stops cuts off the creation of a pod of a pool, and releases its lease',
    caughtBy: ['capacity', 'one pool keeper'],
    within: 200,
    focus: {
      pools: true,
      poolEveryMs: 500,
      misfortunes: ['a controller is told to stop'],
      misfortuneEveryMs: 2_000,
      rates: { slow: 0.3 },
    },
    edits: [
      {
        file: 'controller/pools/pools.ts',
        find: 'super(options, {',
        replace: 'super({ ...options, signal: anySignal(options.signal, options.closing) }, {',
      },
      {
        file: 'controller/pools/pools.ts',
        find: "import { isDeepStrictEqual } from 'node:util';",
        replace: "import { anySignal } from '../../core/abort.ts'; import { isDeepStrictEqual } from 'node:util';",
      },
    ],
  },
];
