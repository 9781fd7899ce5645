import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, type TestContext, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { busyboxImage, debianImage } from '../support/any-images.ts';
import { apply, ended, get, kubectl, makeNamespace, remove, session, turn, until } from '../support/cluster.ts';
import { makeVolume } from '../support/volume.ts';

const SECRET = 'correct-horse-battery-staple';
const START = '<<<BERTH_RESULT_START>>>';
const END = '<<<BERTH_RESULT_END>>>';

/** Script that reports what a program finds in its pod, as `name=value;` pairs. */
const LOOK = `
  found() { out="$out$1=$2;"; }
  field() { awk -v name="$1:" '$1 == name { print $2 }' /proc/self/status; }
  writable() { if (: >"$1/probe") 2>/dev/null; then echo yes; rm "$1/probe"; else echo no; fi; }
  found user "$(id -u):$(id -g)"
  for name in NoNewPrivs Seccomp CapEff CapBnd CapAmb; do found $name "$(field $name)"; done
  found root "$(awk '$2 == "/" { print substr($4, 1, 2) }' /proc/mounts)"
  for path in / /etc /bin /berth-runner /berth-secrets; do
    if [ -d $path ]; then found "write $path" "$(writable $path)"; fi
  done
  for name in HOME TMPDIR BERTH_STATE_DIR WORKSPACE; do
    eval "path=\\\${$name:-}"
    if [ -n "$path" ]; then found "write $name" "$(writable "$path")"; fi
  done
  found here "$(pwd)"
  found account "$(ls /var/run/secrets/kubernetes.io 2>/dev/null | wc -l)"
  found services "$(env | grep -c '^DECOY_')"
  key="$BERTH_SECRETS_DIR/ssh/id"
  found file "$(ls -lnL "$key" | awk '{ print $1, $3, $4 }')"
  found digest "$(sha256sum <"$key" | cut -c1-64)"
  found "write file" "$(if (: >>"$key") 2>/dev/null; then echo yes; else echo no; fi)"
  found said "$(cat "$key")"
`;

const DIGEST = createHash('sha256').update(SECRET).digest('hex');

/** Findings that are equal in every pod, with or without a runner. */
const EVERYWHERE = {
  user: '65532:65532',
  NoNewPrivs: '1',
  Seccomp: '2',
  CapEff: '0000000000000000',
  CapBnd: '0000000000000000',
  CapAmb: '0000000000000000',
  root: 'ro',
  'write /': 'no',
  'write /etc': 'no',
  'write /bin': 'no',
  'write /berth-secrets': 'no',
  'write HOME': 'yes',
  'write WORKSPACE': 'yes',
  account: '0',
  services: '0',
  // Root's, so that ssh, which asks its own user for 0600, takes it; read by the group.
  file: '-r--r----- 0 65532',
  digest: DIGEST,
  'write file': 'no',
};
const WITH_RUNNER = {
  'write TMPDIR': 'yes',
  'write BERTH_STATE_DIR': 'yes',
  'write /berth-runner': 'no',
  here: '/workspace',
  said: '[REDACTED]',
};

/** A class with a volume, files of Secrets and an own RuntimeClass, in a namespace that refuses what is not restricted. */
async function makeClass(t: TestContext, namespace: string, spec: object): Promise<string> {
  const name = `secure-${namespace}`;
  const storageClassName = await makeVolume(t, namespace);
  await apply(
    { apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name: 'keys' }, stringData: { id: SECRET } },
    // Service links would put the address of this Service into the environment of every container.
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name: 'decoy' } },
      spec: { ports: [{ port: 80 }], selector: { app: 'decoy' } },
    },
    {
      ...{ apiVersion: 'berth.dev/v1alpha1', kind: 'SessionClass', metadata: { name } },
      spec: {
        persistence: { workspace: { type: 'Volume', size: '16Mi', storageClassName } },
        secrets: ['keys'],
        ...spec,
      },
    },
  );
  t.onTestFinished(() => remove('sessionclass', name));
  return name;
}

const secretFiles = [{ path: 'ssh/id', secretKeyRef: { name: 'keys', key: 'id' } }];
const env = [{ name: 'WORKSPACE', value: '/workspace' }];

