import type { FaultRates } from './api/faults.ts';
import type { PodRates } from './cluster/kubelet-options.ts';

/** Fixed choices for a world that are otherwise drawn, so that a rare mistake is found sooner. */
export interface Focus {
  /** Names of the deeds that users do, besides creating sessions and giving turns. */
  deeds?: readonly string[];
  /** Names of the misfortunes that happen. */
  misfortunes?: readonly string[];
  /** Approximate milliseconds between two misfortunes. */
  misfortuneEveryMs?: number;
  /** Milliseconds for which misfortunes and faults happen. */
  faultyMs?: number;
  /** Approximate milliseconds between two deeds. */
  deedEveryMs?: number;
  rates?: Partial<FaultRates>;
  podRates?: Partial<PodRates>;
  /** Fields of every class besides its agent; `session` holds those of every session. */
  sessionClass?: object;
  session?: object;
  /** All sessions have an image that knows nothing of Berth. */
  onlyAnyImage?: boolean;
  /** Agents have files of ConfigMaps. */
  files?: boolean;
  /** Users move sessions between concurrency groups. */
  groups?: boolean;
  /** Most sessions are of one namespace and share a concurrency group, whatever their classes. */
  sharing?: boolean;
  /** Agents change their state while they wait for a decision. */
  writing?: boolean;
  /** Users delete sessions and make others under their names at once. */
  remakes?: boolean;
  /** The controllers have rights for each namespace, which they lose and get again. */
  rights?: boolean;
  /** Pods do not pass all texts of their runners on as they are. */
  garbled?: boolean;
  /** Hours pass again and again, so that sweeps find what is old. */
  ages?: boolean;
  /** Users restart sessions, and edit what their pods have. */
  restarts?: boolean;
  /** Sessions have environments. */
  environments?: boolean;
  /** There are SessionPools. */
  pools?: boolean;
  /** People follow sessions. */
  followers?: boolean;
  /** People enter sessions: they run commands and read files inside. */
  visitors?: boolean;
  /** Approximate milliseconds between two changes of SessionPools. */
  poolEveryMs?: number;
  /** Classes require that runners are hardened, and some are not. */
  protections?: boolean;
  /** Releases of other protocol versions are installed. */
  releases?: boolean;
  maxRunning?: number;
  nodeGraceSeconds?: number;
  attachLingerSeconds?: number;
  attachesPerNode?: number;
  storeCeilingBytes?: number;
}
