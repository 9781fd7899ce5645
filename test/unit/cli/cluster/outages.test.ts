import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { Outages } from '../../../../cli/cluster/outages.ts';
import { CliError } from '../../../../cli/errors.ts';
import { followObject } from '../../../../cli/follow/object.ts';
import { TransportError } from '../../../../core/kube/errors.ts';
import type { KubeApi } from '../../../../core/kube/types.ts';
import { turns } from '../../../../core/resources/kinds.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const REFUSED = new TransportError('connect ECONNREFUSED');

function outages(of: 'cluster' | 'server' = 'cluster') {
  const clock = new VirtualClock();
  const said: string[] = [];
  return { clock, said, outages: new Outages(of, { clock, say: (line) => void said.push(line) }) };
}

describe('an outage', () => {
  test('is told once after two seconds, and its end', async () => {
    const { clock, said, outages: seen } = outages();
    seen.note(200);
    for (let second = 0; second < 10; second++) {
      seen.note(REFUSED);
      await clock.advance(1_000);
    }
    assert.deepEqual(said, ['the cluster does not answer, trying again: connect ECONNREFUSED']);
    seen.note(200);
    assert.deepEqual(said.slice(1), ['the cluster answers again']);
    seen.note(503);
    await clock.advance(2_000);
    assert.deepEqual(said.slice(2), ['the cluster does not answer, trying again: HTTP status 503']);
  });

  test('that a retry ends within two seconds is not told', async () => {
    const { clock, said, outages: seen } = outages();
    seen.note(REFUSED);
    await clock.advance(1_900);
    seen.note(200);
    await clock.advance(120_000);
    assert.deepEqual(said, []);
    assert.equal(seen.present, undefined);
    assert.ok(!seen.over.aborted);
  });

  test('of a minute ends what is followed with exit code 3', async () => {
    for (const which of ['cluster', 'server'] as const) {
      const { clock, outages: seen } = outages(which);
      const list = async (_: unknown, { signal }: { signal: AbortSignal }) => {
        seen.note(REFUSED);
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      };
      const api = { list } as unknown as Pick<KubeApi, 'get' | 'list' | 'watch'>;
      const { signal } = new AbortController();
      const following = followObject({ api, namespace: 'ns', outages: seen }, turns, 'x', { clock, signal });
      const end = following.next().catch((error: unknown) => error);
      await clock.advance(59_000);
      assert.ok(!seen.over.aborted);
      await clock.advance(1_000);
      const error = await end;
      assert.ok(error instanceof CliError);
      assert.equal(error.message, `the ${which} has not answered for 60 s: connect ECONNREFUSED`);
      assert.equal(error.exitCode, 3);
    }
  });

  test('is neither a refusal, a wrong certificate, nor a node whose logs cannot be read', () => {
    const { outages: seen } = outages();
    seen.note(401);
    for (const status of [200, 403, 404, 409, 422, 501]) seen.note(status);
    seen.note(500, 'log');
    seen.note(new TransportError('x', { cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } }));
    assert.equal(seen.present, undefined);
  });

  test('is a server that does not know its clients any more', () => {
    const { outages: seen } = outages();
    seen.note(200);
    seen.note(401);
    assert.equal(seen.present?.message, 'the cluster does not answer: HTTP status 401');
  });
});
