import { resolve } from 'node:path';
import { defined } from '../../core/defined.ts';
import { isDouble, parseExact, rawNumber } from '../../core/json.ts';
import type { KubeObject } from '../../core/kube/types.ts';
import { API_GROUP_VERSION } from '../../core/resources/names.ts';
import type { SessionSpec } from '../../core/resources/session.ts';
import type { TurnSpec } from '../../core/resources/turn.ts';
import type { Cli } from '../cli.ts';
import { CliError, refused } from '../errors.ts';
import { name as checkName } from '../input/flags.ts';
import { checked, collect, decode, openFile } from '../input/input.ts';
import type { GivenMetadata } from './new-objects.ts';
import { DEFAULT_CLASS } from './session-spec.ts';

/** Manifests of `-f FILE`. The API server checks the fields of a spec; this file checks those that the command reads. */

interface Given<Spec> {
  name?: string;
  generateName?: string;
  metadata: GivenMetadata;
  spec: Spec;
}

export interface Manifest {
  namespace?: string;
  session?: Given<SessionSpec>;
  turn?: Given<TurnSpec>;
}

/** Reads a file with a Session, a Turn or one of each, as YAML, JSON or a List; - for stdin. */
export async function readManifest(file: string, cli: Pick<Cli, 'cwd' | 'stdin'>): Promise<Manifest> {
  const what = file === '-' ? 'stdin (-f -)' : `-f ${file}`;
  const source = file === '-' ? cli.stdin : openFile(resolve(cli.cwd, file), what);
  return parseManifest(decode(await collect(source, what), what), what);
}

/** Parses the text of a manifest; `what` names it in errors. */
export async function parseManifest(text: string, what: string): Promise<Manifest> {
  const documents = (await parse(text, what)).flatMap(itemsOf).filter((object) => object !== null);
  if (documents.length === 0) throw refused(`${what} holds no object; write a Session or a Turn into it`);
  const manifest: Manifest = {};
  for (const document of documents) {
    const object = objectOf(document, what);
    const { namespace } = object.metadata;
    if (namespace !== undefined && (manifest.namespace ?? namespace) !== namespace) {
      throw refused(`${what}: its objects are of two namespaces, ${manifest.namespace} and ${namespace}; use one`);
    }
    if (namespace !== undefined) manifest.namespace = namespace;
    if (object.kind === 'Session') {
      if (manifest.session) throw refused(`${what} holds two Sessions; give one at a time, or use kubectl create -f`);
      const spec = object.spec as SessionSpec;
      checked(spec.input, `${what}: spec.input`);
      manifest.session = { ...given(object), spec: { ...spec, class: spec.class ?? DEFAULT_CLASS } };
    } else {
      if (manifest.turn) throw refused(`${what} holds two Turns; give one at a time, or use kubectl create -f`);
      const spec = object.spec as TurnSpec;
      checked(spec.input, `${what}: spec.input`);
      manifest.turn = { ...given(object), spec };
    }
  }
  const { session, turn } = manifest;
  if (turn && !session && typeof turn.spec.session !== 'string') {
    throw refused(`${what}: spec.session of the Turn has to name its session`);
  }
  if (turn && session && turn.spec.session !== session.name) {
    throw refused(`${what}: the Turn is of session ${turn.spec.session}, and the Session is ${session.name}`);
  }
  if (turn?.spec.input !== undefined && session?.spec.input !== undefined) {
    throw refused(`${what}: spec.input of the Session and of the Turn are both set; leave one of them out`);
  }
  return manifest;
}

type Parsed = KubeObject & { spec: object };

function objectOf(document: unknown, what: string): Parsed {
  if (!isRecord(document)) throw refused(`${what} holds something that is no object; write a Session or a Turn`);
  const { apiVersion, kind, metadata = {}, spec } = document;
  const title = `${what}: ${typeof kind === 'string' ? kind : 'an object without a kind'}`;
  if (apiVersion !== API_GROUP_VERSION || (kind !== 'Session' && kind !== 'Turn')) {
    throw refused(
      `${title} of apiVersion ${apiVersion ?? '(none)'} is not created by berth, only Session and Turn of ${API_GROUP_VERSION}; use kubectl create -f`,
    );
  }
  if (!isRecord(spec)) throw refused(`${title} has no spec; write one, for example spec: {class: default}`);
  if (!isRecord(metadata)) throw refused(`${title}: metadata is no object`);
  for (const field of ['name', 'generateName', 'namespace'] as const) {
    const value = metadata[field];
    if (value !== undefined && typeof value !== 'string') throw refused(`${title}: metadata.${field} is no string`);
    if (value !== undefined && field !== 'generateName') refuseName(value, `${title}: metadata.${field}`);
  }
  const other = Object.keys(document).find(
    (key) => !['apiVersion', 'kind', 'metadata', 'spec', 'status'].includes(key),
  );
  if (other !== undefined) throw refused(`${title} has a field "${other}", which no ${kind} has; remove it`);
  return { apiVersion, kind, metadata: metadata as unknown as KubeObject['metadata'], spec };
}

/** Keeps the metadata that people write, without what the API server adds. */
function given({ metadata }: Parsed): Omit<Given<never>, 'spec'> {
  const { name, generateName, labels, annotations } = metadata;
  return {
    ...defined({ name, generateName }),
    metadata: { ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) },
  };
}

function refuseName(text: string, what: string): void {
  try {
    checkName(text);
  } catch (error) {
    throw refused(`${what}: ${(error as Error).message}`);
  }
}

const itemsOf = (document: unknown): unknown[] =>
  isRecord(document) && typeof document.kind === 'string' && document.kind.endsWith('List') && 'items' in document
    ? (document.items as unknown[])
    : [document];

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

async function parse(text: string, what: string): Promise<unknown[]> {
  if (/^\s*\{/.test(text)) {
    try {
      return [parseExact(text)];
    } catch {
      // YAML has flow mappings that begin like JSON; its parser also gives the place of an error.
    }
  }
  const { parseAllDocuments, visit } = await import('yaml');
  try {
    return [...parseAllDocuments(text)].map((document) => {
      const [error] = document.errors;
      if (error) throw refused(`${what} is neither YAML nor JSON: ${error.message.trim()}`);
      visit(document, {
        Scalar(_key, node) {
          const { value, source = '' } = node;
          if (typeof value !== 'number' || !/^-?\d+(\.\d+)?([eE][-+]?\d+)?$/.test(source) || isDouble(source)) return;
          node.value = rawNumber(source.replace(/^(-?)0+(?=\d)/, '$1'));
        },
      });
      return document.toJS() as unknown;
    });
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw refused(`${what} cannot be read as YAML: ${(error as Error).message}`);
  }
}
