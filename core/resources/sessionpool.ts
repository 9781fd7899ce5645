import * as z from 'zod';
import { conditions, count, dnsSubdomain, observedGeneration } from './schema.ts';

/** Maximum number of pods that a pool may ask for. */
const MAX_POOL_REPLICAS = 1000;

export const sessionPoolSpec = z.strictObject({
  class: dnsSubdomain()
    .default('default')
    .describe(
      'SessionClass whose pods the pool keeps ready for the sessions of its namespace. Default: the SessionClass named default.',
    ),
  replicas: z
    .int32()
    .min(0)
    .max(MAX_POOL_REPLICAS)
    .default(1)
    .describe('Number of pods to keep ready. Each holds a running slot until a session needs the slot. Default 1.'),
});

export const sessionPoolStatus = z.strictObject({
  observedGeneration: observedGeneration(),
  replicas: count().optional().describe('Pods of the pool that no session has claimed: ready ones and starting ones.'),
  ready: count().optional().describe('Pods that a session of the class can claim now.'),
  claimed: count().optional().describe('Number of starts of sessions with a ready pod of the pool.'),
  missed: count()
    .optional()
    .describe('Number of starts of sessions that a pod of the pool would have fitted, and that found none ready.'),
  selector: z
    .string()
    .max(256)
    .optional()
    .describe('Label selector of the pods that no session has claimed, for autoscalers.'),
  conditions: conditions(),
});

export type SessionPoolSpec = z.infer<typeof sessionPoolSpec>;
export type SessionPoolStatus = z.infer<typeof sessionPoolStatus>;
