import type { FaultRates } from './api/faults.ts';
import type { PodRates } from './cluster/kubelet-options.ts';

/** What a world is about, where it is not left to chance: so that a rare mistake is met sooner. */
export interface Focus {
  /** Names of the deeds that are done, beside creating sessions and giving turns. */
  deeds?: readonly string[];
  /** Names of the misfortunes that happen. */
  misfortunes?: readonly string[];
  /** Milliseconds between two misfortunes, about. */
  misfortuneEveryMs?: number;
  /** Milliseconds between two deeds, about. */
  deedEveryMs?: number;
  rates?: Partial<FaultRates>;
  podRates?: Partial<PodRates>;
  /** What every class says, beside its agent, and every session. */
  sessionClass?: object;
  session?: object;
  /** All sessions have an image that knows nothing of Berth. */
  onlyAnyImage?: boolean;
  /** Agents have files of ConfigMaps. */
  files?: boolean;
  maxRunning?: number;
  storeCeilingBytes?: number;
}
