import * as z from 'zod';
import { LOG_FORMATS } from '../core/program/log.ts';
import { formatDuration, parseDuration } from '../core/resources/duration.ts';
import { DEFAULT_STORE_CEILING_BYTES } from '../core/resources/limits.ts';
import { BUILDER_DIRECTORY } from '../core/resources/names.ts';
import { duration } from '../core/resources/schema.ts';
import type { Installation } from './observed/world.ts';

/** A duration of at least `least` milliseconds. */
const milliseconds = (fallback: string, least = 0) =>
  duration()
    .default(fallback)
    .transform(parseDuration)
    .refine((ms) => ms >= least, `must be at least ${formatDuration(least)}`);

/** The controller's environment. Everything else is in the cluster. */
export const controllerConfig = z.object({
  /** The image that contains the runner, for classes that name none. */
  BERTH_RUNNER_IMAGE: z.string().min(1),
  /** The runner image with Python, for classes with `runnerImage: Python`. */
  BERTH_PYTHON_RUNNER_IMAGE: z.string().min(1).optional(),
  /** uv, and the program that builds environments with it, in the pod of a build. */
  BERTH_UV: z.string().min(1).default(`${BUILDER_DIRECTORY}/uv`),
  BERTH_BUILDER: z.string().min(1).default(`${BUILDER_DIRECTORY}/build.py`),
  /**
   * True where pods are processes of the machine, as on the embedded cluster: Injected then runs the runner image
   * itself.
   */
  BERTH_IMAGES_ARE_PROGRAMS: z.stringbool().default(false),
  /** Namespaces to work in, separated by commas; all when empty. Needs rights in just these. */
  BERTH_NAMESPACES: z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((name) => name.trim())
        .filter(Boolean),
    ),
  /** The controller's own namespace: its lease and master key are there. Default: that of its service account. */
  BERTH_NAMESPACE: z.string().min(1).optional(),
  /** UID of the controller's pod. A container that is restarted there takes the lease of its former process at once. */
  BERTH_POD_UID: z.string().min(1).optional(),
  /** Maximum sessions with a pod at once, over everything; no limit when empty. */
  BERTH_MAX_RUNNING: z.coerce.number().int().min(0).optional(),
  /** Maximum bytes of all Blobs together. */
  BERTH_STORE_CEILING_BYTES: z.coerce.number().int().min(1).default(DEFAULT_STORE_CEILING_BYTES),
  /** A namespace may store more while it holds no more than this times what is free; with 1 one alone gets half. */
  BERTH_STORE_SHARE_FACTOR: z.coerce.number().positive().default(1),
  /** Maximum bytes of single namespaces in the store, separated by commas: `team-a=50000000,team-b=1000000`. */
  BERTH_STORE_QUOTAS: z
    .string()
    .regex(/^([^=,]+=[1-9][0-9]{0,14}(,|$))*$/, 'must be namespaces with their bytes, for example team-a=50000000')
    .default('')
    .transform(
      (text) =>
        new Map(Array.from(text.matchAll(/([^=,]+)=([0-9]+)/g), ([, name = '', bytes]) => [name, Number(bytes)])),
    ),
  /** The Secret of the master keys; made when there is none. */
  BERTH_MASTER_KEY_SECRET: z.string().min(1).default('berth-master-key'),
  /** The Lease of leader election. */
  BERTH_LEASE_NAME: z.string().min(1).default('berth-controller'),
  /** Duration of the lease: a leader that was killed is replaced after this time. */
  BERTH_LEASE_DURATION: milliseconds('15s', 1000),
  /** Time after the last message to an idle runner after which its attach is closed until the next one. */
  BERTH_ATTACH_LINGER: milliseconds('1m'),
  /** Pace of garbage collection: minimum time between two sweeps of the history and the store of one session. */
  BERTH_GARBAGE_INTERVAL: milliseconds('1m', 1),
  /**
   * Time after which a node that does not answer is given up with its pods, as is a bound pod that cannot be attached.
   */
  BERTH_NODE_GRACE: milliseconds('60s', 1000),
  /** Watches nodes, so that sessions leave a cordoned or dead one; needs that right. Never with listed namespaces. */
  BERTH_WATCH_NODES: z.stringbool().default(true),
  /** Reads ConfigMaps with the label of agent files, for `agent.files`; needs that right. */
  BERTH_AGENT_FILES: z.stringbool().default(true),
  /** Keeps pods of SessionPools ready; needs the right to read SessionPools and to write their status. */
  BERTH_SESSION_POOLS: z.stringbool().default(true),
  /** Maximum concurrent reconciles. */
  BERTH_WORKERS: z.coerce.number().int().min(1).max(256).default(32),
  /** Port of /healthz, /readyz and /metrics; 0 takes any, which is logged. */
  BERTH_HEALTH_PORT: z.coerce.number().int().min(0).max(65535).default(8081),
  /** Address of the health port; all addresses when empty. */
  BERTH_HEALTH_HOST: z.string().optional(),
  BERTH_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  /** Lines of the log: JSON for collectors, or text for people. */
  BERTH_LOG_FORMAT: z.enum(LOG_FORMATS).default('json'),
});
export type ControllerConfig = z.infer<typeof controllerConfig>;

/** The namespaces to work in; without the field: all. */
export function servedNamespaces({ BERTH_NAMESPACES: namespaces }: ControllerConfig): {
  namespaces?: readonly string[];
} {
  return namespaces.length > 0 ? { namespaces } : {};
}

/** `protocol`: version that the controller speaks. */
export function installationOf(config: ControllerConfig, protocol: number): Installation {
  return {
    protocol,
    runnerImage: config.BERTH_RUNNER_IMAGE,
    pythonRunnerImage: config.BERTH_PYTHON_RUNNER_IMAGE,
    builder: { uv: config.BERTH_UV, script: config.BERTH_BUILDER },
    imagesArePrograms: config.BERTH_IMAGES_ARE_PROGRAMS,
    nodeGraceMs: config.BERTH_NODE_GRACE,
  };
}