describe('in a namespace that enforces the restricted standard, with a volume and files of Secrets,', {
  concurrent: true,
}, () => {
  for (const { what, spec, expected } of [
    {
      what: 'the runner’s own image',
      spec: { agent: { command: ['sh', '-c', `${LOOK} printf %s "$out"`], input: 'Text', result: 'Text' } },
      expected: WITH_RUNNER,
    },
    {
      what: 'the runner’s own image with its scratch directories in it',
      spec: {
        sandbox: { readOnlyRootFilesystem: false, scratch: 'Image' },
        agent: { command: ['sh', '-c', `${LOOK} printf %s "$out"`], input: 'Text', result: 'Text' },
      },
      expected: { ...WITH_RUNNER, root: 'rw' },
    },
    {
      what: 'any image with the runner brought along',
      spec: {
        ...{ runner: 'Injected', image: busyboxImage },
        agent: { command: ['/bin/sh', '-c', `${LOOK} printf %s "$out"`], input: 'Text', result: 'Text' },
      },
      expected: WITH_RUNNER,
    },
    {
      what: 'an image without a runner',
      spec: {
        ...{ runner: 'None', image: busyboxImage },
        agent: {
          command: ['/bin/sh', '-c', `${LOOK} echo '${START}{"status":"success","output":"'"$out"'"}${END}'`],
          workingDir: '/workspace',
        },
      },
      // A runnerless pod shows secrets: no process in it knows which text is secret.
      expected: { here: '/workspace', said: SECRET },
    },
  ]) {
    test(`${what} runs a turn with no rights, a root that it cannot write to, writable folders of its own and readable files`, async (t) => {
      const namespace = await makeNamespace(t);
      const agent = { ...spec.agent, secretFiles, env };
      const name = await makeClass(t, namespace, { ...spec, agent });
      await apply(session(namespace, 'one', { class: name, agent: undefined }), turn(namespace, 'one-1', 'one', ''));
      const { status } = await ended(namespace, 'one-1');
      assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
      const seen = Object.fromEntries(
        status.output
          .split(';')
          .filter(Boolean)
          .map((entry: string) => entry.split(/=(.*)/).slice(0, 2)),
      );
      assert.deepEqual(seen, { ...EVERYWHERE, ...expected });
    });
  }

  test('the files of a class’s Secrets are the same in the next pod, with what the Secret holds by then', async (t) => {
    const namespace = await makeNamespace(t);
    const script = 'sha256sum <"$BERTH_SECRETS_DIR/ssh/id" | cut -c1-64';
    const agent = { command: ['sh', '-c', script], input: 'Text', result: 'Text', secretFiles };
    const name = await makeClass(t, namespace, { agent, persistence: {} });
    await apply(session(namespace, 'one', { class: name, agent: undefined }), turn(namespace, 'one-1', 'one', ''));
    assert.equal((await ended(namespace, 'one-1')).status.output, `${DIGEST}\n`);
    await suspend(namespace, 'one');
    await apply({ apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name: 'keys' }, stringData: { id: 'new' } });
    await apply(turn(namespace, 'one-2', 'one', ''));
    const digest = createHash('sha256').update('new').digest('hex');
    assert.equal((await ended(namespace, 'one-2')).status.output, `${digest}\n`);
  });
});

test('git works at the top of a volume that belongs to root, and finds its repository again in the next pod', async (t) => {
  const namespace = await makeNamespace(t);
  const script = `
    stat -c %u .
    git init -q .
    [[ $(env -u GIT_CONFIG_COUNT git status 2>&1) == *'dubious ownership'* ]] && echo refused untold
    git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m "$(cat)" && git log --format=%s`;
  const agent = { command: ['/bin/bash', '-c', script], input: 'Text', result: 'Text' };
  const name = await makeClass(t, namespace, { runner: 'Injected', image: debianImage, agent });
  await apply(session(namespace, 'one', { class: name, agent: undefined }), turn(namespace, 'one-1', 'one', 'first'));
  const first = (await ended(namespace, 'one-1')).status;
  assert.equal(first.output, '0\nrefused untold\nfirst\n', JSON.stringify(first));
  await suspend(namespace, 'one');
  await apply(turn(namespace, 'one-2', 'one', 'second'));
  const second = (await ended(namespace, 'one-2')).status;
  assert.equal(second.output, '0\nrefused untold\nsecond\nfirst\n', JSON.stringify(second));
  assert.notEqual(second.podUID, first.podUID);
});

test('a class with hostUsers: false asks for pods with a user namespace of their own, which start where the node has them', async (t) => {
  const namespace = await makeNamespace(t);
  const agent = { command: ['sh', '-c', 'cat /proc/self/uid_map'], input: 'Text', result: 'Text' };
  const name = await makeClass(t, namespace, { hostUsers: false, persistence: {}, timeouts: { start: '30s' }, agent });
  await apply(session(namespace, 'one', { class: name, agent: undefined }), turn(namespace, 'one-1', 'one', ''));
  const pods = () => get(['pods', '-n', namespace]);
  const [pod] = await eventually(async () => {
    const { items } = await pods();
    return items.length > 0 ? items : undefined;
  });
  assert.equal(pod.spec.hostUsers, false);
  const { status } = await ended(namespace, 'one-1');
  // The node of these tests may have no idmapped mounts.
  if (status.phase === 'Succeeded') assert.doesNotMatch(status.output, /^\s*0\s+0\s/);
  else assert.equal(status.error.code, 'StartFailed', JSON.stringify(status));
});

/** Resolves when the session has given up its pod. */
async function suspend(namespace: string, name: string): Promise<void> {
  const patch = ['--type=merge', '-p', '{"spec":{"suspendRequest":"now"}}'];
  await kubectl(['patch', 'session', name, '-n', namespace, ...patch]);
  await until(namespace, 'session', name, ({ status }) => status.phase === 'Suspended');
  assert.deepEqual((await get(['pods', '-n', namespace])).items, []);
}
