import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Bind, Bound, Limits } from '../../core/frames/messages.ts';
import type { Clock, Random } from '../../core/runtime.ts';
import { type Hidden, hiddenBy } from '../../core/text/hidden.ts';
import { Pattern } from '../../core/text/pattern.ts';
import type { OutputDirectory } from '../artifacts/artifacts.ts';
import { outputDirectory } from '../artifacts/directory.ts';
import { Commands } from '../commands/commands.ts';
import { launcher } from '../commands/launch.ts';
import type { Flow } from '../drivers/drain.ts';
import type { Driver } from '../drivers/driver.ts';
import { makeDriver } from '../drivers/make.ts';
import { binOf, unpackEnvironment } from '../environment/environment.ts';
import { Meter } from '../limits/meter.ts';
import type { PodMemory } from '../limits/pod-memory.ts';
import type { Containment, StartProcess } from '../process/contained.ts';
import { NO_STATE, type StateDirectory } from '../state/archive.ts';
import { packDirectory } from '../state/pack.ts';
import { unpackDirectory } from '../state/unpack.ts';
import { commandSocketPath, type Directories, located, workDirectory } from '../system/directories.ts';
import { isClosed } from '../system/hardening.ts';
import { unpackAgentFiles } from './agent-files.ts';
import { secretsOf } from './secrets.ts';

/** Parts that serve a session once it is known. */
export interface SessionParts {
  driver: Driver;
  commands: Commands;
  /** Meter of the processes of driver and commands. */
  meter: Meter;
  state: StateDirectory;
  /** Directory of the artifacts, if the controller takes any. */
  output?: OutputDirectory;
  /** Fills the directory of the agent's files; throws an Error that names what was wrong. */
  unpackFiles: (archives: readonly Buffer[]) => Promise<void>;
  /** Fills the directory of the Python environment; throws an Error that names what was wrong. */
  unpackEnvironment: (archive: { packed: Buffer; digest: string }) => Promise<void>;
  /** Texts and patterns to hide. */
  secrets: Hidden;
  shortSecrets?: Bound['shortSecrets'];
  containment: Bound['containment'];
  hardened: boolean;
}

/** Parts of a runner that do not depend on its session. */
export interface Surroundings {
  /** Environment of the runner's process. */
  environment: Readonly<Record<string, string | undefined>>;
  directories: Directories;
  /** Folders at the end of the agent's PATH. */
  tools: readonly string[];
  containment: Containment;
  startProcess: (limits: Limits) => StartProcess;
  /** Memory of the pod; absent where it has no limit. */
  memory: PodMemory | undefined;
  /** Backpressure on the agent's output. */
  flow: Flow;
  isProtected: boolean;
  clock: Clock;
  random: Random;
}

/**
 * Returns the parts that serve the session of a bind; no process is started before `free` has resolved. Throws an Error
 * that names what was wrong.
 */
export function partsFor(bind: Bind, surroundings: Surroundings, free: Promise<void>): SessionParts {
  const { environment, directories, memory, clock, random, containment } = surroundings;
  const { secrets, parts, short } = secretsOf(bind.agent, environment, (path) =>
    readFileSync(join(directories.secrets, path)),
  );
  const { session, incarnation, persistence, artifacts } = bind;
  const isKept = persistence?.state !== false;
  const mountPath = bind.workspace?.mountPath;
  const locate = (path: string) => located(path, mountPath, environment.BERTH_LOCAL_ROOT);
  const { workingDir } = bind.agent;
  const agent = workingDir ? { ...bind.agent, workingDir: locate(workingDir) } : bind.agent;
  const patterns = (bind.redact ?? []).map((source) => new Pattern(source));
  const hidden = hiddenBy({ values: secrets.values(), parts, patterns, heuristics: bind.heuristics });
  const hasFiles = bind.files !== undefined;
  const facts = {
    name: session.name,
    uid: session.uid,
    incarnation,
    agent,
    secrets,
    hidden,
    takesArtifacts: artifacts !== undefined,
    hasFiles,
    hasEnvironment: bind.environment !== undefined,
  };
  const work = workDirectory(bind, directories, environment.BERTH_LOCAL_ROOT);
  const own = { ...directories, work };
  const imagePath = environment.PATH ?? '/usr/local/bin:/usr/bin:/bin';
  const bins = bind.environment ? [binOf(directories.environment)] : [];
  const path = [...bins, imagePath, ...surroundings.tools].join(':');
  const { limits = { required: false } } = bind;
  const reads = isKept || artifacts !== undefined;
  const meter = new Meter({ limits, memory, together: agent.driver !== 'Tools', holds: reads, clock });
  const startAs = (kind: 'turn' | 'command'): StartProcess => {
    const startNow = meter.wrap(surroundings.startProcess(limits), kind);
    return async (spec) => {
      await free;
      return startNow(spec);
    };
  };
  const shared = { facts, directories: own, path, clock };
  const launch = launcher({ ...shared, locate, socket: commandSocketPath(directories), start: startAs('command') });
  return {
    driver: makeDriver({ ...shared, start: startAs('turn'), flow: surroundings.flow }),
    commands: new Commands({ launch, directory: directories.run, clock, random }),
    meter,
    state: {
      pack: async (maxBytes = persistence?.maxStateBytes) =>
        !isKept ? NO_STATE : packDirectory(directories.state, maxBytes, persistence?.maxPackedBytes),
      unpack: (packed, digest) => unpackDirectory(directories.state, packed, digest),
    },
    ...(artifacts && { output: outputDirectory(directories.output, artifacts, hidden.outputs) }),
    unpackEnvironment: (archive) => unpackEnvironment(directories.environment, archive, imagePath),
    unpackFiles: (archives) => unpackAgentFiles(directories.agent, archives),
    secrets: hidden,
    ...(short && { shortSecrets: short }),
    containment,
    hardened: surroundings.isProtected && isClosed(),
  };
}
