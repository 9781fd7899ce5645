import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { isAfter } from '../../../../core/follow/cursor.ts';
import { States } from '../../../../core/follow/states.ts';
import type { KubeApi } from '../../../../core/kube/types.ts';
import { silentLogger, systemRandom } from '../../../../core/system.ts';
import { settled, VirtualClock } from '../../../support/virtual-clock.ts';

type Kind = 'session' | 'turn';
interface Version {
  kind: Kind;
  name: string;
  version: number;
}

/** A namespace whose watches are told what is written, as it is written. */
class Namespace {
  readonly present = new Map<string, Version>();
  readonly states: States;
  readonly #events = { sessions: [] as object[], turns: [] as object[] };
  readonly #wake = { sessions: () => {}, turns: () => {} };
  #version = 10;

  constructor() {
    const watch = async function* (this: Namespace, kind: 'sessions' | 'turns', signal: AbortSignal) {
      for (;;) {
        yield* this.#events[kind].splice(0);
        await new Promise<void>((resolve, reject) => {
          this.#wake[kind] = resolve;
          signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        });
      }
    };
    const api = {
      list: async () => ({ items: [], metadata: { resourceVersion: '10' } }),
      watch: ({ plural }: { plural: 'sessions' | 'turns' }, { signal }: { signal: AbortSignal }) =>
        watch.call(this, plural, signal),
    } as unknown as KubeApi;
    const clock = new VirtualClock();
    this.states = new States({ api, clock, random: systemRandom, log: silentLogger, namespace: 'ns' });
  }

  async write(kind: Kind, what: 'write' | 'delete' | 'bookmark', name: string): Promise<void> {
    const version = ++this.#version;
    const key = `${kind} ${name}`;
    const isThere = this.present.has(key);
    if (what === 'delete' && !isThere) return;
    const metadata = { namespace: 'ns', name, uid: `${key} uid`, resourceVersion: String(version) };
    const type = { write: isThere ? 'MODIFIED' : 'ADDED', delete: 'DELETED', bookmark: 'BOOKMARK' }[what];
    if (what === 'write') this.present.set(key, { kind, name, version });
    if (what === 'delete') this.present.delete(key);
    const plural = `${kind}s` as const;
    this.#events[plural].push({ type, object: { metadata, spec: { session: 's0' }, status: {} } });
    this.#wake[plural]();
    await settled();
  }
}

const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constant('take' as const) },
    fc.record({
      kind: fc.constantFrom<Kind>('session', 'turn'),
      what: fc.constantFrom(
        'write' as const,
        'write' as const,
        'write' as const,
        'delete' as const,
        'bookmark' as const,
      ),
      name: fc.constantFrom('s0', 's1', 's2'),
    }),
  ),
  { minLength: 3, maxLength: 25 },
);

test('a follower that is cut off after any change and goes on from there misses none, however slowly it takes them', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (order) => {
      const namespace = new Namespace();
      const stop = new AbortController();
      const changes = namespace.states.changes({ from: { sessions: '0', turns: '0' }, signal: stop.signal });
      const told = new Map<string, number>();
      let next: ReturnType<typeof changes.next> | undefined;
      let arrived: Awaited<ReturnType<typeof changes.next>> | undefined;
      try {
        for (const step of order) {
          if (step !== 'take') {
            await namespace.write(step.kind, step.what, step.name);
            continue;
          }
          next ??= changes.next().then((result) => {
            arrived = result;
            return result;
          });
          await settled();
          if (!arrived || arrived.done) continue;
          const { change, cursor } = arrived.value;
          [next, arrived] = [undefined, undefined];
          const { name, resourceVersion } = change.view.metadata;
          if (!change.isDeleted) told.set(`${change.kind} ${name}`, Number(resourceVersion));
          for (const [key, { kind, version }] of namespace.present) {
            const isLeft = isAfter(String(version), cursor[`${kind}s`]);
            assert.ok(isLeft || told.get(key) === version, `${key} v${version} is told neither before nor after`);
          }
        }
      } finally {
        stop.abort(new Error('enough'));
        await next?.catch(() => undefined);
        await changes.return(undefined).catch(() => undefined);
        await namespace.states.stop();
      }
    }),
    { seed: 1, numRuns: 150 },
  );
});
