import * as z from 'zod';
import { quantity } from './schema.ts';

const number = () => z.int32().min(1);

const limits = z.strictObject({
  memory: quantity()
    .optional()
    .describe(
      'Memory of a turn’s processes together, or of a tool call’s. Strict: 1Gi. Agent: only what resources.limits.memory allows.',
    ),
  cpuSeconds: number().optional().describe('CPU time of a process and all that it starts. Strict: 300. Agent: any.'),
  fileSize: quantity().optional().describe('Of each file that a process writes. Strict: 100M. Agent: any.'),
  processes: number()
    .optional()
    .describe(
      'Processes of the session at once; with the driver Tools of each call. Threads do not count. Strict: 10. Agent: 1024.',
    ),
  openFiles: number().optional().describe('Open files of each process. Strict: 1024. Agent: what the node allows.'),
  core: quantity().optional().describe('Size of a core dump. Default 0: none is written.'),
});

/** Limits of the agent's processes; fields of a class's sandbox. */
export const processLimits = {
  preset: z
    .enum(['Strict', 'Agent'])
    .optional()
    .describe(
      'The numbers of limits that are not set. Strict is for small programs, Agent for coding agents. Default: Strict with the driver Tools, Agent with the others.',
    ),
  limits: limits
    .optional()
    .describe('Limits of the agent’s processes. One that cannot be set keeps the agent from being started.'),
};

const fields = z.strictObject(processLimits);
export type ProcessLimits = z.infer<typeof fields>;
