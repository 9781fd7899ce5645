import { refused } from '../errors.ts';
import type { InputFlags } from '../input/input.ts';
import type { Manifest } from './manifest.ts';
import type { SessionFlags } from './session-spec.ts';

export interface ManifestFlags {
  filename?: string;
}

type Flags = SessionFlags & InputFlags & { name?: string; timeout?: string; attempts?: number; namespace?: string };

/** Flags that describe a session, and the field of its manifest that does so. */
const OF_SESSION: [keyof SessionFlags, flag: string, field: string][] = [
  ['class', '--class', 'spec.class'],
  ['driver', '--driver', 'spec.agent.driver'],
  ['result', '--result', 'spec.agent.result'],
  ['inputAs', '--input-as', 'spec.agent.input'],
  ['env', '--env', 'spec.agent.env'],
  ['envFromSecret', '--env-from-secret', 'spec.agent.env'],
  ['with', '--with', 'spec.agent.files'],
  ['withAll', '--with-all', 'spec.agent.files'],
  ['workdir', '--workdir', 'spec.agent.workingDir'],
  ['environment', '--environment', 'spec.environment'],
  ['requirements', '--requirements', 'spec.environment'],
  ['python', '--python', 'spec.environment'],
  ['image', '--image', 'spec.image'],
  ['parent', '--parent', 'spec.parent'],
  ['label', '--label', 'metadata.labels'],
  ['cpu', '--cpu', 'spec.resources.limits.cpu'],
  ['memory', '--memory', 'spec.resources.limits.memory'],
  ['idle', '--idle', 'spec.timeouts.idle'],
];

const OF_INPUT: [keyof InputFlags, flag: string][] = [
  ['text', '--text'],
  ['textFile', '--text-file'],
  ['input', '--input'],
  ['inputFile', '--input-file'],
];

/** Refuses flags and words for a field that the manifest sets, too; the error names the flag and the field. */
export function refuseConflicts(words: string[], flags: Flags, manifest: Manifest): void {
  const { session, turn } = manifest;
  const both = (flag: string, field: string) =>
    refused(`${flag} and -f are both given; leave ${flag} out and set ${field} in the manifest`);
  if (words.length > 0) throw both('-- PROGRAM', 'spec.agent.command');
  for (const [key, flag, field] of OF_SESSION) if (flags[key] !== undefined) throw both(flag, field);
  const { name } = session ?? turn ?? {};
  if (flags.name !== undefined && name !== undefined && flags.name !== name) {
    throw refused(`the name ${flags.name} and metadata.name ${name} in the manifest differ; leave one of them out`);
  }
  const { namespace } = manifest;
  if (flags.namespace !== undefined && namespace !== undefined && flags.namespace !== namespace) {
    throw refused(
      `--namespace ${flags.namespace} and metadata.namespace ${namespace} in the manifest differ; leave one of them out`,
    );
  }
  if (inputOf(manifest) !== undefined) {
    for (const [key, flag] of OF_INPUT) if (flags[key] !== undefined) throw both(flag, 'spec.input');
  }
  if (turn && flags.timeout !== undefined) throw both('--timeout', 'spec.timeout');
  if (turn && flags.attempts !== undefined) throw both('--attempts', 'spec.retry');
}

/** The input that the manifest gives to the turn; undefined without one. */
export function inputOf({ session, turn }: Manifest): unknown {
  return turn?.spec.input ?? session?.spec.input;
}
