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

export const routes: Route[] = [
  ...sessionRoutes,
  ...turnRoutes,
  ...artifactRoutes,
  ...approvalRoutes,
  ...eventRoutes,
  ...logRoutes,
  ...fileRoutes,
  ...fileWriteRoutes,
  ...commandRoutes,
  ...portRoutes,
  ...runRoutes,
];
