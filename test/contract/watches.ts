import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import type { RawEvent } from '../support/raw-api.ts';
import { type Connect, useBench } from './target.ts';

const brief = (event: RawEvent) => [event.type, event.object.metadata.name];

export function watchContract(connect: Connect): void {
  describe('watches', () => {
    const bench = useBench(connect);
    const version = async () => (await bench.api.get(bench.widgets)).body.metadata.resourceVersion;

    test('changes come in order, each with the object as it was then', async () => {
      const from = await version();
      const made = await bench.make();
      await bench.api.patch(bench.at(made), { spec: { size: 2 } });
      const watch = await bench.api.watch(`${bench.widgets}?watch=true&resourceVersion=${from}`);
      await bench.api.delete(bench.at(made));
      const events = await watch.take(3);
      const { name } = made.metadata;
      assert.deepEqual(events.map(brief), [
        ['ADDED', name],
        ['MODIFIED', name],
        ['DELETED', name],
      ]);
      assert.deepEqual(
        events.map(({ object }) => object.spec.size),
        [1, 2, 2],
      );
      const versions = events.map(({ object }) => Number(object.metadata.resourceVersion));
      assert.deepEqual(
        versions,
        versions.toSorted((a, b) => a - b),
      );
      assert.equal(new Set(versions).size, 3);
      watch.close();
    });

    test('a watch without a version begins with what is there', async () => {
      const made = await bench.make({ spec: { size: 1 } }, { labels: { begin: 'here' } });
      const watch = await bench.api.watch(`${bench.widgets}?watch=1&labelSelector=begin%3Dhere`);
      assert.deepEqual(brief((await watch.next()) as RawEvent), ['ADDED', made.metadata.name]);
      watch.close();
    });

    test('a watch of one name sees only that object', async () => {
      const one = await bench.make();
      const from = await version();
      const watch = await bench.api.watch(
        `${bench.widgets}?watch=true&resourceVersion=${from}&fieldSelector=metadata.name%3D${one.metadata.name}`,
      );
      const other = await bench.make();
      await bench.api.delete(bench.at(other));
      await bench.api.patch(bench.at(one), { spec: { size: 9 } });
      assert.deepEqual(brief((await watch.next()) as RawEvent), ['MODIFIED', one.metadata.name]);
      watch.close();
    });

    test('an object that begins or ceases to match a selector is ADDED or DELETED', async () => {
      const from = await version();
      const watch = await bench.api.watch(`${bench.widgets}?watch=true&resourceVersion=${from}&labelSelector=in%3Dyes`);
      const made = await bench.make();
      await bench.api.patch(bench.at(made), { metadata: { labels: { in: 'yes' } } });
      await bench.api.patch(bench.at(made), { spec: { size: 2 } });
      await bench.api.patch(bench.at(made), { metadata: { labels: { in: 'no' } } });
      const events = await watch.take(3);
      assert.deepEqual(
        events.map(({ type }) => type),
        ['ADDED', 'MODIFIED', 'DELETED'],
      );
      watch.close();
    });

    test('selectable fields select in watches', async () => {
      const from = await version();
      const watch = await bench.api.watch(
        `${bench.widgets}?watch=true&resourceVersion=${from}&fieldSelector=status.phase%3DRunning`,
      );
      const made = await bench.make();
      await bench.api.patch(`${bench.at(made)}/status`, { status: { phase: 'Running' } });
      const event = (await watch.next()) as RawEvent;
      assert.deepEqual(brief(event), ['ADDED', made.metadata.name]);
      await bench.api.patch(`${bench.at(made)}/status`, { status: { phase: 'Done' } });
      assert.deepEqual(brief((await watch.next()) as RawEvent), ['DELETED', made.metadata.name]);
      watch.close();
    });

    test('a watch ends in good order after timeoutSeconds, with a bookmark where allowed', async () => {
      const made = await bench.make();
      const from = made.metadata.resourceVersion;
      const query = `watch=true&resourceVersion=${from}&timeoutSeconds=3&allowWatchBookmarks=true`;
      // A bookmark is never promised: a busy server leaves it out.
      const bookmarks = await eventually(
        async () => {
          const events: RawEvent[] = [];
          const watch = await bench.api.watch(`${bench.widgets}?${query}`);
          for (let event = await watch.next(); event; event = await watch.next()) events.push(event);
          return events.length > 0 ? events : undefined;
        },
        { timeoutMs: 120_000, what: 'a watch with a bookmark' },
      );
      for (const { type, object } of bookmarks) {
        assert.equal(type, 'BOOKMARK');
        assert.equal(object.kind, 'Widget');
        assert.ok(Number(object.metadata.resourceVersion) >= Number(from));
      }
    });

    test('a version from before the history is answered with an event of 410 Expired', async () => {
      const watch = await bench.api.watch(`${bench.widgets}?watch=true&resourceVersion=1`);
      assert.equal(watch.status, 200);
      const event = await watch.next();
      assert.equal(event?.type, 'ERROR');
      assert.equal(event.object.code, 410);
      assert.equal(event.object.reason, 'Expired');
      assert.match(event.object.message, /^too old resource version: 1 \(\d+\)$/);
      assert.equal(await watch.next(), undefined);
    });

    test('sendInitialEvents tells the state, then a bookmark that says so', async () => {
      const made = await bench.make({ spec: { size: 1 } }, { labels: { initial: 'yes' } });
      const query =
        'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=initial%3Dyes';
      const watch = await bench.api.watch(`${bench.widgets}?${query}`);
      const [added, bookmark] = await watch.take(2);
      assert.deepEqual(brief(added as RawEvent), ['ADDED', made.metadata.name]);
      assert.equal(bookmark?.type, 'BOOKMARK');
      assert.equal(bookmark.object.metadata.annotations['k8s.io/initial-events-end'], 'true');
      watch.close();
    });

    test('sendInitialEvents without resourceVersionMatch is 422', async () => {
      const { status, body } = await bench.api.get(`${bench.widgets}?watch=true&sendInitialEvents=true`);
      assert.equal(status, 422);
      assert.match(
        body.message,
        /resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan/,
      );
    });

    test('a watch over all namespaces sees this one', async () => {
      const from = await version();
      const watch = await bench.api.watch(`/apis/contract.berth.dev/v1/widgets?watch=true&resourceVersion=${from}`);
      const made = await bench.make({ spec: { size: 1 } });
      let event = await watch.next();
      while (event && event.object.metadata.namespace !== bench.namespace) event = await watch.next();
      assert.deepEqual(brief(event as RawEvent), ['ADDED', made.metadata.name]);
      watch.close();
    });
  });
}
