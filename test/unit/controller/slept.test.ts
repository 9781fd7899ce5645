import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Effects } from '../../../controller/act/context.ts';
import type { Installation } from '../../../controller/observed/world.ts';
import { Reconciler } from '../../../controller/reconcile.ts';
import { ServerClock } from '../../../core/kube/server-clock.ts';
import { silentLogger } from '../../../core/system.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const HOUR = 3_600_000;

/** Controller that has received the server time once and reconciles a name without a session. */
async function reconciles(happens: (own: VirtualClock) => void) {
  const own = new VirtualClock();
  const clock = new ServerClock(own, silentLogger);
  const answer = () => {
    const at = own.monotonic();
    clock.answered({ date: new Date(own.now()).toUTCString(), sentAt: at, receivedAt: at });
  };
  answer();
  await own.advance(1);
  happens(own);
  const asked: string[] = [];
  /** Error of the time by which a decision was made, milliseconds. */
  let offBy: number | undefined;
  const effects = {
    clock,
    ledger: { leave() {}, groups: { leave() {} } },
    caches: {
      session: () => undefined,
      turnsNaming() {
        offBy = Math.abs(clock.now() - own.now());
        return [];
      },
    },
    api: {
      async get(_resource: unknown, { name }: { name: string }) {
        asked.push(name);
        answer();
        return {};
      },
    },
  } as unknown as Effects;
  const { signal } = new AbortController();
  const reconciler = new Reconciler({
    effects,
    installation: {} as Installation,
    closing: signal,
    onNoSlotWanted() {},
  });
  await reconciler.reconcile('team/notes', signal);
  return { asked, offBy };
}

test('a controller whose machine has slept asks for the time before it decides by it', async () => {
  const { asked, offBy = Number.POSITIVE_INFINITY } = await reconciles((own) => own.jump(HOUR));
  assert.deepEqual(asked, ['notes']);
  assert.ok(offBy <= 1000, `${offBy}`);
});

test('a controller whose machine has not slept asks for nothing', async () => {
  const { asked } = await reconciles(() => {});
  assert.deepEqual(asked, []);
});
