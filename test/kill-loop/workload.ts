/** Sessions whose agent counts in its state, driven and judged through the API alone. */

import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Random } from '../../core/runtime.ts';
import type { RawApi } from '../support/raw-api.ts';

const SESSIONS = '/apis/berth.dev/v1alpha1/namespaces/default/sessions';
const TURNS = '/apis/berth.dev/v1alpha1/namespaces/default/turns';
/** Turns that a session has at most before it gets another. */
const LIVE = 2;
const SUSPEND_EVERY = 10;
const MAX_SECONDS = 0.4;
const MAX_BYTES = 300_000;
const TERMINAL = ['Succeeded', 'Failed', 'Cancelled', 'TimedOut'];

/**
 * Adds one to the number in its state and writes down, outside of the state, that it ran. Its input is the turn's name,
 * a duration in seconds and a length in bytes; its result is the name, the number and that many letters.
 */
const AGENT = `
read -r name seconds bytes
file="$BERTH_STATE_DIR/count"
count=0
[ ! -f "$file" ] || count=$(cat "$file")
count=$((count + 1))
echo "$name $count" >> "$1"
sleep "$seconds"
echo "$count" > "$file.new" && mv "$file.new" "$file"
printf '{"turn":"%s","count":%d,"filler":"' "$name" "$count"
head -c "$bytes" /dev/zero | tr '\\0' x
printf '"}'
`;

interface SeenTurn {
  uid: string;
  phase: string;
  index?: number;
  error?: string;
}

export class Workload {
  readonly #folder: string;
  readonly #random: Random;
  readonly #names: string[];
  /** Turns that were asked for, by session. */
  readonly #created = new Map<string, number>();
  readonly #seen = new Map<string, SeenTurn>();
  readonly violations = new Set<string>();

  constructor(folder: string, random: Random, sessions: number) {
    this.#folder = folder;
    this.#random = random;
    this.#names = Array.from({ length: sessions }, (_, i) => `s${i}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'agent.sh'), AGENT);
  }

  get turns(): { asked: number; ended: Record<string, number> } {
    const ended: Record<string, number> = {};
    for (const { phase, error } of this.#seen.values()) {
      const kind = error ? `${phase}/${error}` : phase;
      ended[kind] = (ended[kind] ?? 0) + 1;
    }
    return { asked: [...this.#created.values()].reduce((sum, count) => sum + count, 0), ended };
  }

  /** Makes what is missing; anything that fails is tried again by the next call. */
  async begin(api: RawApi): Promise<void> {
    for (const name of this.#names) {
      const made = await api.post(SESSIONS, {
        apiVersion: 'berth.dev/v1alpha1',
        kind: 'Session',
        metadata: { name },
        spec: {
          agent: {
            command: ['sh', join(this.#folder, 'agent.sh'), this.#runs(name)],
            input: 'Text',
            result: 'Json',
          },
          history: { turns: 10_000 },
        },
      });
      if (made.status !== 201 && made.status !== 409) throw new Error(made.text);
    }
  }

  /** A single look: notes how turns stand and, unless `draining`, asks for more. Returns how many have not ended. */
  async step(api: RawApi, draining = false): Promise<number> {
    const list = await api.get(TURNS);
    if (list.status !== 200) throw new Error(list.text);
    const live = new Map<string, number>(this.#names.map((name) => [name, 0]));
    const listed = new Set<string>();
    for (const { metadata, spec, status } of list.body.items) {
      listed.add(metadata.name);
      this.#note(metadata.name, {
        uid: metadata.uid,
        phase: status?.phase ?? 'New',
        index: status?.index,
        error: status?.error?.code,
      });
      if (!TERMINAL.includes(status?.phase)) live.set(spec.session, live.get(spec.session)! + 1);
    }
    for (const name of this.#seen.keys()) if (!listed.has(name)) this.violations.add(`turn ${name} is gone`);
    if (!draining) {
      for (const name of this.#names) if (live.get(name)! < LIVE) await this.#ask(api, name);
    }
    return [...live.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Adds a violation for every broken rule. Called once all turns have ended. */
  judge(): void {
    for (const session of this.#names) {
      const runs = this.#readRuns(session);
      for (const [turn, counts] of runs) {
        if (counts.length > 1) this.violations.add(`turn ${turn} ran ${counts.length} times`);
        if (!this.#seen.has(turn)) this.violations.add(`turn ${turn} ran and was lost`);
      }
      const own = [...this.#seen].filter(([name]) => name.startsWith(`${session}-`));
      if (own.length < (this.#created.get(session) ?? 0)) this.violations.add(`session ${session} lost turns`);
      const indexes = new Map<number, string>();
      const succeeded = own.filter(([, { phase }]) => phase === 'Succeeded');
      for (const [name, { index = -1 }] of succeeded) {
        const other = indexes.get(index);
        if (other) this.violations.add(`turns ${other} and ${name} both succeeded with index ${index}`);
        indexes.set(index, name);
      }
      succeeded.sort(([, a], [, b]) => a.index! - b.index!);
      for (const [i, [name]] of succeeded.entries()) {
        const count = runs.get(name)?.[0];
        if (count !== i + 1) this.violations.add(`turn ${name} counted ${count} where ${i} turns had succeeded before`);
      }
    }
  }

  #note(name: string, turn: SeenTurn): void {
    const before = this.#seen.get(name);
    if (before && before.uid !== turn.uid) this.violations.add(`turn ${name} is another object`);
    if (before && TERMINAL.includes(before.phase) && before.phase !== turn.phase) {
      this.violations.add(`turn ${name} was ${before.phase} and is ${turn.phase}`);
    }
    if (before?.index !== undefined && before.index !== turn.index) {
      this.violations.add(`turn ${name} had index ${before.index} and has ${turn.index}`);
    }
    this.#seen.set(name, turn);
  }

  async #ask(api: RawApi, session: string): Promise<void> {
    const next = (this.#created.get(session) ?? 0) + 1;
    const name = `${session}-${next}`;
    const seconds = (this.#random.uniform() * MAX_SECONDS).toFixed(3);
    const bytes = Math.floor(this.#random.uniform() * MAX_BYTES);
    const turn = { metadata: { name }, spec: { session, input: `${name} ${seconds} ${bytes}\n` } };
    const made = await api.post(TURNS, { apiVersion: 'berth.dev/v1alpha1', kind: 'Turn', ...turn });
    // An answer that was lost to a kill is asked for again, under the same name.
    if (made.status !== 201 && made.status !== 409) throw new Error(made.text);
    this.#created.set(session, next);
    if (next % SUSPEND_EVERY !== 0) return;
    await api.patch(`${SESSIONS}/${session}`, { spec: { suspendRequest: `after-${next}` } });
  }

  #runs(session: string): string {
    const path = join(this.#folder, `${session}.runs`);
    if (!existsSync(path)) appendFileSync(path, '');
    return path;
  }

  #readRuns(session: string): Map<string, number[]> {
    const runs = new Map<string, number[]>();
    for (const line of readFileSync(this.#runs(session), 'utf8').split('\n').filter(Boolean)) {
      const [turn = '', count] = line.split(' ');
      runs.set(turn, [...(runs.get(turn) ?? []), Number(count)]);
    }
    return runs;
  }
}
