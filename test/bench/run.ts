import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Figure, figureTable } from './figures.ts';
import type { Measured, Series, Unmeasured } from './judge.ts';
import { speed } from './machine.ts';
import { only, short } from './settings.ts';
import { floorTable, joined, type Peer, type Speed, speedTable, targetTable } from './table.ts';
import { TARGETS, type TargetId } from './targets.ts';

const CHECKOUT = join(import.meta.dirname, '..', '..');

/** Measurements of a section. */
export interface Outcome {
  rows?: readonly (Measured | Unmeasured)[];
  /** Figures without a target. */
  figures?: readonly Figure[];
  peer?: Peer;
  /** Floors of rows that nothing can be measured for yet. */
  floors?: Series;
}

/** File of a run, which `make bench-compare` reads: every sample. */
export interface BenchFile {
  commit: string;
  /** RFC 3339. */
  begun: string;
  short: boolean;
  rows: readonly (Measured | Unmeasured)[];
  peer: Peer;
  figures: readonly Figure[];
  /** Every floor, the samples of all rows together. */
  floors: Series;
  machine: readonly Speed[];
}

const git = (...args: string[]) => execFileSync('git', args, { cwd: CHECKOUT, encoding: 'utf8' }).trim();

/** Commit of the checkout, "+" where files differ from it. */
function commit(): string {
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain') ? '+' : '');
  } catch {
    return 'unknown';
  }
}

/** Run of sections, one after the other, each with the machine's speed before it. */
export class Run {
  readonly #begun = new Date().toISOString();
  readonly #rows: (Measured | Unmeasured)[] = [];
  readonly #figures: Figure[] = [];
  readonly #speeds: Speed[] = [];
  readonly #floors: Record<string, number[]> = {};
  #peer: Peer = 'not measured';
  #failures = 0;

  /** Runs a section unless ONLY leaves it out. A failure is told in its rows and does not end the run. */
  async section(name: string, ids: readonly TargetId[], work: () => Promise<Outcome>): Promise<void> {
    if (!only.test(name)) return;
    this.#speeds.push(speed(name));
    const started = performance.now();
    console.error(`bench: ${name}`);
    try {
      const { rows = [], figures = [], floors = {}, peer } = await work();
      this.#rows.push(...rows);
      this.#figures.push(...figures);
      if (peer) this.#peer = joined(this.#peer, peer);
      for (const row of rows) if (!('why' in row)) this.#keep(row.floors);
      this.#keep(floors);
      console.error(`bench: ${name} took ${((performance.now() - started) / 1000).toFixed(0)} s`);
    } catch (error) {
      this.#failures += 1;
      console.error(`bench: ${name} failed:`, error);
      const why = `failed: ${(error as Error).message.split('\n')[0]}`;
      for (const id of ids) this.#rows.push({ id, why });
      if (ids.length === 0) this.#figures.push({ what: name, measured: why, values: null });
    }
  }

  /** Prints the tables and writes build/`name`.json. `all`: rows that were not measured are shown too. */
  publish(name: string, all: boolean): void {
    this.#speeds.push(speed('the end'));
    const file: BenchFile = {
      ...{ commit: commit(), begun: this.#begun, short, rows: this.#rows, peer: this.#peer },
      ...{ figures: this.#figures, floors: this.#floors, machine: this.#speeds },
    };
    const folder = join(CHECKOUT, 'build');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(file, null, 1)}\n`);
    const targets = all ? TARGETS : TARGETS.filter(({ id }) => this.#rows.some((row) => row.id === id));
    const kind = short ? 'SHORT RUN: few samples, no verdict on a p99' : 'whole run';
    const tables = [
      `${kind}; commit ${file.commit}, begun ${file.begun}`,
      targetTable(targets, this.#rows, this.#peer, short),
      Object.keys(this.#floors).length > 0 ? floorTable(this.#floors) : '',
      this.#figures.length > 0 ? figureTable(this.#figures) : '',
      speedTable(this.#speeds),
    ];
    console.log(tables.filter(Boolean).join('\n\n'));
    if (this.#failures > 0) process.exitCode = 1;
  }

  #keep(floors: Series = {}): void {
    for (const [name, values] of Object.entries(floors)) {
      if (!/^(F-.*|bare)$/.test(name)) continue;
      this.#floors[name] ??= [];
      this.#floors[name].push(...values);
    }
  }
}
