import * as z from 'zod';
import { LOG_FORMATS } from '../core/program/log.ts';
import { parseDuration } from '../core/resources/duration.ts';
import { MAX_ARTIFACT_BYTES } from '../core/resources/limits.ts';
import { parseQuantity } from '../core/resources/quantity.ts';
import { duration, quantity } from '../core/resources/schema.ts';

const list = (fallback: string) =>
  z
    .string()
    .default(fallback)
    .transform((text) =>
      text
        .split(',')
        .map((part) => part.trim())
        .filter(Boolean),
    );
const count = (fallback: number) => z.coerce.number().int().min(1).default(fallback);

/** Environment variables of the API. All other settings are in the cluster. */
export const apiConfig = z
  .object({
    /** Address to listen on; all when empty. */
    BERTH_API_HOST: z.string().optional(),
    /** Port to listen on; 0 takes any, which is logged. */
    BERTH_API_PORT: z.coerce.number().int().min(0).max(65535).default(8080),
    /** Files with the certificate chain and its private key, PEM; both or none. With them the port speaks HTTPS only. */
    BERTH_API_TLS_CERT_FILE: z.string().optional(),
    BERTH_API_TLS_KEY_FILE: z.string().optional(),
    /** Audiences that a bearer token may be issued for, separated by commas. */
    BERTH_AUDIENCES: list('berth').refine((audiences) => audiences.length > 0, 'must name an audience'),
    /** Namespaces to serve, separated by commas; all when empty. Rights are needed in these only. */
    BERTH_NAMESPACES: list(''),
    /** Maximum concurrent requests, those that wait or stream included; further ones are answered 503. */
    BERTH_API_MAX_REQUESTS: count(512),
    /** Maximum concurrent requests that wait for a turn, one watch each; further ones are answered 503. */
    BERTH_API_MAX_WAITS: count(256),
    /**
     * Maximum concurrent requests that read a session's log or events, and maximum logs that are read for those that
     * read events; further requests are answered 503.
     */
    BERTH_API_MAX_STREAMS: count(128),
    /**
     * Maximum concurrent requests for the output or log of a turn or for an artifact; further ones are answered 503.
     */
    BERTH_API_MAX_CONTENTS: count(64),
    /**
     * Maximum concurrent requests with a connection into a session's pod: for commands, for files, and for ports; further ones are
     * answered 503.
     */
    BERTH_API_MAX_COMMANDS: count(128),
    BERTH_API_MAX_TRANSFERS: count(64),
    BERTH_API_MAX_PORTS: count(256),
    /**
     * Maximum bytes in memory for the bodies of requests, for outputs, logs and artifacts until the client has taken them,
     * and for lists; further requests are answered 503. The program takes about twice as much beside what it needs for
     * itself, so the pod's limit of memory must leave room for that.
     */
    BERTH_API_MAX_BYTES: quantity()
      .default('96Mi')
      .transform(parseQuantity)
      .refine((bytes) => bytes >= MAX_ARTIFACT_BYTES, 'must be at least 16Mi, which one artifact may have'),
    /** Percentage of each of these maximums that one caller may take; further requests of it are answered 429. */
    BERTH_API_CALLER_SHARE: count(25).refine((percent) => percent <= 100, 'must be at most 100'),
    /** Requests per second of one caller; further ones are answered 429. */
    BERTH_API_CALLER_RATE: count(100),
    /** Requests that one caller may send at once after a pause. */
    BERTH_API_CALLER_BURST: count(100),
    /** Time after which a client that takes nothing of its answer, or sends nothing of its body, is disconnected. */
    BERTH_API_STALL_TIMEOUT: duration()
      .default('30s')
      .transform(parseDuration)
      .refine((ms) => ms >= 1_000, 'must be at least 1s'),
    /**
     * Time after a signal to stop in which the API still serves, for whoever sends it requests to hear that it is not ready. Without it
     * the API stops at once.
     */
    BERTH_API_SHUTDOWN_DELAY: duration().default('0s').transform(parseDuration),
    BERTH_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
    /** Lines of the log: JSON for collectors, or text for people. */
    BERTH_LOG_FORMAT: z.enum(LOG_FORMATS).default('json'),
  })
  .superRefine(({ BERTH_API_TLS_CERT_FILE: cert, BERTH_API_TLS_KEY_FILE: key }, { addIssue }) => {
    if ((cert === undefined) === (key === undefined)) return;
    const [given, missing] = key === undefined ? ['CERT', 'KEY'] : ['KEY', 'CERT'];
    addIssue({
      code: 'custom',
      path: [`BERTH_API_TLS_${missing}_FILE`],
      message: `must be set beside BERTH_API_TLS_${given}_FILE`,
    });
  });
export type ApiConfig = z.infer<typeof apiConfig>;
