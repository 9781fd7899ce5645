import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ApiError, TransportError } from '../../../core/kube/errors.ts';
import { follow } from '../../../core/kube/follow.ts';
import { pods } from '../../../core/kube/resources.ts';
import type { KubeApi, WatchEvent } from '../../../core/kube/types.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const lost = () => new TransportError('the connection was reset');
const refused = (code: number) => new ApiError({ code, reason: 'induced', message: `induced ${code}` });
const pod = (version: number) => ({ metadata: { name: 'a', namespace: 'ns', resourceVersion: String(version) } });
const event = (version: number, type = 'MODIFIED') => ({ type, object: pod(version) }) as WatchEvent<never>;

/** Answer to a list or a watch: after `ms`, events and then an end or an error. */
interface Reply {
  ms?: number;
  events?: WatchEvent<never>[];
  error?: Error;
}

/** A cluster that answers lists and watches as told, one after the other; then with lists of `pod(9)` and open watches. */
function cluster(clock: VirtualClock, replies: { lists?: Reply[]; watches?: Reply[] }) {
  const { lists = [], watches = [] } = replies;
  const asked: string[] = [];
  const take = async (from: Reply[], otherwise: Reply) => {
    const reply = from.shift() ?? otherwise;
    await new Promise<void>((resolve) => clock.setTimer(reply.ms ?? 0, resolve));
    return reply;
  };
  const list = async () => {
    asked.push('list');
    const { error } = await take(lists, {});
    if (error) throw error;
    return { items: [pod(lists.length > 0 ? 1 : 9)], metadata: { resourceVersion: '1' } };
  };
  const watch = async function* () {
    asked.push('watch');
    const { events = [], error } = await take(watches, { ms: 1e9 });
    yield* events;
    if (error) throw error;
  };
  return { asked, api: { list, watch } as unknown as Pick<KubeApi, 'list' | 'watch'> };
}

/** Follows until version 9 is seen; resolves with the versions, or with the error that it ended with. */
async function followed(replies: { lists?: Reply[]; watches?: Reply[] }, forMs: number) {
  const clock = new VirtualClock();
  const { api, asked } = cluster(clock, replies);
  const seen: (string | undefined)[] = [];
  const stop = new AbortController();
  const following = (async () => {
    for await (const now of follow(api, pods, { namespace: 'ns', name: 'a' }, { clock, signal: stop.signal })) {
      seen.push(now?.metadata.resourceVersion);
      if (now?.metadata.resourceVersion === '9') return 'seen';
    }
    return 'ended';
  })().catch((error: unknown) => error);
  await clock.advance(forMs);
  stop.abort(new Error('still following'));
  return { end: await following, seen, asked, at: clock.monotonic() };
}

describe('an object that is followed', () => {
  test('is shown as it is, after each change and once it is gone; bookmarks are not shown', async () => {
    const bookmark = { type: 'BOOKMARK', resourceVersion: '4' } as const;
    const events = [event(2), bookmark, event(5, 'DELETED')];
    const { seen, end } = await followed({ lists: [{}, {}], watches: [{ events }] }, 5_000);
    assert.deepEqual([seen, end], [['1', '2', undefined, '9'], 'seen']);
  });

  for (const [what, error] of [
    ['500, as of an etcd without a leader', refused(500)],
    ['503', refused(503)],
    ['504', refused(504)],
    ['429', refused(429)],
    ['410', refused(410)],
    ['a lost connection', lost()],
  ] as const) {
    test(`goes on after ${what}, as the answer to a watch and within one`, async () => {
      const watches = [{ error }, { events: [event(3)], error }];
      const { seen, end, asked } = await followed({ lists: [{}, {}, {}], watches }, 5_000);
      assert.deepEqual([end, seen], ['seen', ['1', '1', '3', '9']]);
      assert.deepEqual(asked, ['list', 'watch', 'list', 'watch', 'list']);
    });
  }

  test('goes on when a watch that was silent for long is cut and the API server is away for a while', async () => {
    const watches = [{ ms: 50_000, error: lost() }];
    // Each call is tried for 15 s by the client itself.
    const lists = [{}, { ms: 15_000, error: lost() }, { ms: 15_000, error: lost() }, { ms: 5_000 }];
    const { end, seen } = await followed({ lists, watches }, 100_000);
    assert.deepEqual([end, seen], ['seen', ['1', '9']]);
  });

  test('goes on when each watch is cut after a while without an event, as a load balancer does', async () => {
    const watches = Array.from({ length: 10 }, () => ({ ms: 50_000, error: lost() }));
    const { end } = await followed({ lists: Array.from({ length: 11 }, () => ({})), watches }, 1_000_000);
    assert.equal(end, 'seen');
  });

  test('goes on when an API server that has just started does not know yet whom it knew', async () => {
    const lists = [{}, { error: refused(401) }, { error: refused(403) }, { error: refused(503) }, {}, {}];
    const watches = [{ error: lost() }, { error: refused(403) }];
    const { end, seen } = await followed({ lists, watches }, 10_000);
    assert.deepEqual([end, seen], ['seen', ['1', '1', '9']]);
  });

  test('is given up at once when it may not be listed or watched, and for what cannot pass', async () => {
    for (const [replies, code] of [
      [{ lists: [{ error: refused(403) }] }, 403],
      [{ lists: [{ error: refused(401) }] }, 401],
      [{ lists: [{}, {}], watches: [{ error: refused(403) }] }, 403],
      [{ lists: [{}, { error: refused(400) }], watches: [{ events: [event(2)], error: lost() }] }, 400],
    ] as const) {
      const { end } = await followed(replies as never, 5_000);
      assert.equal((end as ApiError).code, code);
    }
  });

  test('is given up with the last error when the cluster stays away for a minute, or refuses for so long', async () => {
    for (const error of [lost(), refused(403), refused(503)]) {
      const lists = [{}, ...Array.from({ length: 1_000 }, () => ({ error }))];
      const watches = [{ ms: 50_000, error: lost() }];
      const { end, asked } = await followed({ lists, watches }, 200_000);
      assert.equal(end, error);
      assert.ok(asked.length > 60 && asked.length < 140, `${asked.length} requests`);
    }
  });
});
