import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import { noteworthy } from '../../../../controller/status/events.ts';
import { lostAttempt, queued } from '../../../../controller/status/turn-status.ts';
import type { Bound } from '../../../../core/frames/messages.ts';
import { aClass, aLink, aPod, aSession, aTurn, aWorld, NOW, RUNNING_STATUS } from '../../../support/world.ts';

const secret = (name: string, key: string) => ({ name, valueFrom: { secretKeyRef: { name: 'db', key } } });
const ofClass = aClass({
  secrets: ['*'],
  agent: {
    command: ['true'],
    env: [secret('DB_USER', 'user'), secret('DB_PASSWORD', 'password'), { name: 'PLAIN', value: 'x' }],
    secretFiles: [{ path: 'pin', secretKeyRef: { name: 'card', key: 'pin' } }],
  },
});

type Session = ReturnType<typeof aSession>;

function statusAfter(shortSecrets: Bound['shortSecrets'], session: Session) {
  const bound = { runnerVersion: '1', protocol: 1, containment: 'Keeper', hardened: true } as const;
  const link = aLink({ bound: { ...bound, ...(shortSecrets && { shortSecrets }) } });
  return decide(aWorld({ session, class: ofClass, pod: aPod(), link })).status;
}

describe('Secrets that are too short to be hidden', () => {
  const session = aSession({ status: RUNNING_STATUS });
  const hidden = ({ conditions }: Session['status'] & object) =>
    conditions?.find(({ type }) => type === 'SecretsHidden');
  const short = { env: ['DB_USER', 'PLAIN', 'HOSTILE: not a name of ours'], files: ['pin', '../elsewhere'] };

  test('are told by Secret and key in a condition and, once, in an event; a name that the pod made up is not', () => {
    const status = statusAfter(short, session);
    assert.deepEqual([hidden(status)?.status, hidden(status)?.reason], ['False', 'SecretTooShort']);
    assert.match(hidden(status)?.message ?? '', /: key "user" of Secret "db", key "pin" of Secret "card"\. Use/);
    const warned = (before: typeof status) =>
      noteworthy(before, statusAfter(short, aSession({ status: before }))).filter(
        ({ reason }) => reason === 'SecretTooShort',
      );
    assert.equal(warned(RUNNING_STATUS).length, 1);
    assert.equal(warned(status).length, 0);
  });

  test('make no condition where there is none, and the condition True once there is none any more', () => {
    const told = aSession({ status: statusAfter(undefined, session) });
    assert.ok(told.status?.conditions?.length, 'it has others');
    assert.equal(hidden(statusAfter(undefined, told)), undefined);
    const was = aSession({ status: statusAfter(short, session) });
    assert.deepEqual([hidden(statusAfter(undefined, was))?.status], ['True']);
  });

  test('stay told while no runner answers', () => {
    const was = aSession({ status: statusAfter(short, session) });
    const { status } = decide(aWorld({ session: was, class: ofClass, pod: aPod() }));
    assert.equal(hidden(status)?.status, 'False');
  });
});

test('an attempt that is lost, or was never begun, leaves no count of what it hid to the next', () => {
  const turn = aTurn({ status: { index: 1, phase: 'Running', attempt: 1, redactions: 3 } });
  assert.equal(lostAttempt(turn, { reason: 'PodLost', message: '' }, NOW).redactions, undefined);
  assert.equal(queued(turn, 1, 'Queued', NOW).redactions, undefined);
});
