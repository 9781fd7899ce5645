import * as z from 'zod';
import { duration, quantity } from './schema.ts';

/** Retention times: fields of a Session and, under the same names, defaults of its class. */
export const retention = {
  ttlAfterFinished: duration()
    .optional()
    .describe('How long after it is finished the Session is deleted. Default 24h with turns: One, 168h with Many.'),
  ttlAfterSuspended: duration()
    .optional()
    .describe('How long a Session may be suspended, with no turn waiting, before it is deleted. Default 720h.'),
  history: z
    .strictObject({
      turns: z.int32().min(1).optional().describe('Ended Turns that are kept. Default 100.'),
      bytes: quantity().optional().describe('Bytes of JSON that the kept ones have together. Default 1Mi.'),
    })
    .optional()
    .describe('Beyond it ended Turns are deleted, the oldest first, with their output and log.'),
};
