import assert from 'node:assert/strict';
import { test } from 'vitest';
import { decide } from '../../../../controller/decide/decide.ts';
import { noteworthy } from '../../../../controller/status/events.ts';
import type { SessionStatus } from '../../../../core/resources/session.ts';
import { aLink, aPod, aSession, aWorld, RUNNING_STATUS } from '../../../support/world.ts';

const enterable = ({ conditions }: SessionStatus) => conditions?.find(({ type }) => type === 'Enterable');
const statusAfter = (link: Parameters<typeof aLink>[0], status: SessionStatus = RUNNING_STATUS) =>
  decide(aWorld({ session: aSession({ status }), pod: aPod(), link: aLink(link) })).status as SessionStatus;

test('a session that clients cannot enter says so in a condition and one event, until its runner has its socket', () => {
  assert.equal(enterable(statusAfter({ answered: true })), undefined);
  const closed = statusAfter({ answered: true, closedToClients: true });
  assert.deepEqual([enterable(closed)?.status, enterable(closed)?.reason], ['False', 'SocketTaken']);
  assert.deepEqual(
    noteworthy(RUNNING_STATUS, closed).map(({ type, reason }) => `${type} ${reason}`),
    ['Warning SocketTaken'],
  );
  // Another leader has not heard of it yet.
  assert.deepEqual(enterable(statusAfter({}, closed)), enterable(closed));
  const open = statusAfter({ answered: true }, closed);
  assert.deepEqual([enterable(open)?.status, enterable(open)?.reason], ['True', 'Enterable']);
});
