import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { widgetDefinition } from '../../contract/widget.ts';
import { type TestServer, testServer } from '../../support/api-server.ts';
import { eventually } from '../../support/eventually.ts';
import { tools } from '../../support/tools.ts';

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

const yaml = (name: string, spec: string) =>
  `apiVersion: contract.berth.dev/v1\nkind: Widget\nmetadata:\n  name: ${name}\nspec: ${spec}\n`;

describe('kubectl works with the embedded API server', () => {
  let server: TestServer;
  let folder: string;
  let program: string;
  const children: ChildProcess[] = [];
  const environment = () => ({
    PATH: process.env.PATH,
    HOME: folder,
    KUBECONFIG: join(folder, 'kubeconfig'),
    KUBE_EDITOR: join(folder, 'editor'),
  });

  const kubectl = (args: string[], input?: string): Promise<Outcome> =>
    new Promise((resolve) => {
      const child = execFile(program, args, { env: environment(), timeout: 60_000 }, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
      );
      child.stdin?.end(input ?? '');
    });
  const ok = async (args: string[], input?: string) => {
    const { code, stdout, stderr } = await kubectl(args, input);
    assert.equal(code, 0, `kubectl ${args.join(' ')}: ${stderr}`);
    return stdout.trim();
  };
  const file = async (name: string, content: string) => {
    const path = join(folder, name);
    await writeFile(path, content, { mode: 0o755 });
    return path;
  };

  beforeAll(async () => {
    program = (await tools()).kubectl;
    folder = await mkdtemp(join(tmpdir(), 'berth-kubectl-'));
    server = await testServer();
    await file('kubeconfig', JSON.stringify(server.kubeconfig('test-admin')));
    await ok(['apply', '-f', await file('definition.json', JSON.stringify(widgetDefinition))]);
    await ok(['wait', '--for=condition=Established', 'crd/widgets.contract.berth.dev', '--timeout=20s']);
  });
  afterAll(async () => {
    for (const child of children) child.kill();
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('version, api-resources and api-versions tell what is served', async () => {
    assert.match(await ok(['version']), /Server Version: v1\.35/);
    const resources = await ok(['api-resources']);
    assert.match(resources, /^widgets +wd +contract\.berth\.dev\/v1 +true +Widget$/m);
    assert.match(resources, /^pods +po +v1 +true +Pod$/m);
    assert.match(await ok(['api-versions']), /^contract\.berth\.dev\/v1$/m);
  });

  test('apply creates, leaves alone, changes and removes a field', async () => {
    const path = await file('a.yaml', yaml('applied', '{size: 1, label: abc}'));
    assert.equal(await ok(['apply', '-f', path]), 'widget.contract.berth.dev/applied created');
    assert.equal(await ok(['apply', '-f', path]), 'widget.contract.berth.dev/applied unchanged');
    await file('a.yaml', yaml('applied', '{size: 2}'));
    assert.equal(await ok(['apply', '-f', path]), 'widget.contract.berth.dev/applied configured');
    const spec = JSON.parse(await ok(['get', 'wd', 'applied', '-o', 'jsonpath={.spec}']));
    assert.equal(spec.size, 2);
    assert.equal(spec.label, undefined);
    assert.match(await ok(['diff', '-f', path]), /^$/);
  });

  test('apply refuses an unknown field and says which', async () => {
    const { code, stderr } = await kubectl(['apply', '-f', '-'], yaml('unknown', '{size: 1, colour: red}'));
    assert.equal(code, 1);
    assert.match(stderr, /strict decoding error: unknown field "spec\.colour"/);
  });

  test('apply takes back a list as get prints it, and refuses an unknown field in it', async () => {
    for (const name of ['kept-1', 'kept-2']) await ok(['apply', '-f', '-'], yaml(name, '{size: 1}'));
    const kept = await ok(['get', 'wd', 'kept-1', 'kept-2', '-o', 'yaml']);
    assert.match(kept, /^kind: List$/m);
    await ok(['delete', 'wd', 'kept-1', 'kept-2']);
    const taken = await ok(['apply', '-f', '-'], kept);
    assert.deepEqual(taken.match(/^\S+ created$/gm)?.length, 2, taken);
    const { code, stderr } = await kubectl(
      ['apply', '-f', '-'],
      kept.replaceAll('size: 1', 'size: 2\n    colour: red'),
    );
    assert.equal(code, 1);
    assert.match(stderr, /strict decoding error: unknown field "spec\.colour"/);
  });

  test('apply shows what is invalid', async () => {
    const { code, stderr } = await kubectl(['apply', '-f', '-'], yaml('invalid', '{size: 1, min: 3}'));
    assert.equal(code, 1);
    assert.match(stderr, /The Widget "invalid" is invalid: spec\.min: Invalid value: min must not be above size/);
  });

  test('apply on the server creates, changes and tells of conflicts', async () => {
    const path = await file('s.yaml', yaml('serverside', '{size: 1}'));
    assert.match(await ok(['apply', '--server-side', '-f', path]), /serverside serverside-applied/);
    await ok(['patch', 'wd', 'serverside', '--type=merge', '-p', '{"spec":{"size":5}}']);
    const conflict = await kubectl(['apply', '--server-side', '-f', path]);
    assert.equal(conflict.code, 1);
    assert.match(conflict.stderr, /conflict with "kubectl-patch"/);
    await ok(['apply', '--server-side', '--force-conflicts', '-f', path]);
    assert.equal(await ok(['get', 'wd', 'serverside', '-o', 'jsonpath={.spec.size}']), '1');
  });

  test('a server-side apply takes over the fields of a client-side apply', async () => {
    const path = await file('m.yaml', yaml('moved', '{size: 1, label: abc}'));
    await ok(['apply', '-f', path]);
    await file('m.yaml', yaml('moved', '{size: 2}'));
    await ok(['apply', '--server-side', '-f', path]);
    assert.equal(await ok(['get', 'wd', 'moved', '-o', 'jsonpath={.spec.size}']), '2');
  });

  test('get prints tables, wide tables, names and YAML', async () => {
    await ok(['apply', '-f', '-'], yaml('shown', '{size: 7, color: red}'));
    const table = (await ok(['get', 'wd', 'shown'])).split('\n');
    assert.match(table[0] as string, /^NAME +COLOR +READY +AGE$/);
    assert.match(table[1] as string, /^shown +red +\d+s$/);
    assert.match(await ok(['get', 'wd', 'shown', '-o', 'wide']), /^NAME +COLOR +SIZE +READY +AGE$/m);
    assert.equal(await ok(['get', 'wd', 'shown', '-o', 'name']), 'widget.contract.berth.dev/shown');
    assert.match(await ok(['get', 'widgets.contract.berth.dev', 'shown', '-o', 'yaml']), /^ {2}color: red$/m);
    assert.match(await ok(['get', 'contract', '-A']), /default +(widget\.contract\.berth\.dev\/)?shown/);
    assert.match(await ok(['get', 'ns']), /^default +Active/m);
    assert.match((await kubectl(['get', 'wd', 'nobody'])).stderr, /widgets\.contract\.berth\.dev "nobody" not found/);
  });

  test('get selects by labels and fields', async () => {
    await ok(['apply', '-f', '-'], yaml('green', '{size: 7, color: green}'));
    await ok(['label', 'wd', 'green', 'kind=plant']);
    assert.equal(
      await ok(['get', 'wd', '-l', 'kind in (plant,tree)', '-o', 'name']),
      'widget.contract.berth.dev/green',
    );
    const byField = ['get', 'wd', '--field-selector', 'spec.color=green', '-o', 'name'];
    assert.equal(await ok(byField), 'widget.contract.berth.dev/green');
  });

  test('get -w shows changes as they come', async () => {
    await ok(['apply', '-f', '-'], yaml('watched', '{size: 1, color: red}'));
    let output = '';
    const child = spawn(program, ['get', 'wd', '-w', '-o', 'wide'], { env: environment() });
    children.push(child);
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
    await eventually(() => /^watched +red +1 /m.test(output), { what: 'the object is listed' });
    await ok(['patch', 'wd', 'watched', '--type=merge', '-p', '{"spec":{"size":42}}']);
    await eventually(() => /^watched +red +42 /m.test(output), { what: 'the change is shown' });
  });

  test('wait ends when a condition or a field is as wanted, and when an object is gone', async () => {
    await ok(['apply', '-f', '-'], yaml('awaited', '{size: 1}'));
    const waiting = ok(['wait', '--for=condition=Ready', 'wd/awaited', '--timeout=30s']);
    const status = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}';
    await ok(['patch', 'wd', 'awaited', '--subresource=status', '--type=merge', '-p', status]);
    assert.match(await waiting, /condition met/);
    assert.match(
      await ok(['wait', '--for=jsonpath={.status.phase}=Running', 'wd/awaited', '--timeout=30s']),
      /condition met/,
    );
    const gone = ok(['wait', '--for=delete', 'wd/awaited', '--timeout=30s']);
    await ok(['delete', 'wd', 'awaited']);
    await gone;
  });

  test('edit and patch change an object', async () => {
    await ok(['apply', '-f', '-'], yaml('edited', '{size: 1}'));
    await file('editor', '#!/bin/sh\nsed -i "s/size: 1/size: 9/" "$1"\n');
    assert.match(await ok(['edit', 'wd', 'edited']), /edited/);
    await ok(['patch', 'wd', 'edited', '--type=json', '-p', '[{"op":"add","path":"/spec/label","value":"ab"}]']);
    const spec = JSON.parse(await ok(['get', 'wd', 'edited', '-o', 'jsonpath={.spec}']));
    assert.deepEqual([spec.size, spec.label], [9, 'ab']);
    await ok(['create', 'configmap', 'edited', '--from-literal=a=b']);
    await ok(['patch', 'configmap', 'edited', '-p', '{"data":{"c":"d"}}']);
    assert.equal(await ok(['get', 'configmap', 'edited', '-o', 'jsonpath={.data.c}']), 'd');
  });

  test('scale sets the replicas', async () => {
    await ok(['apply', '-f', '-'], yaml('scaled', '{size: 1}'));
    await ok(['scale', 'wd/scaled', '--replicas=3']);
    assert.equal(await ok(['get', 'wd', 'scaled', '-o', 'jsonpath={.spec.replicas}']), '3');
  });

  test('explain shows fields of custom and built-in kinds', async () => {
    const spec = await ok(['explain', 'widget.spec']);
    assert.match(spec, /KIND: +Widget/);
    assert.match(spec, /size\t<integer> -required-/);
    assert.match(await ok(['explain', 'wd.spec.parts.mode']), /FIELD: mode <string>/);
    assert.match(await ok(['explain', 'pod.spec.containers']), /imagePullPolicy\t<string>/);
    assert.match(await ok(['explain', 'widget.metadata']), /labels\t<map\[string\]string>/);
  });

  test('describe shows an object with its events', async () => {
    await ok(['apply', '-f', '-'], yaml('described', '{size: 1}'));
    const uid = await ok(['get', 'wd', 'described', '-o', 'jsonpath={.metadata.uid}']);
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'described.1', namespace: 'default' },
      involvedObject: {
        kind: 'Widget',
        name: 'described',
        namespace: 'default',
        uid,
        apiVersion: 'contract.berth.dev/v1',
      },
      reason: 'Polished',
      message: 'it shines',
      type: 'Normal',
      count: 1,
      firstTimestamp: new Date().toISOString(),
      lastTimestamp: new Date().toISOString(),
      source: { component: 'test' },
    };
    await ok(['create', '-f', '-'], JSON.stringify(event));
    const described = await ok(['describe', 'wd', 'described']);
    assert.match(described, /Name: +described/);
    assert.match(described, /Normal +Polished +\S+ +test +it shines/);
    assert.match(await ok(['get', 'events']), /Normal +Polished +widget\/described +it shines/);
    assert.match(await ok(['events', '--for', 'widget.contract.berth.dev/described']), /it shines/);
  });

  test('pods, secrets and service accounts are described', async () => {
    await ok(['run', 'pod-one', '--image=x:1', '--restart=Never']);
    assert.match(await ok(['get', 'pods']), /^pod-one +0\/1 +Pending +0 +\d+s$/m);
    assert.match(await ok(['describe', 'pod', 'pod-one']), /Image: +x:1/);
    await ok(['create', 'secret', 'generic', 'one', '--from-literal=a=b']);
    assert.match(await ok(['describe', 'secret', 'one']), /a: +1 bytes/);
    assert.match(await ok(['get', 'sa']), /^default +0/m);
    await ok(['delete', 'pod', 'pod-one', '--grace-period=0', '--force']);
  });

  test('create token and auth can-i work with the roles that are there', async () => {
    await ok(['create', 'sa', 'robot']);
    await ok(['create', 'role', 'looker', '--verb=get,list', '--resource=widgets.contract.berth.dev']);
    await ok(['create', 'rolebinding', 'looker', '--role=looker', '--serviceaccount=default:robot']);
    const token = await ok(['create', 'token', 'robot', '--audience', 'https://kubernetes.default.svc.cluster.local']);
    const config = server.kubeconfig(token);
    const path = await file('robot', JSON.stringify(config));
    const as = (args: string[]) => kubectl(['--kubeconfig', path, ...args]);
    assert.equal((await as(['auth', 'can-i', 'list', 'wd'])).stdout.trim(), 'yes');
    assert.equal((await as(['auth', 'can-i', 'delete', 'wd'])).stdout.trim(), 'no');
    assert.match(
      (await as(['auth', 'can-i', '--list'])).stdout,
      /widgets\.contract\.berth\.dev +\[\] +\[\] +\[get list\]/,
    );
    assert.match((await as(['auth', 'whoami'])).stdout, /system:serviceaccount:default:robot/);
    assert.match(
      (await as(['get', 'secrets'])).stderr,
      /secrets is forbidden: User "system:serviceaccount:default:robot"/,
    );
  });

  test('--as acts with the rights of another user, and auth can-i --as tells them', async () => {
    const asked = await kubectl(['auth', 'can-i', 'get', 'secrets', '--as', 'alice']);
    assert.deepEqual([asked.code, asked.stdout.trim()], [1, 'no']);
    const { code, stderr } = await kubectl(['get', 'secrets', '--as', 'alice']);
    assert.equal(code, 1);
    assert.match(stderr, /User "alice" cannot list resource "secrets" in API group "" in the namespace "default"/);
    assert.equal(await ok(['auth', 'can-i', 'get', 'secrets', '--as', 'alice', '--as-group', 'system:masters']), 'yes');
  });

  test('a namespace is made, used and deleted with what is in it', async () => {
    await ok(['create', 'namespace', 'short']);
    await eventually(async () => (await kubectl(['get', 'sa', 'default', '-n', 'short'])).code === 0);
    await ok(['-n', 'short', 'apply', '-f', '-'], yaml('inside', '{size: 1}'));
    await ok(['delete', 'namespace', 'short', '--timeout=30s']);
    assert.equal((await kubectl(['get', 'wd', 'inside', '-n', 'short'])).code, 1);
  });

  test('delete waits until an object is really gone', async () => {
    await ok(['apply', '-f', '-'], yaml('slow', '{size: 1}'));
    await ok(['patch', 'wd', 'slow', '--type=merge', '-p', '{"metadata":{"finalizers":["berth.dev/test"]}}']);
    const deleting = ok(['delete', 'wd', 'slow', '--timeout=30s']);
    await eventually(
      async () => (await ok(['get', 'wd', 'slow', '-o', 'jsonpath={.metadata.deletionTimestamp}'])) !== '',
    );
    await ok(['patch', 'wd', 'slow', '--type=merge', '-p', '{"metadata":{"finalizers":null}}']);
    assert.match(await deleting, /"slow" deleted/);
  });

  test('replace and a dry run behave as on any server', async () => {
    await ok(['apply', '-f', '-'], yaml('replaced', '{size: 1}'));
    const dry = await ok(
      ['apply', '--dry-run=server', '-f', '-', '-o', 'jsonpath={.spec.size}'],
      yaml('replaced', '{size: 4}'),
    );
    assert.equal(dry, '4');
    await ok(['replace', '-f', '-'], yaml('replaced', '{size: 5}'));
    assert.equal(await ok(['get', 'wd', 'replaced', '-o', 'jsonpath={.spec.size}']), '5');
  });

  test('the raw API is reachable and the server says that it is ready', async () => {
    assert.equal(await ok(['get', '--raw', '/readyz']), 'ok');
  });
});
