/** Pods of every form that the controller makes, from classes with each setting that concerns a pod. */
import assert from 'node:assert/strict';
import { poolPod, sessionPod } from '../../controller/pod/pod.ts';
import { runnerlessPod } from '../../controller/pod/runnerless-pod.ts';
import { poolTemplate } from '../../controller/pools/template.ts';
import { type Effective, effective, isProblem } from '../../controller/settings/effective.ts';
import type { Pod } from '../../core/kube/builtin.ts';
import type { StoredSessionPool } from '../../core/resources/kinds.ts';
import { OVERRIDABLE } from '../../core/resources/overridable.ts';
import { sessionClassSpec } from '../../core/resources/sessionclass.ts';
import { aClass, aSession, aWorld, SESSION_UID } from './world.ts';

function settingsOf(spec: object, sessionSpec: object, imagesArePrograms: boolean): Effective {
  const parsed = sessionClassSpec.parse({ overrides: [...OVERRIDABLE], secrets: ['*'], ...spec });
  const installation = { ...aWorld().installation, imagesArePrograms };
  const settings = effective(aSession({ spec: sessionSpec }), aClass(parsed), installation);
  assert.ok(!isProblem(settings), JSON.stringify(settings));
  return settings as Effective;
}

/** The pod of a session without any field of its own, of a class with these. */
export function podOf(spec: object, sessionSpec: object = {}, imagesArePrograms = false): Pod {
  return sessionPod(aSession({ spec: sessionSpec }), 1, settingsOf(spec, sessionSpec, imagesArePrograms));
}

/** Every setting of a class that concerns a pod, each on its own. */
export const CLASS_OPTIONS: Record<string, { spec: object; session?: object }> = {
  nothing: { spec: {} },
  image: { spec: { image: 'i', imagePullPolicy: 'Always', imagePullSecrets: [{ name: 's' }] } },
  injected: { spec: { runner: 'Injected', image: 'i' } },
  runtimeClassName: { spec: { runtimeClassName: 'gvisor' } },
  hostUsers: { spec: { hostUsers: false } },
  podMetadata: { spec: { podMetadata: { labels: { team: 'a' }, annotations: { note: 'b' } } } },
  placement: {
    spec: {
      nodeSelector: { pool: 'agents' },
      tolerations: [{ key: 'agents', operator: 'Exists', effect: 'NoSchedule' }],
      affinity: { nodeAffinity: {} },
      priorityClassName: 'low',
    },
  },
  writableRoot: { spec: { sandbox: { readOnlyRootFilesystem: false } } },
  scratch: { spec: { sandbox: { readOnlyRootFilesystem: false, scratch: 'Image' } } },
  network: { spec: { sandbox: { network: { mode: 'AllowList', proxy: { url: 'http://10.0.0.5:3128' } } } } },
  workspace: { spec: { persistence: { workspace: { type: 'Volume', size: '1Gi' } } } },
  secrets: {
    spec: {
      agent: {
        env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }],
        secretFiles: [{ path: 'key', secretKeyRef: { name: 's', key: 'k' } }],
      },
    },
  },
  strict: { spec: { sandbox: { preset: 'Strict' } } },
  resources: { spec: {}, session: { resources: { limits: { memory: '2Gi' } } } },
};

/** Claim of the cache of builds. */
export const CACHE_CLAIM = 'uv-cache';

/** Every form of a pod with each option of a class: with a runner, injected and without, of a pool, and of a build with a cache. */
export function everyPod(): [what: string, pod: Pod][] {
  return Object.entries(CLASS_OPTIONS).flatMap(([option, { spec, session = {} }]): [string, Pod][] => {
    const own = { agent: { command: ['agent'] }, ...session };
    const made: [string, Pod][] = [[`a session with ${option}`, podOf(spec, own)]];
    const anyImage = { image: 'any:1', ...spec };
    made.push([`an injected runner with ${option}`, podOf({ ...anyImage, runner: 'Injected' }, own)]);
    const settings = settingsOf({ ...anyImage, runner: 'None' }, own, false);
    const turn = { uid: 't-a', name: 'a', input: '1' };
    const plain = sessionPod(aSession({ spec: own }), 1, settings);
    made.push([`no runner with ${option}`, runnerlessPod(plain, aSession(), settings, turn)]);
    const environments = { cache: { claim: CACHE_CLAIM }, credentials: { name: 'index' } };
    made.push([`a build with ${option}`, podOf({ ...spec, environments }, { ...session, build: 'Environment' })]);
    const pool = {
      metadata: { name: 'p', namespace: 'team', uid: SESSION_UID },
      spec: { class: 'default', replicas: 1 },
    };
    const parsed = sessionClassSpec.parse({ secrets: ['*'], ...spec });
    const template = poolTemplate({ namespace: 'team', class: 'default' }, aClass(parsed), aWorld().installation);
    if (!('reason' in template)) {
      made.push([`a pool with ${option}`, poolPod(pool as StoredSessionPool, 1, template.settings)]);
    }
    return made;
  });
}
