import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { samplesOf } from '../../support/metrics.ts';
import { ApiCluster, EVERYTHING } from './support.ts';

const SESSIONS = '/v1/namespaces/default/sessions';
describe('the metrics of the API', () => {
  let api: ApiCluster;
  /** May read metrics and nothing else. */
  let scraper: { name: string; token: string };
  beforeAll(async () => {
    api = await ApiCluster.start();
    scraper = await api.scraper();
  });
  afterAll(() => api.close());

  test('are for whoever may get the path /metrics, who needs no right on sessions and has none by it', async () => {
    const { token } = scraper;
    const answer = await eventually(
      async () => {
        const answer = await api.call('GET', '/metrics', { token });
        return answer.status === 200 ? answer : undefined;
      },
      { what: 'the right is known' },
    );
    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
    assert.match(answer.text, /^# TYPE berth_http_requests_total counter$/m);
    assert.deepEqual(
      samplesOf(answer.text, 'berth_http_tls_not_after_timestamp_seconds'),
      {},
      'there is no certificate',
    );
    assert.equal((await api.call('GET', SESSIONS, { token })).status, 403);
  });

  test('are refused to everybody else, also to those who may do everything with sessions', async () => {
    for (const [token, status, code] of [
      [undefined, 401, 'Unauthenticated'],
      [(await api.user(EVERYTHING, 'somebody-else')).token, 401, 'Unauthenticated'],
      [(await api.user(EVERYTHING)).token, 403, 'Forbidden'],
    ] as const) {
      const answer = await api.call('GET', '/metrics', token ? { token } : {});
      assert.deepEqual([answer.status, answer.problem.code], [status, code]);
      const headers = { authorization: `Bearer ${token}` };
      assert.equal((await fetch(`${api.url}/metrics`, { method: 'HEAD', headers })).status, status);
    }
  });

  test('count requests by method, route and status, and name nobody’s session', async () => {
    const { token } = await api.user(EVERYTHING);
    const route = '/v1/namespaces/{namespace}/sessions/{session}';
    await api.call('GET', `${SESSIONS}/secret-one`, { token });
    await api.call('GET', `${SESSIONS}/secret-two?x=secret`, { token });
    await api.call('GET', `${SESSIONS}/secret-three`);
    await api.call('GET', '/secret-page');
    const expected = {
      [`{method="GET",route="${route}",code="404"}`]: 1,
      [`{method="GET",route="${route}",code="400"}`]: 1,
      [`{method="GET",route="${route}",code="401"}`]: 1,
      '{method="GET",route="",code="404"}': 1,
    };
    // A request is counted when its answer has gone, which its caller may hear of first.
    const text = await eventually(
      async () => {
        const { text } = await api.call('GET', '/metrics', scraper);
        const counts = Object.entries(samplesOf(text, 'berth_http_requests_total'));
        const others = counts.filter(([labels]) => !/route="(\/metrics|[^"]*\/sessions)"/.test(labels));
        return isDeepStrictEqual(Object.fromEntries(others), expected) ? text : undefined;
      },
      { what: 'each of them is counted once' },
    );
    assert.equal(samplesOf(text, 'berth_http_request_duration_seconds_count')[`{method="GET",route="${route}"}`], 3);
    assert.doesNotMatch(text, /secret/);
  });

  test('count what no handler sees, a path that cannot be decoded and bytes that are no HTTP', async () => {
    const count = async () => {
      const { text } = await api.call('GET', '/metrics', scraper);
      const samples = samplesOf(text, 'berth_http_requests_total');
      return [samples['{method="GET",route="",code="400"}'], samples['{method="",route="",code="400"}']];
    };
    assert.deepEqual(await count(), [undefined, undefined]);
    await api.call('GET', '/v1/%zz');
    connect(Number(new URL(api.url).port), '127.0.0.1')
      .resume()
      .end('garbage\r\n\r\n');
    await eventually(async () => isDeepStrictEqual(await count(), [1, 1]), { what: 'each is counted once' });
  });

  test('count a request whose client leaves while it follows', async () => {
    const { token } = await api.user(EVERYTHING);
    await api.cluster.create('followed', { agent: { command: ['cat'] } });
    const leaving = new AbortController();
    const headers = { authorization: `Bearer ${token}` };
    const { status } = await fetch(`${api.url}${SESSIONS}/followed/events`, { headers, signal: leaving.signal });
    assert.equal(status, 200);
    leaving.abort();
    const labels = '{method="GET",route="/v1/namespaces/{namespace}/sessions/{session}/events",code="200"}';
    await eventually(
      async () => {
        const { text } = await api.call('GET', '/metrics', scraper);
        return samplesOf(text, 'berth_http_requests_total')[labels] === 1;
      },
      { what: 'it is counted' },
    );
  });

  test('count no request as open whose client left before it was known who it is', async () => {
    const { token } = await api.user(EVERYTHING);
    const asked = { tokenreviews: 0, subjectaccessreviews: 0 };
    const review = ({ resource }: { resource?: string }) => {
      if (resource === 'tokenreviews' || resource === 'subjectaccessreviews') asked[resource] += 1;
      return resource === 'tokenreviews';
    };
    const open = async () => {
      const { text } = await api.call('GET', '/metrics', scraper);
      return samplesOf(text, 'berth_http_open_requests')['{kind="requests"}'];
    };
    // The cluster has been asked about the scraper, so that the reviews counted below are the other's.
    await open();
    const { faults } = api.cluster.server;
    faults.delayNext(review, 500);
    faults.delayNext(review, 0);
    const leaving = new AbortController();
    const leaves = api.call('GET', SESSIONS, { token, signal: leaving.signal });
    await eventually(() => asked.tokenreviews > 0, { what: 'its token is reviewed' });
    leaving.abort();
    await assert.rejects(leaves);
    await eventually(() => asked.subjectaccessreviews > 0, { what: 'it is known who it was' });
    await eventually(async () => (await open()) === 1, { what: 'the scraper’s alone is open' });
  });
});
