/** What has to hold of events that a client has followed. */
import assert from 'node:assert/strict';

export interface Followed {
  id: string;
  type: string;
  data: Record<string, unknown>;
}

/** Agent's events and lines come each once and in order, and no older state after a newer one. */
export function checkFollowed(
  events: readonly Followed[],
  { agent = 0, lines = 0 }: { agent?: number | undefined; lines?: number | undefined },
  where: string,
): void {
  const ofType = (type: string) => events.filter((event) => event.type === type).map(({ data }) => data);
  const numbers = ofType('agent').map(({ event }) => (event as { n?: number }).n);
  assert.deepEqual(numbers, upTo(agent), `${where}: events of the agent`);
  const texts = ofType('log').flatMap(({ text }) => (/^line /.test(String(text)) ? [text] : []));
  assert.deepEqual(
    texts,
    upTo(lines).map((n) => `line ${n} of ünï😀`),
    `${where}: lines`,
  );
  for (const place of [0, 1]) {
    let before = 0n;
    for (const { id } of events) {
      const version = BigInt(id.split('.')[place] ?? 0);
      assert.ok(version >= before, `${where}: ${id} comes after a newer state, ${before}`);
      before = version;
    }
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);
