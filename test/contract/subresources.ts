import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type Connect, useBench } from './target.ts';

export function subresourceContract(connect: Connect): void {
  describe('subresources', () => {
    const bench = useBench(connect);

    test('status is not set by create or update, only by its subresource', async () => {
      const made = await bench.make({ spec: { size: 1 }, status: { phase: 'Done' } });
      assert.equal(made.status, undefined);
      const put = await bench.api.put(bench.at(made), { ...made, status: { phase: 'Done' } });
      assert.equal(put.body.status, undefined);
      const set = await bench.api.patch(`${bench.at(made)}/status`, { status: { phase: 'Running' } });
      assert.equal(set.status, 200, set.text);
      assert.equal(set.body.status.phase, 'Running');
      const kept = await bench.api.patch(bench.at(made), { spec: { size: 2 }, status: { phase: 'Done' } });
      assert.equal(kept.body.status.phase, 'Running');
    });

    test('the status subresource changes neither spec nor metadata', async () => {
      const made = await bench.make();
      const { body } = await bench.api.patch(`${bench.at(made)}/status`, {
        metadata: { labels: { sneaky: 'yes' }, annotations: { a: 'b' }, finalizers: ['x.dev/y'] },
        spec: { size: 99 },
        status: { phase: 'Waiting' },
      });
      assert.equal(body.metadata.labels, undefined);
      assert.equal(body.metadata.annotations, undefined);
      assert.equal(body.metadata.finalizers, undefined);
      assert.equal(body.spec.size, 1);
      assert.equal(body.status.phase, 'Waiting');
    });

    test('a status written with an old version is 409', async () => {
      const made = await bench.make();
      const put = await bench.api.put(`${bench.at(made)}/status`, { ...made, status: { phase: 'Running' } });
      assert.equal(put.status, 200, put.text);
      const late = await bench.api.put(`${bench.at(made)}/status`, { ...made, status: { phase: 'Done' } });
      assert.equal(late.status, 409);
    });

    test('a patch that names an old version is 409', async () => {
      const made = await bench.make();
      await bench.api.patch(bench.at(made), { spec: { size: 2 } });
      const { resourceVersion } = made.metadata;
      const late = await bench.api.patch(bench.at(made), { metadata: { resourceVersion }, spec: { size: 3 } });
      assert.equal(late.status, 409);
      assert.equal(late.body.reason, 'Conflict');
      const status = await bench.api.patch(`${bench.at(made)}/status`, { metadata: { resourceVersion }, status: {} });
      assert.equal(status.status, 409);
    });

    test('the scale subresource reads and writes the replicas', async () => {
      const made = await bench.make();
      const scale = await bench.api.get(`${bench.at(made)}/scale`);
      assert.equal(scale.body.kind, 'Scale');
      assert.equal(scale.body.spec.replicas, 1);
      const set = await bench.api.patch(`${bench.at(made)}/scale`, { spec: { replicas: 4 } });
      assert.equal(set.status, 200, set.text);
      assert.equal((await bench.api.get(bench.at(made))).body.spec.replicas, 4);
    });
  });
}
