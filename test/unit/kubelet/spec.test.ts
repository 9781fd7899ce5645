import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { commandLine, expand } from '../../../local/kubelet/environment.ts';
import { repository } from '../../../local/kubelet/images.ts';
import { type ContainerView, podPhase } from '../../../local/kubelet/status.ts';
import { underRoot, workingDirectory } from '../../../local/kubelet/volumes.ts';

const times = { startedAt: '2026-01-01T00:00:00Z', finishedAt: '2026-01-01T00:00:01Z' };

function view(state: ContainerView['state'], lastState: ContainerView['lastState'] = {}): ContainerView {
  return { name: 'main', image: 'x', containerID: undefined, restartCount: 0, state, lastState };
}
const ended = (exitCode: number) => view({ terminated: { exitCode, reason: 'x', ...times } });
const views = {
  waiting: view({ waiting: { reason: 'ContainerCreating' } }),
  running: view({ running: { startedAt: times.startedAt } }),
  good: ended(0),
  bad: ended(1),
  backingOff: view({ waiting: { reason: 'CrashLoopBackOff' } }, ended(1).state),
};

describe('the phase of a pod', () => {
  const table: [string, (keyof typeof views)[], string][] = [
    ['Never', ['waiting'], 'Pending'],
    ['Never', ['running'], 'Running'],
    ['Never', ['running', 'waiting'], 'Pending'],
    ['Never', ['running', 'bad'], 'Running'],
    ['Never', ['good', 'good'], 'Succeeded'],
    ['Never', ['good', 'bad'], 'Failed'],
    ['OnFailure', ['good'], 'Succeeded'],
    ['OnFailure', ['bad'], 'Running'],
    ['Always', ['good'], 'Running'],
    ['Always', ['backingOff'], 'Running'],
  ];
  for (const [policy, names, phase] of table) {
    test(`with restartPolicy ${policy} and containers ${names.join(' and ')} is ${phase}`, () => {
      assert.equal(
        podPhase(
          policy,
          names.map((name) => views[name]),
        ),
        phase,
      );
    });
  }
});

test('$(NAME) is the value of a variable, $$ a dollar, an unknown name stays', () => {
  const variables = { A: '1', EMPTY: '' };
  assert.equal(expand('$(A)-$$(A)-$(B)-$(EMPTY)-$A-$$', variables), '1-$(A)-$(B)--$A-$');
});

test('a command replaces the entry point of the image, args follow either', () => {
  const container = { name: 'main', args: ['$(A)'] };
  assert.deepEqual(commandLine(container, ['/bin/program', 'x'], { A: '1' }), ['/bin/program', 'x', '1']);
  assert.deepEqual(commandLine({ ...container, command: ['other'] }, ['/bin/program'], { A: '1' }), ['other', '1']);
});

test('an image is known by its name without tag and digest', () => {
  const digest = `@sha256:${'0'.repeat(64)}`;
  for (const reference of ['h.local:5000/a/b', 'h.local:5000/a/b:v1', `h.local:5000/a/b:v1${digest}`]) {
    assert.equal(repository(reference), 'h.local:5000/a/b');
  }
});

test('no mount path leads out of the root of its pod', () => {
  for (const path of ['/x', 'x', '/../../x', '/a/../../x', '//x']) assert.equal(underRoot('/root', path), '/root/x');
});

test('a working directory inside a mount is in the root of the pod, any other is of the machine', () => {
  const spec = { containers: [{ name: 'main', volumeMounts: [{ name: 'data', mountPath: '/data' }] }] };
  assert.equal(workingDirectory('/root', spec, '/data/sub'), '/root/data/sub');
  assert.equal(workingDirectory('/root', spec, '/database'), '/database');
  assert.equal(workingDirectory('/root', spec, undefined), '/root');
});
