import { hunt, plant } from './plant.ts';
import { poolBugs } from './pools.ts';

const only = process.argv[2];
const focus = {
  pools: true,
  maxRunning: 20,
  deedEveryMs: 500,
  deeds: [
    'suspend a session',
    'resume a session',
    'ask a session to suspend once',
    'delete a session, and perhaps make another of its name',
    'edit a class',
  ],
};
for (const bug of poolBugs) {
  if (only && !new RegExp(only).test(bug.name)) continue;
  try {
    const { seeds, words } = await hunt(plant(bug), {
      ...bug,
      focus: { ...focus, ...bug.focus },
      within: Number(process.argv[3] ?? 40),
    });
    console.log(`${bug.name}: ${seeds ?? 'NOT FOUND'}: ${words.slice(0, 300)}`);
  } catch (error) {
    console.log(`${bug.name}: ${(error as Error).message}`);
  }
}
