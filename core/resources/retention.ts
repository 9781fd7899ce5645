import * as z from 'zod';
import { DEFAULT_HISTORY, DEFAULT_TTL } from './defaults.ts';
import { duration, quantity } from './schema.ts';

/** Retention times: fields of a Session and, under the same names, defaults of its class. */
export const retention = {
  ttlAfterFinished: duration()
    .optional()
    .describe(
      `Time after the session is finished until it is deleted. Default ${DEFAULT_TTL.finished.One} with turns: One, ${DEFAULT_TTL.finished.Many} with turns: Many.`,
    ),
  ttlAfterSuspended: duration()
    .optional()
    .describe(
      `Time that a session stays suspended without a waiting turn until it is deleted. Default ${DEFAULT_TTL.suspended}.`,
    ),
  history: z
    .strictObject({
      turns: z
        .int32()
        .min(1)
        .optional()
        .describe(`Maximum number of ended Turns to keep. Default ${DEFAULT_HISTORY.turns}.`),
      bytes: quantity()
        .optional()
        .describe(`Maximum bytes of the kept Turns, as JSON. Default ${DEFAULT_HISTORY.bytes}.`),
      stored: quantity()
        .optional()
        .describe(
          `Maximum bytes of the outputs, logs and artifacts that the kept Turns have in the store. Default ${DEFAULT_HISTORY.stored}.`,
        ),
    })
    .optional()
    .describe('Limits on ended Turns. Above a limit the oldest are deleted, with their output, log and artifacts.'),
};
