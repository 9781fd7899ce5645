import type { Route } from '../route.ts';
import { runRoutes } from './runs.ts';
import { sessionRoutes } from './sessions.ts';
import { turnRoutes } from './turns.ts';

export const routes: Route[] = [...sessionRoutes, ...turnRoutes, ...runRoutes];
