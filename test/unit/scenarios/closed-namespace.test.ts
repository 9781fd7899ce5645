import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ApiError } from '../../../core/kube/errors.ts';
import { sessions } from '../../../core/resources/kinds.ts';
import { create } from '../../sim/users/writes.ts';
import { QuietWorld } from '../../support/quiet-world.ts';

test('a listed namespace without rights keeps nobody from working in the others, and is served once it has them', async () => {
  const world = new QuietWorld({ namespaces: ['team', 'lost'] });
  let hasRights = false;
  world.refuse = ({ namespace }) =>
    namespace === 'lost' && !hasRights
      ? new ApiError({ code: 403, reason: 'Forbidden', message: 'sessions.berth.dev is forbidden' })
      : undefined;
  await world.server.namespace('lost');
  await world.start();
  await create(world.server, sessions, 'lost', 'waits', { class: 'default' });
  const works = await world.session('works');
  assert.equal((await world.turn(works, 'works-1', { ms: 10, output: 1 })).status?.phase, 'Succeeded');
  const isTold = () =>
    world.logged.some(
      ({ message, fields }) => message === 'namespace cannot be read and is left out' && fields.namespace === 'lost',
    );
  await world.until('the namespace that is left out', isTold);
  const waits = () => world.server.get(sessions, 'lost', 'waits')?.status?.phase;
  assert.equal(waits(), undefined);
  hasRights = true;
  await world.until('the other namespace is served', () => waits() === 'Ready');
});
