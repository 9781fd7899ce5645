import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { samplesOf } from '../../support/metrics.ts';
import { tools } from '../../support/tools.ts';
import {
  type Any,
  apply,
  finish,
  get,
  kubectl,
  makeNamespace,
  releaseNamespace,
  session,
  turn,
  until,
} from '../support/cluster.ts';

describe('kubectl alone', () => {
  test('a run is one YAML, and kubectl wait sees its end', async (t) => {
    const namespace = await makeNamespace(t);
    const agent = { command: ['sh', '-c', 'echo "hello $(cat)"'], input: 'Text', result: 'Text' };
    await apply(session(namespace, 'hello', { turns: 'One', input: 'world', agent }));
    await kubectl(['wait', '-n', namespace, '--for=condition=Finished', 'session/hello', '--timeout=300s']);
    const { status } = await get(['turn', 'hello', '-n', namespace]);
    assert.equal(status.phase, 'Succeeded');
    assert.equal(status.output, 'hello world\n');
    const table = await kubectl(['get', 'sessions,turns', '-n', namespace]);
    assert.match(table, /session\.berth\.dev\/hello +Finished/);
    assert.match(table, /turn\.berth\.dev\/hello +hello +1 +Succeeded/);
    // The pod goes with the run.
    await eventually(async () => (await get(['pods', '-n', namespace])).items.length === 0, {
      timeoutMs: 120_000,
      what: 'the pod is gone',
    });
  });

  test('a run that fails ends kubectl wait as well, and says why', async (t) => {
    const namespace = await makeNamespace(t);
    const agent = { command: ['sh', '-c', 'echo broken >&2; exit 3'], input: 'Text', result: 'Text' };
    await apply(session(namespace, 'broken', { turns: 'One', input: '', agent }));
    await kubectl(['wait', '-n', namespace, '--for=condition=Finished', 'session/broken', '--timeout=300s']);
    const { status } = await get(['turn', 'broken', '-n', namespace]);
    assert.equal(status.phase, 'Failed');
    assert.equal(status.exitCode, 3);
    assert.match(status.error.message, /exit code 3[\s\S]*broken/);
  });

  test('the controllers’ metrics are read through the API server, and of them one leads', async () => {
    const read = async () => {
      const label = 'app.kubernetes.io/component=controller';
      const { items } = await get([
        'pods',
        '-n',
        releaseNamespace,
        '-l',
        label,
        '--field-selector=status.phase=Running',
      ]);
      const path = ({ metadata }: Any) =>
        `/api/v1/namespaces/${releaseNamespace}/pods/${metadata.name}:8081/proxy/metrics`;
      return Promise.all(items.map((pod: Any) => kubectl(['get', '--raw', path(pod)])));
    };
    const texts = await eventually(
      async () => {
        const all = await read();
        return all.filter((text) => samplesOf(text, 'berth_leader')[''] === 1).length === 1 ? all : undefined;
      },
      { what: 'one of the controllers leads' },
    );
    for (const text of texts) assert.match(text, /^# TYPE berth_turns_total counter$/m);
  });

  test('a session made for another is selected by its parent, which cannot change, and outlives it', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'parent', { suspend: true }));
    const { metadata } = await get(['session', 'parent', '-n', namespace]);
    const parent = { name: 'parent', uid: metadata.uid };
    await apply(session(namespace, 'child', { suspend: true, parent }));
    await apply(session(namespace, 'other', { suspend: true }));
    const named = ['get', 'sessions', '-n', namespace, '-o', 'name', '--field-selector'];
    assert.equal(await kubectl([...named, 'spec.parent.name=parent']), 'session.berth.dev/child\n');
    assert.match(await kubectl(['get', 'session', 'child', '-n', namespace, '-o', 'wide']), /PARENT.* parent /s);
    const { kubectl: program } = await tools();
    const patch = ['patch', 'session', 'child', '-n', namespace, '--type=merge', '-p', '{"spec":{"parent":null}}'];
    assert.match((await finish(program, patch)).stderr, /the parent cannot change; create a new Session/);
    await kubectl(['delete', 'session', 'parent', '-n', namespace]);
    assert.equal(await kubectl([...named, 'spec.parent.name=parent']), 'session.berth.dev/child\n');
  });

  test('an object that the schema forbids is refused with the path of the field, and nothing is created', async (t) => {
    const namespace = await makeNamespace(t);
    const { kubectl: program } = await tools();
    const wrong: [object, RegExp][] = [
      [session(namespace, 'x', { turns: 'Three' }), /spec\.turns/],
      [session(namespace, 'x', { inputs: 1 }), /spec\.inputs/],
      [session(namespace, 'Not_A_Label'), /metadata\.name|must consist of/],
      [turn(namespace, 'x', 'some_thing', 1), /spec\.session/],
    ];
    for (const [object, path] of wrong) {
      const { code, stderr } = await finish(program, ['create', '-f', '-'], { input: JSON.stringify(object) });
      assert.notEqual(code, 0, JSON.stringify(object));
      assert.match(stderr, path);
    }
    const { items } = await get(['sessions,turns', '-n', namespace]);
    assert.deepEqual(items, []);
  });

  test('a class that does not exist is a condition that names it', async (t) => {
    const namespace = await makeNamespace(t);
    await apply(session(namespace, 'lost', { class: 'no-such-class' }));
    await until(namespace, 'session', 'lost', ({ status }) =>
      status?.conditions?.some(({ status, message }: Any) => status === 'False' && /no-such-class/.test(message)),
    );
  });

  test('an agent writes to its home and finds no token of the cluster', async (t) => {
    const namespace = await makeNamespace(t);
    const script = 'cd; echo kept > file; cat file; id -u; ls /var/run/secrets 2>&1; touch /etc/x 2>&1';
    const agent = { command: ['sh', '-c', script], input: 'Text', result: 'Text' };
    await apply(session(namespace, 'where', { turns: 'One', input: '', agent }));
    await kubectl(['wait', '-n', namespace, '--for=condition=Finished', 'session/where', '--timeout=300s']);
    const { status } = await get(['turn', 'where', '-n', namespace]);
    const text: string = status.output ?? status.log.inline;
    assert.match(text, /^kept\n65532\n/);
    assert.match(text, /secrets: No such file/);
    assert.match(text, /Read-only file system/);
  });

  test('an agent cannot open its runner’s memory, environment or descriptors', async (t) => {
    const namespace = await makeNamespace(t);
    const script =
      'for f in mem environ fd/0 fd/1 maps; do cat /proc/1/$f >/dev/null 2>&1 && echo "opened $f"; done; echo done';
    const agent = { command: ['sh', '-c', script], input: 'Text', result: 'Text' };
    await apply(session(namespace, 'curious', { turns: 'One', input: '', agent }));
    await kubectl(['wait', '-n', namespace, '--for=condition=Finished', 'session/curious', '--timeout=300s']);
    const { status } = await get(['turn', 'curious', '-n', namespace]);
    assert.equal(status.output, 'done\n');
  });
});
