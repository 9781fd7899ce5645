import { join } from 'node:path';
import type { SessionClassSpec } from '../../../core/resources/sessionclass.ts';
import { ATTACKS } from './attacks.ts';

const MAIN = join(import.meta.dirname, 'main.ts');
const NODE = [process.execPath, '--disable-warning=ExperimentalWarning', '--max-semi-space-size=4'];

/** Images of the embedded cluster, one for each attack. */
export const HOSTILE_IMAGES = Object.fromEntries(
  Object.keys(ATTACKS).map((attack) => [`berth.local/hostile-${attack}`, { entrypoint: [...NODE, MAIN, attack] }]),
);

/** A class whose pods attack. */
export const hostileClass = (attack: string): Partial<SessionClassSpec> => ({
  image: `berth.local/hostile-${attack}`,
  agent: { command: ['none'] },
  overrides: ['timeouts'],
});
