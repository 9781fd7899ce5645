import * as z from 'zod';
import { anyJson, dnsSubdomain, rules } from './schema.ts';

export const decision = z.enum(['Approve', 'Deny']);

export const approvalSpec = z
  .strictObject({
    turn: dnsSubdomain().describe('Name of the Turn in the same namespace that waits.'),
    requestId: z
      .string()
      .min(1)
      .max(64)
      .describe('status.approval.id of that Turn: the decision counts for this request alone.'),
    decision: decision.describe('Approve or Deny. Either way the agent is told and goes on.'),
    response: anyJson().optional().describe('What the agent is told besides. Any JSON, up to 16 KiB.'),
    note: z.string().max(1024).optional().describe('Why, in words; the agent is told it too.'),
    requester: z.string().min(1).max(512).optional().describe('Who decided; the HTTP API sets this.'),
  })
  .meta(
    rules({
      rule: 'self == oldSelf',
      message: 'an approval cannot be changed; the first one for a request counts',
    }),
  );

export type ApprovalSpec = z.infer<typeof approvalSpec>;
