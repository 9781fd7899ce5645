import * as z from 'zod';
import { duration, quantity } from './schema.ts';

/** Retention times: fields of a Session and, under the same names, defaults of its class. */
export const retention = {
  ttlAfterFinished: duration()
    .optional()
    .describe(
      'Time after the session is finished until it is deleted. Default 24h with turns: One, 168h with turns: Many.',
    ),
  ttlAfterSuspended: duration()
    .optional()
    .describe('Time that a session stays suspended without a waiting turn until it is deleted. Default 720h.'),
  history: z
    .strictObject({
      turns: z.int32().min(1).optional().describe('Maximum number of ended Turns to keep. Default 100.'),
      bytes: quantity().optional().describe('Maximum bytes of the kept Turns, as JSON. Default 1Mi.'),
      stored: quantity()
        .optional()
        .describe(
          'Maximum bytes of the outputs, logs and artifacts that the kept Turns have in the store. Default 16Mi.',
        ),
    })
    .optional()
    .describe('Limits on ended Turns. Above a limit the oldest are deleted, with their output, log and artifacts.'),
};
