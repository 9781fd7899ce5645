import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, type TestContext, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { busyboxImage } from '../support/any-images.ts';
import {
  apply,
  ended,
  get,
  kubectl,
  makeNamespace,
  remove,
  said,
  session,
  takesPods,
  turn,
  until,
} from '../support/cluster.ts';
import { runnerImage } from '../support/images.ts';

/** Runs what its turn brings, by the image's busybox. */
const agent = { command: ['sh', '-c'], args: ['$(INPUT)'], input: 'Args', result: 'Text' };
/** Address at which clouds hand out a node's credentials. */
const METADATA = '169.254.169.254';
const AWAY = `away-${randomBytes(4).toString('hex')}`;
const away = { 'kubernetes.io/metadata.name': AWAY };

const closed = {
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  runAsUser: 65532,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

const pod = (name: string, image: string, command: string[], more: object = {}, securityContext: object = closed) => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: AWAY, name, labels: { app: name } } },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        ...{ name, image, imagePullPolicy: 'Never', command, securityContext },
        volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
      },
    ],
    volumes: [{ name: 'tmp', emptyDir: {} }],
    ...more,
  },
});

/** Answers "web" on both ports. */
const SERVE =
  'mkdir -p /tmp/web && echo web >/tmp/web/index.html && httpd -p 8081 -h /tmp/web && exec httpd -f -p 8080 -h /tmp/web';
/** Fetches for its clients what they ask for by its absolute URL. */
const PROXY = `require('node:http').createServer((asked, answer) => {
  require('node:http').get(asked.url, (got) => { answer.writeHead(got.statusCode); got.pipe(answer); }).on('error', () => answer.destroy());
}).listen(3128)`;
/** The node's own address for a while; a policy that lets everything through would let it be reached. */
const PRETEND = `ip address add ${METADATA}/32 dev lo; trap 'ip address del ${METADATA}/32 dev lo' TERM; mkdir -p /tmp/web; echo web >/tmp/web/index.html; httpd -f -p ${METADATA}:80 -h /tmp/web & wait`;

