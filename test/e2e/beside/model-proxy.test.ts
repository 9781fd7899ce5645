import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { apply, checkout, ended, get, kubectl, makeNamespace, remove, session, turn } from '../support/cluster.ts';
import { runnerImage } from '../support/images.ts';

const KEY = 'the-key-of-the-model';

/** Answers with what it was sent, as a model's API would see it. */
const UPSTREAM = `
  require('node:http').createServer((request, response) => {
    const { headers, method, url } = request;
    let body = '';
    request.setEncoding('utf8').on('data', (part) => { body += part; }).on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ method, url, body, key: headers['x-api-key'], authorization: headers.authorization ?? null }));
    });
  }).listen(8080);`;

/** Program of an agent that asks the proxy as a client of the model does, and the model itself past it. */
const AGENT = (model: string) => `
  const { env } = process;
  const headers = { 'x-api-key': 'mine', authorization: 'mine' };
  const ask = (url) => fetch(url, { method: 'POST', body: 'hello', headers });
  // The Service refuses connections until the node has heard of the proxy's pod.
  const again = (error) => (performance.now() < 60_000 ? new Promise((go) => setTimeout(go, 100)).then(model) : Promise.reject(error));
  const model = () => ask(env.ANTHROPIC_BASE_URL + '/v1/messages?beta=true').then((answer) => answer.json(), again);
  const seen = model();
  // Each time by another connection: the network plugin may let a pod's first packets through, and those that follow on them.
  const reached = () => new Promise((resolve) => {
    const socket = require('node:net').connect({ host: '${model}', port: 8080, timeout: 3000 });
    const end = (is) => () => { socket.destroy(); resolve(is); };
    socket.on('connect', end(true)).on('timeout', end(false)).on('error', end(false));
  });
  const isBlocked = async () => {
    while (await reached()) if (performance.now() > 60_000) return false;
    return true;
  };
  const past = isBlocked();
  Promise.all([seen, past]).then(([seen, past]) => {
    console.log(JSON.stringify({ seen, isBlocked: past, hasKey: JSON.stringify(env).includes('${KEY}') }));
  });`;

test('a proxy adds the key of a model for sessions that reach nothing else and never see it, as examples/model-proxy.yaml says', async (t) => {
  const namespace = await makeNamespace(t);
  const name = `model-${namespace}`;
  t.onTestFinished(() => remove('sessionclass', name));
  const text = (await readFile(join(checkout, 'examples/model-proxy.yaml'), 'utf8'))
    .replaceAll('namespace: egress', `namespace: ${namespace}`)
    .replaceAll('kubernetes.io/metadata.name: egress', `kubernetes.io/metadata.name: ${namespace}`)
    .replaceAll('model-proxy.egress.svc', `model-proxy.${namespace}.svc`)
    .replace('name: model\n', `name: ${name}\n`)
    .replace(/image: .*/, `image: ${runnerImage}`)
    .replace('https://api.anthropic.com', `http://upstream.${namespace}.svc:8080`);
  const objects = parseAllDocuments(text).map((document) => document.toJS());
  const [, proxy] = objects;
  const secured = proxy.spec.template.spec;
  await apply(
    {
      ...{ apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name: 'model-key' } },
      stringData: { key: `${KEY}\n` },
    },
    {
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name: 'upstream', labels: { app: 'upstream' } } },
      spec: {
        ...{ automountServiceAccountToken: false, securityContext: secured.securityContext },
        containers: [
          {
            ...{ name: 'model', image: runnerImage, command: ['node', '-e', UPSTREAM] },
            securityContext: secured.containers[0].securityContext,
          },
        ],
      },
    },
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name: 'upstream' } },
      spec: { selector: { app: 'upstream' }, ports: [{ port: 8080 }] },
    },
    ...objects,
  );
  await kubectl(['rollout', 'status', 'deployment/model-proxy', '-n', namespace, '--timeout=180s']);
  await kubectl(['wait', '--for=condition=Ready', 'pod/upstream', '-n', namespace, '--timeout=180s']);
  const { status: model } = await get(['pod', 'upstream', '-n', namespace]);
  const agent = { command: ['node', '-e', AGENT(model.podIP)], input: 'Text', result: 'Text' };
  await apply(session(namespace, 'one', { class: name, agent }), turn(namespace, 'one-1', 'one', ''));
  const { status } = await ended(namespace, 'one-1');
  assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
  assert.deepEqual(JSON.parse(status.output), {
    seen: { method: 'POST', url: '/v1/messages?beta=true', body: 'hello', key: KEY, authorization: null },
    isBlocked: true,
    hasKey: false,
  });
});
