import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { PROTOCOL_VERSION, understand } from '../../../core/frames/messages.ts';
import { type Any, apply, ended, get, makeNamespace, session, turn } from '../support/cluster.ts';
import {
  buildEarlierRelease,
  type EarlierRelease,
  notForCluster,
  removeEarlierRelease,
} from '../support/earlier-release.ts';
import { allEnded, countedTurns, type Load, underLoad } from '../support/load.ts';
import { loadImage } from '../support/node.ts';
import { install } from '../support/release.ts';

/** Adds its input to the notes in its state and prints them, with busybox alone: the image is that of the release. */
const agent = {
  command: ['sh', '-c'],
  args: ['printf "%s\\n" "$1" >>"$BERTH_STATE_DIR/notes"; sleep 1; cat "$BERTH_STATE_DIR/notes"', 'sh', '$(INPUT)'],
  input: 'Args',
  result: 'Text',
};
/** Only the controller and the pods of sessions change hands: kubectl gives the turns. */
const values = { 'api.enabled': false };

describe('an installation under load', () => {
  let earlier: EarlierRelease;
  beforeAll(async () => {
    earlier = await buildEarlierRelease();
    for (const image of earlier.images) await loadImage(image);
    await install(values);
  });
  afterAll(async () => {
    await install();
    await removeEarlierRelease();
  });

  test('is rolled back to the commit that landed last and upgraded again, and every turn runs exactly once', async (t) => {
    const refusal = await notForCluster(earlier);
    t.skip(refusal !== undefined, `${earlier.commit.slice(0, 10)} is not for this cluster: ${refusal}`);
    const namespace = await makeNamespace(t);
    const names = (release: string) => [1, 2, 3].map((n) => `${release}-${n}`);
    const create = async (release: string) => {
      // All turns are kept, however many are given while a slow machine installs.
      const history = { turns: 10_000, bytes: '64Mi' };
      await apply(...names(release).map((name) => session(namespace, name, { agent, history })));
      await apply(...names(release).map((name) => turn(namespace, `${name}-first`, name, `${name}-first`)));
      // The end of a turn shows that the release has made and bound the session's pod.
      for (const name of names(release)) await ended(namespace, `${name}-first`);
    };
    await create('present');
    const load: Load = underLoad(namespace, names('present'));
    await load.during(() => install(values, earlier));
    await create('earlier');
    load.sessions.push(...names('earlier'));
    await load.during(() => install(values));
    const given = load.given + 6;
    const turns = await allEnded(namespace, given, 300_000);
    const { lost, doubled, missing } = countedTurns(turns);
    const { items } = await get(['sessions', '-n', namespace]);
    const incarnations = items.map(({ status }: Any) => status.incarnation);
    await t.annotate(
      `${earlier.commit.slice(0, 10)} (protocol ${earlier.protocol}) and back: ${given} turns, ${lost.length} lost, ${doubled.length} doubled; incarnations ${incarnations}`,
    );
    assert.deepEqual({ lost, doubled, missing }, { lost: [], doubled: [], missing: [] });
    // A pod outlives controllers that understand its runner, and goes with its turn where one does not.
    if (understand(earlier.protocol, PROTOCOL_VERSION)) assert.deepEqual(new Set(incarnations), new Set([1]));
    else assert.ok(incarnations.some((incarnation: number) => incarnation > 1));
  });
});
