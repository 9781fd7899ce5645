import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { WebSocket } from 'ws';
import { encodeFrame, FrameDecoder, positionBytes } from '../../../core/enter/frames.ts';
import type { CommandExit } from '../../../core/enter/hello.ts';
import { noHelper } from '../../support/helper-run.ts';
import { pythonAgent } from '../../support/installation.ts';
import { seededRandom } from '../../support/random.ts';
import { skipIf } from '../../support/requires.ts';
import { ApiCluster, type ApiProgram, type Rule } from './support.ts';

const COMMANDS = '/v1/namespaces/default/sessions/notes/commands';
const EXEC: Rule[] = [{ verbs: ['get', 'create'], resources: ['sessions/exec'] }];
const KILLS = 4;
/** Bytes of output after which the client acknowledges. */
const ACKNOWLEDGED = 262_144;
/** SEED=n repeats a run. */
const SEED = Number(process.env.SEED ?? randomInt(2 ** 31));

/** What a client has of a command, over one connection after the other. */
class Reader {
  position = 0;
  exit: CommandExit | undefined;
  readonly hash = createHash('sha256');
  #acknowledged = 0;

  /** Attaches where it was. Resolves when the connection is over; `onOutput` is called after each piece. */
  async attach(host: string, id: string, token: string, onOutput: () => void): Promise<void> {
    const url = `ws://${host}${COMMANDS}/${id}/attach?from=${this.position}`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } });
    const decoder = new FrameDecoder();
    socket.on('error', () => {});
    socket.on('message', (data: Buffer) => {
      for (const { kind, payload } of decoder.push(data)) {
        if (kind === 'exit') {
          this.exit = JSON.parse(String(payload)) as CommandExit;
          socket.send(encodeFrame('exit'));
        } else if (kind === 'output') {
          this.hash.update(payload.subarray(9));
          this.position += payload.length - 9;
          onOutput();
        }
      }
      if (this.position - this.#acknowledged < ACKNOWLEDGED) return;
      this.#acknowledged = this.position;
      socket.send(encodeFrame('acknowledge', positionBytes(this.position)));
    });
    await new Promise((resolve) => socket.once('close', resolve));
  }
}

describe('a command over HTTP that prints 100 MB', skipIf(noHelper), () => {
  let api: ApiCluster;
  let replica: ApiProgram;
  beforeAll(async () => {
    api = await ApiCluster.start({});
    api.cluster.startController();
    replica = await api.startProgram();
    await api.cluster.create('notes', { agent: pythonAgent("answer('done')") });
    await api.cluster.turn('notes', 'notes-1', null);
    await api.cluster.ended('notes-1');
  });
  afterAll(async () => {
    replica?.child.kill('SIGKILL');
    await replica?.closed;
    await api?.close();
  });

  test(`gives each byte once and its exit code while replicas of the API are killed (SEED=${SEED})`, async () => {
    console.log(`SEED=${SEED}`);
    const { token } = await api.user(EXEC);
    const dice = seededRandom(SEED);
    const command = ['sh', '-c', 'seq 1 12000000; exit 3'];
    const answer = await fetch(`http://${replica.host}${COMMANDS}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ command, detach: false }),
    });
    const { id } = (await answer.json()) as { id: string };
    assert.equal(answer.status, 201);

    const reader = new Reader();
    let kills = 0;
    let killAt = 20_000_000 * dice.uniform();
    while (!reader.exit) {
      const { host, child, closed } = replica;
      await reader.attach(host, id, token, () => {
        if (reader.position < killAt || kills === KILLS) return;
        killAt = reader.position + 30_000_000 * dice.uniform();
        kills += 1;
        child.kill('SIGKILL');
      });
      if (reader.exit || !child.killed) break;
      await closed;
      replica = await api.startProgram();
    }
    const [sha256] = execFileSync('sh', ['-c', 'seq 1 12000000 | sha256sum'], { encoding: 'utf8' }).split(' ');
    assert.deepEqual([reader.exit?.code, reader.hash.digest('hex')], [3, sha256], `SEED=${SEED}`);
    assert.equal(reader.exit?.stdout, reader.position);
    assert.ok(kills > 1, `SEED=${SEED}: ${kills} kills`);
  });
});
