import type { AgentSpec, Limits } from '../../core/frames/messages.ts';
import { requestAboveLimit } from '../../core/resources/allowed-amounts.ts';
import { MAX_ARTIFACT_BYTES } from '../../core/resources/limits.ts';
import { parseQuantity } from '../../core/resources/quantity.ts';
import type { ProcessLimits } from '../../core/resources/sandbox.ts';
import type { SessionClassSpec } from '../../core/resources/sessionclass.ts';
import { patternProblem } from '../../core/text/pattern.ts';
import type { Problem } from '../observed/world.ts';

type Numbers = Omit<Limits, 'required'>;

const PRESETS: Record<NonNullable<ProcessLimits['preset']>, Numbers> = {
  Strict: {
    memoryBytes: 2 ** 30,
    cpuSeconds: 300,
    fileSizeBytes: 100e6,
    processes: 10,
    openFiles: 1024,
    coreBytes: 0,
  },
  Agent: { processes: 1024, coreBytes: 0 },
};

/** Limits of a session's processes: the class's own numbers over those of its preset. */
export function limitsOf(driver: AgentSpec['driver'], { preset, limits = {} }: ProcessLimits = {}): Limits {
  const chosen = preset ?? (driver === 'Tools' ? 'Strict' : 'Agent');
  const bytes = (amount: string | undefined) => (amount === undefined ? undefined : Math.floor(parseQuantity(amount)));
  const { memory, cpuSeconds, fileSize, processes, openFiles, core } = limits;
  const own: { [name in keyof Numbers]: Numbers[name] | undefined } = {
    memoryBytes: bytes(memory),
    cpuSeconds,
    fileSizeBytes: bytes(fileSize),
    processes,
    openFiles,
    coreBytes: bytes(core),
  };
  const set = Object.entries(own).filter(([, value]) => value !== undefined);
  // The defaults of Agent may go unenforced where there is no keeper, as on a laptop; limits that an administrator
  // chose may not.
  const required = chosen === 'Strict' || set.length > 0;
  return { ...PRESETS[chosen], ...Object.fromEntries(set), required };
}

/** Minimum memory for any program to start. */
const MIN_MEMORY = 2 ** 20;

/** A problem in the class that its schema cannot express. */
export function classProblem({ resources, sandbox, artifacts, redact = [] }: SessionClassSpec): Problem | undefined {
  const above = requestAboveLimit(resources);
  if (above) return invalid(`${above.field}: ${above.message}`);
  const { memory } = sandbox?.limits ?? {};
  if (memory !== undefined && parseQuantity(memory) < MIN_MEMORY) {
    return invalid(`spec.sandbox.limits.memory: ${memory} is less than the 1Mi that a program needs to start`);
  }
  const { maxBytes } = artifacts ?? {};
  if (maxBytes !== undefined && parseQuantity(maxBytes) > MAX_ARTIFACT_BYTES) {
    return invalid(`spec.artifacts.maxBytes: ${maxBytes} is more than the 16Mi that Berth can store`);
  }
  for (const [i, source] of redact.entries()) {
    const problem = patternProblem(source);
    if (problem) return invalid(`spec.redact[${i}]: ${problem}`);
  }
  return undefined;
}

function invalid(message: string): Problem {
  return { reason: 'ClassInvalid', message };
}
