import type { OwnTurns } from '../observed/own-turns.ts';
import type { Problem, World } from '../observed/world.ts';
import type { Effective } from './effective.ts';

/** The input of decisions about a session. */
export interface Subject {
  readonly world: World;
  readonly turns: OwnTurns;
  /** The session's effective settings, or the problem with them. */
  readonly settings: Effective | Problem;
}
