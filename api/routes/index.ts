import type { Route } from '../route.ts';
import { approvalRoutes } from './approvals.ts';
import { artifactRoutes } from './artifacts.ts';
import { commandRoutes } from './commands.ts';
import { eventRoutes } from './events.ts';
import { fileWriteRoutes } from './file-writes.ts';
import { fileRoutes } from './files.ts';
import { logRoutes } from './logs.ts';
import { portRoutes } from './ports.ts';
import { runRoutes } from './runs.ts';
import { sessionRoutes } from './sessions.ts';
import { turnRoutes } from './turns.ts';

/** Routes by the tag that they have in the document. */
export const routesByTag: Record<string, readonly Route[]> = {
  Sessions: sessionRoutes,
  Turns: turnRoutes,
  Artifacts: artifactRoutes,
  Approvals: approvalRoutes,
  Events: eventRoutes,
  Logs: logRoutes,
  Files: [...fileRoutes, ...fileWriteRoutes],
  Commands: commandRoutes,
  Ports: portRoutes,
  Runs: runRoutes,
};

export const routes: Route[] = Object.values(routesByTag).flat();
