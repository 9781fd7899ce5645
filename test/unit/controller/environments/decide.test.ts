import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  type BuildResult,
  decideEnvironment,
  type EnvironmentWorld,
  knownResult,
  refusedBuild,
} from '../../../../controller/environments/decide.ts';
import { unusedBuilds } from '../../../../controller/environments/unused.ts';
import { environmentOf } from '../../../../controller/settings/environment.ts';
import type { StoredEnvironment } from '../../../../core/resources/kinds.ts';
import { aSession, aWorld, NOW } from '../../../support/world.ts';

const HASH = 'a'.repeat(64);
const NAME = 'env-aaaaaaaaaaaaaaaaaaaa';
const wanted = {
  hash: HASH,
  name: NAME,
  spec: { class: 'python', turns: 'One', build: 'Environment', input: { requirements: ['httpx'] } },
} as const;
const state = { digest: 'd'.repeat(64), keyId: 'k', bytes: 9, incarnation: 1, seq: 4, ref: 'uid/1/4' };
const described = { python: '3.12.1', uv: '0.13.9', packages: [{ name: 'httpx', version: '1' }], bytes: 7 };

function environment(status: StoredEnvironment['status'] = {}): StoredEnvironment {
  const metadata = {
    name: 'tools',
    namespace: 'team',
    uid: 'e-1',
    resourceVersion: '1',
    creationTimestamp: '',
    generation: 1,
  };
  return { metadata, spec: { class: 'python', requirements: ['httpx'] }, status };
}

const build = (phase: 'Running' | 'Finished', deleting = false) => {
  const session = aSession({ spec: { build: 'Environment' } as never, status: { phase, state } });
  const metadata = { ...session.metadata, name: NAME, ...(deleting ? { deletionTimestamp: 'now' } : {}) };
  return { ...session, metadata };
};

const look = (change: Partial<EnvironmentWorld> = {}) =>
  decideEnvironment({
    now: NOW,
    environment: environment(),
    wanted,
    build: undefined,
    result: undefined,
    needed: false,
    taken: undefined,
    ...change,
  });
const reasonOf = ({ status }: ReturnType<typeof look>) =>
  status.conditions?.find(({ type }) => type === 'Ready')?.reason;
const failure = (code: string): BuildResult => ({ phase: 'Failed', code, message: 'no set of packages fits' });

