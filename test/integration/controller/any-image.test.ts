import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { pods } from '../../../core/kube/resources.ts';
import { type SessionClass, sessionclasses } from '../../../core/resources/kinds.ts';
import type { SessionClassSpec } from '../../../core/resources/sessionclass.ts';
import { eventually } from '../../support/eventually.ts';
import type { ControllerProcess } from '../../support/installation.ts';
import { installed } from '../../support/installed.ts';

const START = '<<<BERTH_RESULT_START>>>';
const END = '<<<BERTH_RESULT_END>>>';
/** Shell that prints an envelope between the markers. */
const envelope = (json: string) => `echo '${START}'; echo '${json}'; echo '${END}'`;

describe('runner None', () => {
  const cluster = installed();
  let scratch: string;
  let controller: ControllerProcess;
  let number = 0;
  beforeAll(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'berth-none-'));
    controller = cluster.startController();
  });
  afterAll(() => {
    rmSync(scratch, { recursive: true, force: true });
  });

  async function makeClass(spec: Partial<SessionClassSpec>): Promise<string> {
    const name = `none-${++number}`;
    const object = {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'SessionClass',
      metadata: { name },
      spec: { runner: 'None', image: 'berth.local/machine', overrides: ['timeouts'], secrets: ['*'], ...spec },
    };
    await cluster.client.create(sessionclasses, object as SessionClass);
    return name;
  }

  /** A session whose turns run `script`. */
  async function session(script: string, spec: Partial<SessionClassSpec> = {}): Promise<string> {
    const name = await makeClass({ agent: { command: ['/bin/sh', '-c', script] }, ...spec });
    await cluster.create(name, { class: name });
    return name;
  }

  /** Runs one turn in a new session and resolves to the turn's status. */
  async function once(script: string, input: unknown = null, spec: Partial<SessionClassSpec> = {}) {
    const name = await session(script, spec);
    await cluster.turn(name, `${name}-1`, input);
    return (await cluster.ended(`${name}-1`)).status ?? {};
  }

  const podOf = (name: string) =>
    eventually(
      async () => {
        const { status } = await cluster.session(name);
        return status?.podName
          ? cluster.client.get(pods, { namespace: 'default', name: status.podName }).catch(() => undefined)
          : undefined;
      },
      { what: `pod of ${name}` },
    );
  const runs = (name: string) => eventually(() => existsSync(join(scratch, name)), { what: `${name} runs` });

  test('a turn whose image cannot be had says so once its pod has ended, and is not tried again', async () => {
    const names = await Promise.all([1, 2, 3, 4].map(() => session('true', { image: 'no.such/image:1' })));
    for (const name of names) {
      await cluster.patch(name, { timeouts: { start: '10s' } });
      await cluster.turn(name, `${name}-1`, null, { retry: { maxAttempts: 2 } });
    }
    for (const name of names) {
      const { status } = await cluster.ended(`${name}-1`);
      assert.deepEqual([status?.phase, status?.error?.code, status?.attempt], ['Failed', 'ImageUnavailable', 1]);
    }
  });

  test('a program that only prints the markers has a result, and the rest of what it printed is the log', async () => {
    const status = await once(
      `echo before; ${envelope('{"status":"success","output":{"n":3},"turn_count":2}')}; echo token=abcdef >&2`,
    );
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
    assert.deepEqual(status.output, { n: 3 });
    assert.equal(status.turnCount, 2);
    // The lines of stdout and stderr are in no fixed order: each has its own pipe.
    assert.deepEqual(status.log?.inline?.split('\n').sort(), ['', 'before', 'token=[REDACTED]']);
    assert.equal(status.exitCode, 0);
  });

  test('the input is in BERTH_INPUT as it was given and on stdin, which ends', async () => {
    const input = { text: '$(HOME) $$ $X \'"\\', lines: 'a\nb' };
    const print = `printf '%s' "{\\"status\\":\\"success\\",\\"output\\":[$BERTH_INPUT,$(cat)]}"`;
    const status = await once(`echo '${START}'; ${print}; echo '${END}'`, input);
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
    assert.deepEqual(status.output, [input, input]);
  });

  test('an input that no variable can hold comes by stdin alone', async () => {
    const script = `echo '${START}{"status":"success","output":"'$(wc -c)' '\${#BERTH_INPUT}'"}${END}'`;
    // Linux: a variable with its name, "=" and NUL has 131,072 bytes at most.
    const largest = await once(script, 'x'.repeat(131_057));
    assert.equal(largest.output, '131060 131059', JSON.stringify(largest));
    const larger = await once(script, 'x'.repeat(131_058));
    assert.equal(larger.output, '131061 0', JSON.stringify(larger));
  });

  test('each turn has a pod of its own, and the session none while it rests', async () => {
    const name = await session(envelope('{"status":"success","output":"ok"}'));
    const resting = await cluster.until(name, 'rests', ({ status }) => status?.phase === 'Suspended');
    assert.equal(resting.status?.incarnation ?? 0, 0, 'no pod before the first turn');
    for (const turn of ['a', 'b']) {
      await cluster.turn(name, `${name}-${turn}`, null);
      assert.equal((await cluster.ended(`${name}-${turn}`)).status?.output, 'ok');
    }
    const { status } = await cluster.until(name, 'rests', ({ status }) => !status?.podName);
    assert.equal(status?.incarnation, 2);
    assert.equal(status?.turns?.succeeded, 2);
    await eventually(
      async () => {
        const selector = { namespace: 'default', labelSelector: `berth.dev/session=${name}` };
        return (await cluster.client.list(pods, selector)).items.length === 0;
      },
      { what: 'its pods are gone' },
    );
  });

  test('a result and a log that are too large for a status are stored', async () => {
    const big = `head -c 2000000 /dev/zero | tr '\\0' x; echo`;
    const value = `head -c 100000 /dev/zero | tr '\\0' y`;
    const name = await session(`${big}; printf '${START}{"status":"success","output":"'; ${value}; echo '"}${END}'`);
    await cluster.turn(name, `${name}-1`, null);
    const turn = await cluster.ended(`${name}-1`);
    const { status = {} } = turn;
    assert.equal(status.phase, 'Succeeded', JSON.stringify(status));
    assert.equal(status.outputBytes, 100_002);
    assert.equal(await cluster.output(turn), 'y'.repeat(100_000));
    assert.deepEqual([status.log?.bytes, status.log?.truncated], [2_000_001, true]);
  });

  for (const { what, script, code, message } of [
    {
      what: 'no markers',
      script: 'echo hello',
      code: 'MissingEnvelope',
      message: /^the program ended with exit code 0 without a result; its log has 6 bytes\. Print/,
    },
    {
      what: 'no markers and another exit code than 0',
      script: 'echo oops token=abcdef; exit 3',
      code: 'AgentFailed',
      message: /^exit code 3\noops token=\[REDACTED\]$/,
    },
    {
      what: 'an error envelope and another exit code',
      script: `${envelope('{"status":"error","error":"no such model"}')}; echo noise; exit 3`,
      code: 'AgentFailed',
      message: /^no such model$/,
    },
    {
      what: 'an end marker whose start is missing',
      script: `echo '{"status":"success"}${END}'`,
      code: 'MissingEnvelope',
      message: /rotated away/,
    },
    {
      what: 'a log that begins long after its program did',
      script: 'sleep 4; echo late',
      code: 'MissingEnvelope',
      message: / nothing of .* first \d+ s is there: .*rotated away/,
    },
    {
      what: 'nothing printed in a long time, as where all has been rotated away',
      script: 'sleep 4',
      code: 'MissingEnvelope',
      message: / nothing of .* first \d+ s is there: .*rotated away/,
    },
    {
      what: 'a start marker without an end',
      script: `echo '${START}{"status":"success"}'`,
      code: 'MissingEnvelope',
      message: /its log has \d+ bytes, and the start marker has no end marker after it\. Print/,
    },
    {
      what: 'no JSON between the markers',
      script: envelope('{oops'),
      code: 'InvalidResult',
      message: /not valid JSON/,
    },
    {
      what: 'a question',
      script: envelope('{"status":"approval","prompt":"may I?"}'),
      code: 'InvalidResult',
      message: /nobody can be asked/,
    },
  ]) {
    test(`${what} is an error that says so`, async () => {
      const status = await once(script);
      assert.equal(status.phase, 'Failed', JSON.stringify(status));
      assert.equal(status.error?.code, code, JSON.stringify(status));
      const said = status.error?.message ?? '';
      // A busy machine may let the agent run until its log has been rotated away.
      const ranMs = Date.parse(status.finishedAt ?? '') - Date.parse(status.startedAt ?? '');
      const late = / nothing of .* first \d+ s is there: .*rotated away/;
      assert.match(said, ranMs >= 1000 && late.test(said) ? late : message);
    });
  }

  test('the last complete pair of the class’s own markers is the result', async () => {
    const resultMarkers = { start: '---begin---', end: '---finish---' };
    const pair = (json: string) => `echo '${resultMarkers.start}${json}${resultMarkers.end}'`;
    const status = await once(
      [
        envelope('{"status":"success","output":"forged"}'),
        pair('{"status":"success","output":1}'),
        `echo '${resultMarkers.start} half ${resultMarkers.start}{"status":"success","output":2}${resultMarkers.end}'`,
        `echo '${resultMarkers.start}{"status":"success","output":3}'`,
      ].join('; '),
      null,
      { resultMarkers },
    );
    assert.equal(status.output, 2, JSON.stringify(status));
  });

  test('a pod that is deleted under its turn gives PodLost, and the next turn runs', async () => {
    const name = await session(
      `[ "$BERTH_INPUT" = 1 ] && echo >${scratch}/lost && sleep 60; ${envelope('{"status":"success"}')}`,
    );
    await cluster.turn(name, `${name}-1`, 1);
    await runs('lost');
    const pod = await podOf(name);
    await cluster.client.delete(pods, { namespace: 'default', name: pod?.metadata.name ?? '' });
    assert.equal((await cluster.ended(`${name}-1`)).status?.error?.code, 'PodLost');
    await cluster.turn(name, `${name}-2`, 2);
    assert.equal((await cluster.ended(`${name}-2`)).status?.phase, 'Succeeded');
  });

  test('a program that is killed is lost, unless it had printed its result', async () => {
    const lost = await once('echo half; kill -9 $$');
    assert.equal(lost.error?.code, 'PodLost', JSON.stringify(lost));
    assert.match(lost.error?.message ?? '', /was killed \(exit code 137\)/);
    const kept = await once(`${envelope('{"status":"success","output":1}')}; kill -9 $$`);
    assert.deepEqual([kept.phase, kept.output], ['Succeeded', 1], JSON.stringify(kept));
  });

  test('a turn goes on while no controller is there, runs once, and the next one commits its result', async () => {
    const name = await session(
      `echo run >>${scratch}/once; sleep 2; ${envelope('{"status":"success","output":"done"}')}`,
    );
    await cluster.turn(name, `${name}-1`, null);
    await runs('once');
    await controller.kill('SIGKILL');
    controller = cluster.startController();
    const { status } = await cluster.ended(`${name}-1`);
    assert.equal(status?.output, 'done', JSON.stringify(status));
    assert.equal(status?.attempt, 1);
    assert.equal(readFileSync(join(scratch, 'once'), 'utf8'), 'run\n');
  });

  test('a turn that is cancelled, or past its timeout, ends with its pod', async () => {
    const name = await session(`echo >${scratch}/cancel; sleep 60`);
    await cluster.turn(name, `${name}-1`, null);
    await runs('cancel');
    await cluster.cancel(`${name}-1`);
    assert.equal((await cluster.ended(`${name}-1`)).status?.phase, 'Cancelled');
    await cluster.turn(name, `${name}-2`, null, { timeout: '1s' });
    const { status } = await cluster.ended(`${name}-2`);
    assert.equal(status?.error?.code, 'TurnTimedOut', JSON.stringify(status));
    await cluster.until(name, 'rests', (found) => !found.status?.podName);
  });

  test('held turns start no pod, and one that was made for them is given up', async () => {
    const name = await session(envelope('{"status":"success","output":"ok"}'));
    const patch = (suspend: boolean) => cluster.patch(name, { suspend });
    await patch(true);
    await cluster.turn(name, `${name}-1`, null);
    await cluster.turnUntil(`${name}-1`, 'is held', ({ status }) =>
      Boolean(status?.conditions?.some(({ reason }) => reason === 'Held')),
    );
    assert.equal((await cluster.session(name)).status?.incarnation ?? 0, 0);
    await patch(false);
    assert.equal((await cluster.ended(`${name}-1`)).status?.output, 'ok');
  });

  test('values of Secrets and the names of session and turn are in the environment of the program', async () => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace: 'default' } };
    await cluster.client.create(
      { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true },
      { ...secret, stringData: { value: 'hidden' } },
    );
    const script = `echo '${START}{"status":"success","output":"'"$KEY $BERTH_SESSION $BERTH_TURN $ID"'"}${END}'`;
    const name = await makeClass({
      agent: {
        command: ['/bin/sh', '-c', script],
        env: [
          { name: 'KEY', valueFrom: { secretKeyRef: { name: 'key', key: 'value' } } },
          { name: 'ID', value: 'id-$(SESSION_UID)' },
        ],
      },
    });
    const { metadata } = await cluster.create(name, { class: name });
    await cluster.turn(name, `${name}-1`, null);
    const { status } = await cluster.ended(`${name}-1`);
    assert.equal(status?.output, `hidden ${name} ${name}-1 id-${metadata.uid}`, JSON.stringify(status));
  });

  test('files of Secrets and a volume are in each pod of a runnerless session, the volume as the last turn left it', async () => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'file', namespace: 'default' } };
    await cluster.client.create(
      { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true },
      { ...secret, stringData: { value: 'hidden' } },
    );
    const root = '$BERTH_LOCAL_ROOT';
    const notes = `${root}/notes/all`;
    const output = `"'$(cat ${root}$BERTH_SECRETS_DIR/deep/key) $(tr -d '\n' <${notes})'"`;
    const script = `echo "$BERTH_TURN;" >>${notes}; echo '${START}{"status":"success","output":${output}}${END}'`;
    const secretFiles = [{ path: 'deep/key', secretKeyRef: { name: 'file', key: 'value' } }];
    const name = await session(script, {
      agent: { command: ['/bin/sh', '-c', script], secretFiles },
      persistence: { workspace: { type: 'Volume', size: '1Mi', mountPath: '/notes' } },
    });
    for (const [turn, seen] of [
      ['a', `hidden ${name}-a;`],
      ['b', `hidden ${name}-a;${name}-b;`],
    ]) {
      await cluster.turn(name, `${name}-${turn}`, null);
      const { status } = await cluster.ended(`${name}-${turn}`);
      assert.equal(status?.output, seen, JSON.stringify(status));
    }
  });

  for (const { what, spec, agent, field } of [
    { what: 'a driver', agent: { driver: 'Shell' as const }, field: /spec\.agent\.driver: .*runner None nobody obeys/ },
    { what: 'a state', spec: { persistence: { state: true } }, field: /spec\.persistence\.state: .*nothing is stored/ },
  ]) {
    test(`${what} is refused with its name, as nobody would obey it`, async () => {
      const name = await makeClass({
        agent: { command: ['true'], ...agent },
        overrides: ['persistence'],
      });
      await cluster.create(name, { class: name, ...spec });
      await cluster.turn(name, `${name}-1`, null);
      const { status } = await cluster.ended(`${name}-1`);
      assert.equal(status?.error?.code, 'InvalidSpec', JSON.stringify(status));
      assert.match(status?.error?.message ?? '', field);
    });
  }
});

describe('runner Injected on the embedded cluster', () => {
  const cluster = installed({}, { controller: true });

  test('runs the programs of this machine, whatever the image', async () => {
    const object = {
      apiVersion: 'berth.dev/v1alpha1',
      kind: 'SessionClass',
      metadata: { name: 'injected' },
      spec: {
        ...{ runner: 'Injected', image: 'example.com/any:1', overrides: [], secrets: [] },
        agent: { command: ['cat'], input: 'Text', result: 'Text' },
      },
    };
    await cluster.client.create(sessionclasses, object as unknown as SessionClass);
    await cluster.create('any', { class: 'injected' });
    await cluster.turn('any', 'any-1', 'hello');
    const { status } = await cluster.ended('any-1');
    assert.equal(status?.output, 'hello', JSON.stringify(status));
  });
});
