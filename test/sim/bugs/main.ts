/**
 * Looks for the planted bugs, all of them or those whose name contains BUGS, and writes the seed that finds each to `found.json`.
 * A bug is looked for from its seed there on. One that is not found keeps its seed, and the program ends with 1.
 */
import { availableParallelism } from 'node:os';
import { type FoundSeeds, readFound, writeFound } from './found.ts';
import { bugs } from './list.ts';
import { named } from './named.ts';
import { hunt, plant } from './plant.ts';

const names = new Set(bugs.map(({ name }) => name));
let found: FoundSeeds = Object.fromEntries(Object.entries(readFound()).filter(([name]) => names.has(name)));
const left = named(bugs, process.env.BUGS);

async function work(): Promise<void> {
  for (let bug = left.shift(); bug; bug = left.shift()) {
    const recorded = found[bug.name];
    const { seed, words } = await hunt(plant(bug), bug, recorded);
    if (seed === undefined) {
      console.error(`${bug.name}: not found: ${words}`);
      process.exitCode = 1;
      continue;
    }
    console.log(`${bug.name}: seed ${seed}${recorded === undefined || recorded === seed ? '' : `, was ${recorded}`}`);
    found = { ...found, [bug.name]: seed };
    // An interrupted run keeps what it has found.
    writeFound(found);
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, work));
writeFound(found);
