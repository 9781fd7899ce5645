import type { SimServer } from '../api/server.ts';
import type { Dice } from '../random.ts';
import type { Scheduler } from '../scheduler.ts';
import type { Trace } from '../trace.ts';

export const NAMESPACES = ['team-a', 'team-b', 'team-c'] as const;
export const CLASSES = ['default', 'small'] as const;

/** Name of the one Environment of a class in each namespace. */
export const environmentOf = (sessionClass: string) => ({ name: `of-${sessionClass}` });

/** The class of images that know nothing of Berth. */
export const ANY_IMAGE = 'any-image';

export interface Users {
  scheduler: Scheduler;
  dice: Dice;
  server: SimServer;
  trace: Trace;
  /** Maximum number of sessions at the same time. */
  maxSessions: number;
  /** Limit of the concurrency group in most of its sessions. */
  groupLimit: number;
  /** Fields that are the same in all sessions. */
  session: object;
  /** Dice for the files of sessions' agents; absent: no agent has files. */
  files?: Dice | undefined;
  /** Dice for the environments of sessions; absent: no session has one. */
  environments?: Dice | undefined;
  /** Dice for groups that most sessions share; absent: some sessions share one. */
  sharing?: Dice | undefined;
  /** Dice for agents that change their state while they wait for a decision; absent: none does. */
  writing?: Dice | undefined;
  /** Dice for what turns leave in BERTH_OUTPUT_DIR. */
  artifacts: Dice;
  /** True when all sessions are of the class any-image. */
  onlyAnyImage: boolean;
}