describe('packets of session pods', () => {
  const addresses: Record<string, string> = {};
  beforeAll(async () => {
    const labels = { 'pod-security.kubernetes.io/enforce': 'privileged' };
    await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: AWAY, labels } });
    await takesPods(AWAY);
    await apply(
      pod('web', busyboxImage, ['/bin/sh', '-c', SERVE]),
      pod('proxy', runnerImage, ['/usr/local/bin/node', '-e', PROXY]),
    );
    for (const name of ['web', 'proxy']) {
      const { status } = await until(AWAY, 'pod', name, ({ status }) => status.podIP && status.phase === 'Running');
      addresses[name] = status.podIP;
    }
    // Servers run before they listen, and an address without an answer would count as closed.
    const byProxy = `export http_proxy=http://${addresses.proxy}:3128; ${fetching(url(8080), '-Y on')}`;
    for (const script of [fetching(url(8080)), fetching(url(8081)), byProxy]) {
      await eventually(async () => (await inPod('web', script)) === 'open', { timeoutMs: 120_000, what: script });
    }
  });
  afterAll(() => remove('namespace', AWAY));

  const url = (port: number) => `http://${addresses.web}:${port}/`;
  /** stdout of a script in a pod that no policy selects. */
  const inPod = async (name: string, script: string) =>
    (await kubectl(['exec', name, '-n', AWAY, '--', 'sh', '-c', script])).trim();

  /** A session of a class with this network; resolves to the class's name and a way to run a turn of it. */
  async function open(t: TestContext, network: object, more: object = {}) {
    const namespace = await makeNamespace(t);
    const name = `packets-${namespace}`;
    const metadata = { name };
    const spec = { agent, ...more, sandbox: { network } };
    await apply({ apiVersion: 'berth.dev/v1alpha1', kind: 'SessionClass', metadata, spec });
    t.onTestFinished(() => remove('sessionclass', name));
    await apply(session(namespace, 'one', { class: name, agent: undefined }));
    let turns = 0;
    const run = async (script: string) => {
      const id = `one-${++turns}`;
      await apply(turn(namespace, id, 'one', script));
      const { status } = await ended(namespace, id);
      assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
      return { said: status.output.trim(), podUID: status.podUID };
    };
    return { namespace, name, run };
  }

  const yesNo = (command: string) => `if timeout 4 ${command} >/dev/null 2>&1; then echo open; else echo closed; fi`;
  const fetching = (from: string, options = '-Y off') => yesNo(`wget ${options} -q -O - ${from} | grep web`);
  const resolving = yesNo('nslookup kubernetes.default.svc.cluster.local');
  type Run = Awaited<ReturnType<typeof open>>['run'];

  /**
   * Waits until the plugin has brought the pod's rules up to what is expected: it learns of pods and policies by watching them.
   * What must be closed is asked first, for a pod that no plugin knows yet reaches everything.
   */
  const must = (run: Run, what: 'open' | 'closed', script: string) =>
    eventually(async () => (await run(script)).said === what, { timeoutMs: 120_000, what: `${script} is ${what}` });

  test('of a class that says nothing reach neither a pod nor DNS', async (t) => {
    const { run } = await open(t, {});
    await must(run, 'closed', fetching(url(8080)));
    await must(run, 'closed', resolving);
  });

  test('reach the pods and ports on the list, and DNS, and nothing else', async (t) => {
    const web = { podSelector: { matchLabels: { app: 'web' } }, namespaceSelector: { matchLabels: away } };
    const { run } = await open(t, { mode: 'AllowList', allow: [{ ...web, ports: [{ port: 8080 }] }] });
    await must(run, 'closed', fetching(url(8081)));
    await must(run, 'open', fetching(url(8080)));
    await must(run, 'open', resolving);
  });

  test('reach the addresses on the list, not those that it leaves out, and no DNS with dns: false', async (t) => {
    const { cidr, except } = { cidr: '0.0.0.0/0', except: [`${addresses.web}/32`] };
    const { run, name } = await open(t, { mode: 'AllowList', dns: false, allow: [{ cidr, except }] });
    await must(run, 'closed', fetching(url(8080)));
    const allow = [{ cidr: `${addresses.web}/32` }];
    await kubectl(['patch', 'sessionclass', name, '--type=merge', '-p', JSON.stringify(network({ allow }))]);
    await must(run, 'closed', resolving);
    await must(run, 'open', fetching(url(8080)));
  });

  test('reach by the proxy what they do not reach themselves', async (t) => {
    const proxy = {
      url: `http://${addresses.proxy}:3128`,
      podSelector: { matchLabels: { app: 'proxy' } },
      namespaceSelector: { matchLabels: away },
    };
    const { run } = await open(t, { mode: 'AllowList', dns: false, proxy });
    await must(run, 'closed', fetching(url(8080)));
    await must(run, 'open', fetching(url(8080), '-Y on'));
  });

  test('reach with Open everything but what hands out the node’s credentials', async (t) => {
    const privileged = { privileged: true, runAsUser: 0 };
    await apply(pod('pretend', busyboxImage, ['/bin/sh', '-c', PRETEND], { hostNetwork: true }, privileged));
    const { spec } = await until(AWAY, 'pod', 'pretend', ({ status }) => status.phase === 'Running');
    const nodeSelector = { 'kubernetes.io/hostname': spec.nodeName };
    // A pod that no policy selects reaches the stand-in.
    await apply(pod('free', busyboxImage, ['/bin/sleep', '3600'], { nodeSelector }));
    await until(AWAY, 'pod', 'free', ({ status }) => status.phase === 'Running');
    await eventually(async () => (await inPod('free', fetching(`http://${METADATA}/`))) === 'open', {
      timeoutMs: 120_000,
      what: 'a pod without a policy reaches the stand-in',
    });
    const { run } = await open(t, { mode: 'Open' }, { nodeSelector });
    await must(run, 'closed', fetching(`http://${METADATA}/`));
    await must(run, 'open', fetching(url(8081)));
    await must(run, 'open', resolving);
    await remove('pod', 'pretend', '-n', AWAY);
  });

  test('change with the class at once, in the pod that runs', async (t) => {
    const { run, name } = await open(t, { mode: 'Open' });
    await must(run, 'open', fetching(url(8080)));
    const { podUID } = await run('true');
    for (const [mode, what] of [
      ['None', 'closed'],
      ['Open', 'open'],
    ] as const) {
      await kubectl(['patch', 'sessionclass', name, '--type=merge', '-p', JSON.stringify(network({ mode }))]);
      await must(run, what, fetching(url(8080)));
    }
    assert.equal((await run('true')).podUID, podUID);
  });

  test('from elsewhere do not arrive, whatever the class lets out', async (t) => {
    const { namespace, run } = await open(t, { mode: 'Open' });
    const { podUID } = await run('true');
    const self = fetching('http://127.0.0.1:9000/');
    const serve = `cd /tmp && echo web >index.html && httpd -p 9000; until [ "$(${self})" = open ]; do sleep 1; done; echo answers itself >&2; sleep 600`;
    await apply(turn(namespace, 'serve', 'one', serve));
    const [{ metadata }] = (await get(['pods', '-n', namespace])).items;
    assert.equal(metadata.uid, podUID);
    const from = (address: string) => inPod('web', fetching(`http://${address}/`));
    await said(namespace, metadata.name, 'answers itself');
    // The pod's address is set after its first result arrives, and a missing address would count as closed.
    const own = await until(namespace, 'pod', metadata.name, ({ status }) => status.podIP);
    await eventually(async () => (await from(`${addresses.web}:8080`)) === 'open', {
      timeoutMs: 120_000,
      what: 'others are reached',
    });
    await eventually(async () => (await from(`${own.status.podIP}:9000`)) === 'closed', {
      timeoutMs: 120_000,
      what: 'the session is not',
    });
    await kubectl(['patch', 'turn', 'serve', '-n', namespace, '--type=merge', '-p', '{"spec":{"cancel":true}}']);
  });

  test('without a runner are closed too', async (t) => {
    const namespace = await makeNamespace(t);
    const name = `packets-${namespace}`;
    // The script asks until the address is closed: the first packets of a new pod may pass.
    const script = `i=0; while said=$(${fetching(url(8080))}); [ $said = open ] && [ $i -lt 100 ]; do i=$((i+1)); sleep 1; done
      echo '<<<BERTH_RESULT_START>>>{"status":"success","output":"'$said'"}<<<BERTH_RESULT_END>>>'`;
    const spec = { runner: 'None', image: busyboxImage, agent: { command: ['/bin/sh', '-c', script] } };
    await apply({ apiVersion: 'berth.dev/v1alpha1', kind: 'SessionClass', metadata: { name }, spec });
    t.onTestFinished(() => remove('sessionclass', name));
    await apply(session(namespace, 'one', { class: name, agent: undefined }), turn(namespace, 'one-1', 'one', null));
    const { status } = await ended(namespace, 'one-1');
    assert.equal(status.output, 'closed', JSON.stringify(status));
  });
});

const network = (fields: object) => ({ spec: { sandbox: { network: fields } } });
