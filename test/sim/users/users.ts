import type { SimServer } from '../api/server.ts';
import type { Dice } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';

export const NAMESPACES = ['team-a', 'team-b', 'team-c'] as const;
export const CLASSES = ['default', 'small'] as const;

/** The class of images that know nothing of Berth. */
export const ANY_IMAGE = 'any-image';

export interface Users {
  scheduler: Scheduler;
  dice: Dice;
  server: SimServer;
  trace: Trace;
  /** How many sessions they have at the same time. */
  maxSessions: number;
  /** Turns of the group that run at once, by most of its sessions. */
  groupLimit: number;
  /** What is the same in all sessions. */
  session: object;
  /** Draws the files of sessions' agents; absent: no agent has any. */
  files?: Dice | undefined;
  /** All sessions are of the class any-image. */
  onlyAnyImage: boolean;
}
