import type { DecoderCounters } from '../../core/frames/decode.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';
import type { Allowances } from './allowance.ts';
import type { AttachLimit, Priority } from './attach-limit.ts';
import type { HeldBytes } from './held-bytes.ts';
import type { MasterKeys } from './keys.ts';
import type { LogReader } from './log-reader.ts';
import type { PodCounters } from './pod-counters.ts';
import type { Silences } from './silences.ts';

/** Data that a runner gets when it is bound. */
export interface Contents {
  state?: { digest: string; keyId: string; sealed: Buffer } | undefined;
  /** Archives of the agent's files. */
  files?: readonly Buffer[];
  environment?: { digest: string; sealed: Buffer } | undefined;
}

export interface LinkOptions {
  api: Pick<KubeApi, 'attach'>;
  clock: Clock;
  random: Random;
  log: Logger;
  pod: { namespace: string; name: string; uid: string };
  /** UID of the session that the pod belongs to, empty for a pod that no session has claimed, and its incarnation. */
  session: string;
  incarnation: number;
  keys: MasterKeys;
  /** Epoch of the present leadership. */
  epoch(): number;
  /** Returns a number that grows with every call, over all links of the process. */
  nextNumber(): number;
  onChange(): void;
  /** Last answer of any runner: `at` in monotonic milliseconds, shared by all links. */
  answers: { at: number };
  /** Runners that owe an answer, shared by all links. */
  silences: Silences;
  /** Handler of a runner that has obeyed a later leader than this one. */
  onLaterEpoch(epoch: number): void;
  /** Time without a control line after which the attach of an idle runner is closed until the next one, milliseconds. */
  lingerMs: number;
  /** Limit of the attaches that are being opened, shared by all links. */
  limit: AttachLimit;
  /** Reports when the pod is attached among others of its node. */
  priority(): Priority;
  /** Counters of refused frames, over all pods. */
  refused?: DecoderCounters | undefined;
  /** Reader of the logs of ended containers, shared by all links. */
  logs: LogReader;
  /** Limit of what is kept of the messages of pods, shared by all links. */
  held: HeldBytes;
  /** Shared by all links: the work that pods may cause. */
  allowances: Allowances;
  /** Handler of a pod that prints more than is read, called once for each episode. */
  onThrottled?: (() => void) | undefined;
  /** Counters of what pods were kept from, over all pods. */
  counters?: PodCounters | undefined;
}
