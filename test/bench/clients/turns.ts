/** Gives a session a turn for each line of stdin, and prints the milliseconds until its result. */
import { createInterface } from 'node:readline';
import { Berth } from '../../../clients/typescript/src/index.ts';

const session = new Berth({ allowPlainText: true }).session(process.argv[2] as string);
for await (const _ of createInterface({ input: process.stdin })) {
  const began = performance.now();
  const turn = await session.turns.create({ input: 'hello' });
  await turn.result();
  console.log(performance.now() - began);
}
