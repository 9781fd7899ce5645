import type { Ground } from './ground.ts';
import type { Outcome } from './run.ts';
import { SAMPLES } from './settings.ts';

/** New sessions without a pod to take, each beside the floors of its start. */
export async function cold(ground: Ground): Promise<Outcome> {
  const { floors } = ground;
  const values: number[] = [];
  const beside: Record<'F-container' | 'F-node' | 'F-write' | 'bare', number[]> = {
    ...{ 'F-container': [], 'F-node': [], 'F-write': [], bare: [] },
  };
  for (let i = 0; i < SAMPLES; i++) {
    beside.bare.push(await floors.bare());
    beside['F-container'].push(await floors.container());
    beside['F-node'].push(await floors.node());
    beside['F-write'].push(await floors.write());
    values.push((await ground.oneTurn(`cold-${i}`)).ms);
    await ground.gone(`cold-${i}`);
  }
  return { rows: [{ id: 'cold', values, floors: beside }] };
}
