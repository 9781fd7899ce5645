import * as z from 'zod';
import { MAX_REQUESTER } from './limits.ts';
import { anyJson, dnsSubdomain, rules } from './schema.ts';

export const decision = z.enum(['Approve', 'Deny']);

export const approvalSpec = z
  .strictObject({
    turn: dnsSubdomain().describe('Name of the waiting Turn, in the same namespace.'),
    requestId: z
      .string()
      .min(1)
      .max(64)
      .describe('status.approval.requestId of that Turn. The decision applies only to this request.'),
    decision: decision.describe('Approve or Deny. The agent gets the decision and continues in both cases.'),
    response: anyJson().optional().describe('Further data for the agent. Any JSON, up to 16 KiB.'),
    note: z.string().max(1024).optional().describe('Reason for the decision, in words. The agent gets it too.'),
    requester: z
      .string()
      .min(1)
      .max(MAX_REQUESTER)
      .optional()
      .describe('User who decided, if known. HTTP API and CLI set it.'),
  })
  .meta(
    rules({
      rule: 'self == oldSelf',
      message: 'an approval cannot be changed; the first one for a request counts',
    }),
  );

export type ApprovalSpec = z.infer<typeof approvalSpec>;
