import type { OwnTurns } from '../world/own-turns.ts';
import type { Problem, World } from '../world/world.ts';
import type { Effective } from './effective.ts';

/** A session as decisions see it. */
export interface Subject {
  readonly world: World;
  readonly turns: OwnTurns;
  /** The session's settings, or why it cannot have any. */
  readonly settings: Effective | Problem;
}
