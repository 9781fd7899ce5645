import type { Bug } from './bug.ts';

/** Mistakes with the pods of SessionPools. */
export const poolBugs: readonly Bug[] = [
  {
    name: 'two leaders claim one pod, and the later write wins',
    caughtBy: ['claimed once', 'bound once'],
    within: 200,
    focus: { pools: true },
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
      {
        file: 'controller/capacity/ledger.ts',
        find: '    return this.#unclaimed.has(key) && !this.#slotUsage.isTaken(key);',
        replace: '    return this.#unclaimed.has(key);',
      },
    ],
  },
  {
    name: 'the loser of two claims deletes the pod',
    caughtBy: ['kept for its session'],
    within: 200,
    focus: { pools: true },
    edits: [
      {
        file: 'controller/decide/policies/claim.ts',
        find: "    draft.released = true;\n    return 'Stop';\n  }\n  if (settled)",
        replace:
          "    draft.released = true;\n    const found = draft.world.strays[0] ?? unclaimed ?? ({ metadata: { name: podName, uid: podUID, namespace: session.metadata.namespace } } as StoredPod);\n    draft.actions.push({ do: 'DeletePod', pod: found, why: 'another session has it' });\n    return 'Stop';\n  }\n  if (settled)",
      },
      {
        file: 'controller/capacity/ledger.ts',
        find: '    return this.#unclaimed.has(key) && !this.#slotUsage.isTaken(key);',
        replace: '    return this.#unclaimed.has(key);',
      },
    ],
  },
  {
    name: 'the loser of two claims puts its labels on the pod when it looks whether the pod is gone',
    caughtBy: ['claimed once', 'bound once'],
    within: 200,
    focus: { pools: true },
    edits: [
      {
        file: 'controller/act/confirm-gone.ts',
        find: 'pod.metadata.uid === podUID && !isOfAnother(pod, session.metadata.uid)',
        replace: 'pod.metadata.uid === podUID && !(isOfAnother(pod, session.metadata.uid) && podUID === "")',
      },
      {
        file: 'controller/decide/policies/claim.ts',
        find: '  if (pod || podUID === undefined || !isFromPool(podName)) return undefined;',
        replace:
          '  if (pod || podUID === undefined || !isFromPool(podName) || (!unclaimed && settled)) return undefined;',
      },
      {
        file: 'controller/capacity/ledger.ts',
        find: '    return this.#unclaimed.has(key) && !this.#slotUsage.isTaken(key);',
        replace: '    return this.#unclaimed.has(key);',
      },
    ],
  },
  {
    name: 'a claimed pod whose labels are late counts as gone',
    caughtBy: ['settles', 'in time', 'told truly', 'bound once', 'works', 'claimed once'],
    within: 200,
    focus: { pools: true },
    edits: [
      {
        file: 'controller/act/claim-pod.ts',
        find: "    if (isOurs(pod, session)) return take(context, pod, false);\n    if (!isUnclaimed(pod)) return lose('was claimed by another session');",
        replace: "    if (isOurs(pod, session) || !isUnclaimed(pod)) return lose('was claimed by another session');",
      },
    ],
  },
  {
    name: 'a turn written Running before the claimed pod is bound',
    caughtBy: ['bound first'],
    within: 30,
    focus: { pools: true },
    edits: [
      {
        file: 'controller/decide/policies/start.ts',
        find: "  if (isFromPool(pod?.metadata.name)) return link.phase === 'Bound';\n",
        replace: '',
      },
      {
        file: 'controller/decide/policies/start.ts',
        find: "import { isFromPool } from '../../world/session-pods.ts';\n",
        replace: '',
      },
    ],
  },
  {
    name: 'a runner that takes a second bind',
    caughtBy: ['bound once'],
    within: 200,
    focus: { pools: true },
    edits: [
      {
        file: 'runner/runner.ts',
        find: '      if (!isSameBind(this.#session.bind, bind)) {',
        replace:
          '      if (!isSameBind(this.#session.bind, bind)) {\n        this.#accept(bind, position);\n        return undefined;\n      }\n      if (false as boolean) {',
      },
      {
        file: 'controller/act/claim-pod.ts',
        find: '    if (isOurs(pod, session)) return take(context, pod, false);',
        replace: '    if (isOurs(pod, session) || tries === 0) return take(context, pod, false);',
      },
    ],
  },
  {
    name: 'a pool that shrinks deletes a pod that a session has just claimed',
    caughtBy: ['kept for its session'],
    within: 200,
    focus: { pools: true },
    edits: [
      {
        file: 'controller/pools/pools.ts',
        find: '{ uid, resourceVersion, signal, ...force }',
        replace: '{ uid, ...(resourceVersion ? {} : {}), signal, ...force }',
      },
      {
        file: 'controller/pools/pools.ts',
        find: '    if (!isForced && !ledger.isSpare(namespace, name)) return;\n',
        replace: '    if (ledger === undefined) return;\n',
      },
      {
        file: 'controller/pools/pools.ts',
        find: '        taken: !ledger.isSpare(namespace, pod.metadata.name),',
        replace: '        taken: false,',
      },
    ],
  },
  {
    name: 'pools are filled before the gate of a new leader has opened',
    caughtBy: ['one pool keeper', 'capacity'],
    within: 200,
    focus: { pools: true },
    edits: [
      {
        file: 'controller/leadership.ts',
        find: '    this.#ledger.open();\n    this.#pools.start();\n',
        replace: '    this.#ledger.open();\n',
      },
      {
        file: 'controller/leadership.ts',
        find: '    this.#admissionGate.start();\n',
        replace: '    this.#admissionGate.start();\n    this.#pools.start();\n',
      },
      {
        file: 'controller/capacity/ledger.ts',
        find: '  room(space: Space & { class: string }): Room {\n    if (!this.#knows()) {',
        replace:
          '  room(space: Space & { class: string }): Room {\n    if (this.#options.caches.staleness() > STALE_MS) {',
      },
    ],
  },
  {
    name: 'a dead pod whose attach looks open is waited for',
    caughtBy: ['settles', 'works', 'in time', 'bound first'],
    within: 200,
    focus: { pools: true },
    edits: [
      {
        file: 'controller/decide/policies/claim.ts',
        find: "  if (now >= deadline) return 'did not answer';\n  wake(draft, deadline);\n  return undefined;",
        replace: '  wake(draft, now + deadline);\n  return undefined;',
      },
    ],
  },
  {
    name: 'a pod of a former version of the class is claimed',
    caughtBy: ['made alike'],
    within: 30,
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
    within: 100,
    focus: { pools: true },
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
        find: 'const create = mayCreate && room.free && now >= againAt',
        replace: 'const create = mayCreate && now >= againAt',
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
        file: 'controller/pools/pools.ts',
        find: '        await networkPolicies.ensure(namespace, pool.spec.class, signal);\n',
        replace: '        if (!networkPolicies) return;\n',
      },
    ],
  },
];
