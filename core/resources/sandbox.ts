import * as z from 'zod';
import { quantity } from './schema.ts';

const number = () => z.int32().min(1);

const limits = z.strictObject({
  memory: quantity()
    .optional()
    .describe(
      'Memory of all processes of a turn, or of a tool call. Strict: 1Gi. Agent: limited by resources.limits.memory only.',
    ),
  cpuSeconds: number()
    .optional()
    .describe('CPU time of a process and its descendants, in seconds. Strict: 300. Agent: no limit.'),
  fileSize: quantity().optional().describe('Size of each file that a process writes. Strict: 100M. Agent: no limit.'),
  processes: number()
    .optional()
    .describe(
      'Maximum processes of the session at the same time; with the driver Tools, of each call. Threads do not count. Strict: 10. Agent: 1024.',
    ),
  openFiles: number().optional().describe('Open files of each process. Strict: 1024. Agent: the node’s limit.'),
  core: quantity().optional().describe('Size of a core dump. Default 0: no core dump.'),
});

/** Protections of a session that its runner reports; conditions of the session by the same names. */
export const PROTECTIONS = ['RunnerHardened', 'AgentContained'] as const;
export type Protection = (typeof PROTECTIONS)[number];

/** Limits of the agent's processes; fields of a class's sandbox. */
export const processLimits = {
  preset: z
    .enum(['Strict', 'Agent'])
    .optional()
    .describe(
      'Values of limits that are not set. Strict suits small programs, Agent suits coding agents. Default: Strict with the driver Tools, Agent with the other drivers.',
    ),
  limits: limits
    .optional()
    .describe('Limits of the agent’s processes. If a limit cannot be set, the agent does not start.'),
};

const fields = z.strictObject(processLimits);
export type ProcessLimits = z.infer<typeof fields>;