describe('an Environment', () => {
  test('is built only when a session needs it', () => {
    const idle = look();
    assert.deepEqual([idle.status.phase, reasonOf(idle), idle.act], ['Pending', 'NotBuilt', undefined]);
    const needed = look({ needed: true });
    assert.deepEqual([needed.status.phase, needed.act], ['Building', 'CreateBuild']);
    assert.deepEqual([needed.status.hash, needed.status.build], [HASH, NAME]);
  });

  test('is Building while its session works, whoever had it created', () => {
    assert.deepEqual(
      [look({ build: build('Running') }).status.phase, look({ build: build('Running') }).act],
      ['Building', undefined],
    );
  });

  test('is Ready with the state of the session that built it as its archive', () => {
    const { status, act } = look({ build: build('Finished'), result: { phase: 'Succeeded', described } });
    assert.deepEqual([status.phase, act], ['Ready', undefined]);
    const { uid } = build('Finished').metadata;
    assert.deepEqual(status.archive, { ...state, session: NAME, sessionUID: uid });
    assert.deepEqual([status.pythonVersion, status.bytes, status.packages], ['3.12.1', 7, described.packages]);
  });

  test('fails for good where another build would fail too, with the words of the builder', () => {
    for (const code of ['Unsolvable', 'HashMismatch', 'PythonMissing', 'RequirementInvalid', 'CheckFailed']) {
      const { status, act } = look({ build: build('Finished'), result: failure(code), needed: true });
      assert.deepEqual([status.phase, status.conditions?.[0]?.reason, act], ['Failed', code, undefined]);
      assert.equal(status.conditions?.[0]?.message, 'no set of packages fits');
      assert.equal(status.retryAt, undefined);
    }
    assert.equal(reasonOf(look({ build: build('Finished'), result: failure('StateTooLarge') })), 'EnvironmentTooLarge');
    assert.equal(reasonOf(look({ build: build('Finished'), result: failure('CommandNotFound') })), 'PythonMissing');
  });

  test('fails at once where somebody has to mend the cause, and is built again when a session needs it then', () => {
    for (const [code, reason] of [
      ['IndexRefused', 'IndexRefused'],
      ['StoreFull', 'StoreFull'],
      ['UvMissing', 'UvMissing'],
      ['PodConfigError', 'BuildFailed'],
      ['Cancelled', 'BuildFailed'],
    ]) {
      const { status, act } = look({ build: build('Finished'), result: failure(code ?? ''), needed: true });
      assert.deepEqual([status.phase, status.conditions?.[0]?.reason, act], ['Failed', reason, 'DeleteBuild']);
      const gone = { environment: environment(status), needed: true };
      assert.deepEqual([look(gone).act, look(gone).wakeAt], [undefined, NOW + 30_000]);
      assert.equal(look({ ...gone, now: NOW + 30_000 }).act, 'CreateBuild');
    }
  });

  test('is built anew where an earlier Environment of the same requirements has failed', () => {
    const later = environment();
    later.metadata.creationTimestamp = new Date(
      Date.parse(build('Finished').metadata.creationTimestamp) + 1000,
    ).toISOString();
    const result = failure('Unsolvable');
    const { status, act } = look({ environment: later, build: build('Finished'), result, needed: true });
    assert.deepEqual([status.phase, act], ['Pending', 'DeleteBuild']);
    const own = { ...later, status };
    assert.equal(look({ environment: own, build: build('Finished'), result, needed: true }).status.phase, 'Failed');
  });

  test('keeps the packages of its first build: another one installs exactly these', () => {
    const { status } = look({ build: build('Finished'), result: { phase: 'Succeeded', described } });
    const gone = look({ environment: environment(status), needed: true });
    assert.deepEqual([gone.act, gone.status.packages], ['CreateBuild', described.packages]);
    const other = { ...wanted, hash: 'b'.repeat(64) };
    assert.equal(look({ environment: environment(status), wanted: other, needed: true }).status.packages, undefined);
  });

  test('shows that its build is refused until it can be created', () => {
    const { status } = look({ needed: true });
    const refused = refusedBuild(environment(status), 'exceeded quota', NOW);
    assert.deepEqual([refused.phase, refused.conditions?.[0]?.reason], ['Pending', 'BuildRefused']);
    const again = look({ environment: environment(refused), needed: true });
    assert.deepEqual([again.act, again.status], ['CreateBuild', refused]);
    assert.equal(look({ environment: environment(refused), build: build('Running') }).status.phase, 'Building');
  });

  test('is built again after longer and longer pauses where the cause may pass, and only if it is needed then', () => {
    let status: StoredEnvironment['status'] = {};
    const pauses: number[] = [];
    for (let i = 0; i < 4; i++) {
      const { retryAt: _, ...building } = status ?? {};
      const failed = look({
        environment: environment(building),
        build: build('Finished'),
        result: failure('IndexUnreachable'),
      });
      const again = look({
        environment: environment(failed.status),
        build: build('Finished'),
        result: failure('TurnDeleted'),
      });
      assert.deepEqual([again.status, again.act], [failed.status, 'DeleteBuild'], 'one build fails once');
      assert.deepEqual([failed.status.phase, failed.act], [i < 3 ? 'Pending' : 'Failed', 'DeleteBuild']);
      status = failed.status;
      pauses.push(Date.parse(status.retryAt ?? '') - NOW);
    }
    assert.deepEqual(pauses, [10_000, 20_000, 40_000, 600_000]);
    const waits = look({ environment: environment(status), needed: true });
    assert.deepEqual([waits.act, waits.wakeAt], [undefined, NOW + 600_000]);
    assert.equal(look({ environment: environment(status), needed: true, now: NOW + 600_000 }).act, 'CreateBuild');
    assert.equal(look({ environment: environment(status), now: NOW + 600_000 }).act, undefined);
  });

  test('is built again where what was built could not be stored for a time', () => {
    const result = { ...failure('StateNotStored'), message: 'the store is out of reach' };
    const { status, act } = look({ build: build('Finished'), result, needed: true });
    assert.deepEqual(
      [status.phase, reasonOf({ status }), status.attempts, act],
      ['Pending', 'StateNotStored', 1, 'DeleteBuild'],
    );
    assert.match(status.conditions?.[0]?.message ?? '', /^the store is out of reach \(attempt 1; it is built again\)$/);
    assert.equal(look({ environment: environment(status), needed: true, now: NOW + 10_000 }).act, 'CreateBuild');
  });

  test('whose archive is gone waits to be built again', () => {
    const status = look({ build: build('Finished'), result: { phase: 'Succeeded', described } }).status;
    const gone = look({ environment: environment(status) });
    assert.deepEqual([gone.status.phase, gone.status.archive], ['Pending', undefined]);
    assert.equal(
      look({ environment: environment(status), build: build('Finished', true), needed: true }).act,
      'CreateBuild',
    );
  });

  test('whose build lost its turn is built again', () => {
    const rests = { ...build('Finished'), status: { phase: 'Suspended' } } as never;
    const { status, act } = look({ build: rests, result: failure('TurnDeleted') });
    assert.deepEqual([status.phase, act, status.retryAt !== undefined], ['Pending', 'DeleteBuild', true]);
  });

  test('whose failed build is still to be seen long after its deletion is looked at once a second, and no more often', () => {
    const rests = { ...build('Finished'), status: { phase: 'Suspended' } } as never;
    const { status } = look({ build: rests, result: failure('TurnDeleted') });
    const now = Date.parse(status.retryAt ?? '') + 60_000;
    const again = look({ now, environment: environment(status), build: rests, result: failure('TurnDeleted') });
    assert.deepEqual([again.act, again.wakeAt], ['DeleteBuild', now + 1_000]);
  });

  test('is Ready with the archive that a session has of a build that lost its turn, and says what is not known', () => {
    const rests = { build: build('Finished'), result: failure('TurnDeleted'), needed: true };
    const taken = { ...state, session: NAME, sessionUID: build('Finished').metadata.uid };
    const later = environment();
    later.metadata.creationTimestamp = new Date(NOW).toISOString();
    for (const one of [environment(), later]) {
      const { status, act } = look({ ...rests, environment: one, taken });
      assert.deepEqual([status.phase, status.archive, act], ['Ready', taken, undefined]);
      assert.match(status.conditions?.[0]?.message ?? '', /packages are not known.*delete that session/);
      assert.equal(look({ ...rests, environment: one }).act, 'DeleteBuild');
    }
  });

  test('that failed for good is built again once its build is deleted', () => {
    const { status } = look({ build: build('Finished'), result: failure('Unsolvable'), needed: true });
    assert.equal(look({ environment: environment(status), needed: true }).act, 'CreateBuild');
    assert.equal(look({ environment: environment(status) }).status.phase, 'Pending');
  });

  test('of a class that is not there yet says so, and waits for it', () => {
    const problem = { reason: 'ClassNotFound', message: 'spec.class: there is no SessionClass "python"' } as const;
    const { status } = look({ wanted: problem, needed: true });
    assert.deepEqual([status.phase, status.conditions?.[0]?.reason], ['Pending', 'ClassNotFound']);
  });

  test('whose class is away for a moment keeps what its last build made, and is not Ready meanwhile', () => {
    const problem = { reason: 'ClassNotFound', message: 'spec.class: there is no SessionClass "python"' } as const;
    const built = look({ build: build('Finished'), result: { phase: 'Succeeded', described } }).status;
    const { status } = look({ environment: environment(built), wanted: problem });
    const { hash, build: name, archive, packages } = built;
    assert.deepEqual([status.phase, status.hash, status.build], ['Pending', hash, name]);
    assert.deepEqual([status.archive, status.packages], [archive, packages]);
    const user = aSession({ spec: { class: 'python', environment: { name: 'tools' } } });
    const got = environmentOf({ ...aWorld({ session: user, environment: environment(status) }), now: NOW }, 'Injected');
    assert.ok(got && 'problem' in got && got.problem.reason === 'EnvironmentNotReady', 'no session starts with it');
    const result = knownResult(status, build('Finished'));
    assert.deepEqual(look({ environment: environment(status), build: build('Finished'), result }).status, built);
    const gone = look({ environment: environment(status), needed: true });
    assert.deepEqual([gone.act, gone.status.packages, gone.status.archive], ['CreateBuild', packages, undefined]);
    const other = { ...wanted, hash: 'b'.repeat(64) };
    assert.equal(look({ environment: environment(status), wanted: other, needed: true }).status.packages, undefined);
  });
});

describe('a build is unused', () => {
  const one = build('Finished');
  const { namespace, uid } = one.metadata;
  const archive = { ...state, session: NAME, sessionUID: uid };
  const shown = { ...environment({ build: NAME }), metadata: { ...environment().metadata, namespace } };
  const having = (phase: 'Suspended' | 'Finished') =>
    aSession({ status: { phase, environment: { name: 'other', hash: HASH, archive } } });

  test('where no Environment shows it and no session has its archive', () => {
    assert.deepEqual(unusedBuilds([one], []), [{ build: one, isShown: false }]);
    assert.deepEqual(unusedBuilds([one], [shown]), [{ build: one, isShown: true }]);
  });

  test('where only finished sessions have its archive, and not where one may start again', () => {
    assert.deepEqual(unusedBuilds([one, having('Finished')], []), [{ build: one, isShown: false }]);
    assert.deepEqual(unusedBuilds([one, having('Suspended')], []), []);
  });

  test('unless a session names the Environment that shows it', () => {
    const user = aSession({ spec: { environment: { name: 'tools' } }, status: { phase: 'Suspended' } });
    assert.deepEqual(unusedBuilds([one, user], [shown]), []);
  });
});
