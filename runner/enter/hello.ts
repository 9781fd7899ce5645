import { ENTER_PROTOCOL } from '../../core/enter/frames.ts';
import { type EnterCode, type EnterRefusal, type Hello, ROOTS, rootProblem } from '../../core/enter/hello.ts';
import type { Bind } from '../../core/frames/messages.ts';
import type { Access } from '../session/session.ts';

/** Limit of a path below a root, bytes: PATH_MAX of Linux. */
const MAX_PATH_BYTES = 4096;

const WANTS: ReadonlySet<string> = new Set<Hello['want']>([
  'command',
  'commands',
  'signal',
  'list',
  'stat',
  'archive',
  'read',
  'ports',
  'write',
  'fill',
  'delete',
]);

/** Parses a hello; returns the refusal of one that cannot be understood. What a command's start holds is checked by its door. */
export function parseHello(payload: Buffer): Hello | EnterRefusal {
  let hello: Partial<Record<string, unknown>>;
  try {
    hello = JSON.parse(payload.toString('utf8')) as typeof hello;
  } catch {
    return refusal('Invalid', 'the hello is no JSON');
  }
  if (typeof hello !== 'object' || hello === null) return refusal('Invalid', 'the hello is no object');
  if (hello.protocol !== ENTER_PROTOCOL) {
    const message = `the client speaks protocol ${hello.protocol}, this session's runner ${ENTER_PROTOCOL}; use a berth of the same release`;
    return refusal('Unsupported', message, 'protocol');
  }
  if (typeof hello.session !== 'string' || !Number.isSafeInteger(hello.incarnation)) {
    return refusal('Invalid', 'the hello names no session and incarnation', 'session');
  }
  const { want } = hello;
  if (typeof want !== 'string' || !WANTS.has(want)) {
    return refusal('Unsupported', `this session's runner does not know how to "${want}"`, 'want');
  }
  return ('root' in hello || !isWithoutFiles(want) ? fileProblem(hello) : undefined) ?? (hello as unknown as Hello);
}

const isWithoutFiles = (want: string) => ['command', 'commands', 'signal', 'ports'].includes(want);

function fileProblem(hello: Partial<Record<string, unknown>>): EnterRefusal | undefined {
  const { root, path, offset, length } = hello;
  if (!ROOTS.some((known) => known === root)) {
    return refusal('Invalid', `there is no root "${root}"; the roots are ${ROOTS.join(', ')}`, 'root');
  }
  if (typeof path !== 'string' || path.includes('\0')) return refusal('Invalid', 'path is no path', 'path');
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    return refusal('Invalid', `path has more than ${MAX_PATH_BYTES} bytes`, 'path');
  }
  for (const [field, value] of Object.entries({ offset, length })) {
    if (value !== undefined && !(Number.isSafeInteger(value) && (value as number) >= 0)) {
      return refusal('Invalid', `${field} has to be a whole number of at least 0`, field);
    }
  }
  return writes(hello) ? writeProblem(hello) : undefined;
}

const writes = ({ want }: Partial<Record<string, unknown>>) => want === 'write' || want === 'fill' || want === 'delete';

function writeProblem(hello: Partial<Record<string, unknown>>): EnterRefusal | undefined {
  const { want, root, path, mode, modified, sha256, recursive } = hello;
  const problem = rootProblem(String(root));
  if (problem) return problem;
  const names = path === '' ? [] : (path as string).split('/');
  if (names.includes('..'))
    return refusal('OutsideRoot', `path must not have "..": it may lead out of ${root}`, 'path');
  if (names.some((name) => name === '' || name === '.')) {
    return refusal('Invalid', 'path must be names with one "/" between them', 'path');
  }
  if (names.length === 0 && want !== 'fill') return refusal('Invalid', `path has to name something in ${root}`, 'path');
  if (mode !== undefined && !(Number.isSafeInteger(mode) && (mode as number) >= 0 && (mode as number) <= 0o777)) {
    return refusal('Invalid', 'mode has to be permissions from 0 to 0777', 'mode');
  }
  if (modified !== undefined && !(Number.isSafeInteger(modified) && (modified as number) >= 0)) {
    return refusal('Invalid', 'modified has to be a time in milliseconds since 1970', 'modified');
  }
  if (sha256 !== undefined && !(typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256))) {
    return refusal('Invalid', 'sha256 has to be 64 hex digits in lower case', 'sha256');
  }
  if (recursive !== undefined && typeof recursive !== 'boolean') {
    return refusal('Invalid', 'recursive has to be true or false', 'recursive');
  }
  return undefined;
}

/** Returns why a hello that was understood is not accepted by the session that the runner is bound to. */
export function problemOf(hello: Hello, bind: Bind, access: Access): EnterRefusal | undefined {
  const { name, uid } = bind.session;
  if (hello.session !== uid || hello.incarnation !== bind.incarnation) {
    const message = `this pod is that of incarnation ${bind.incarnation} of session ${name}, not the one that was asked for`;
    return refusal('PodReplaced', message);
  }
  if (bind.builds) return refusal('Unsupported', `session ${name} builds an environment; nobody works inside it`);
  switch (access) {
    case 'NotReady':
      return refusal('NotReady', `session ${name} is starting: its state and files are not in place yet`);
    case 'Suspended':
      return refusal('Suspended', `session ${name} is being suspended`);
    case 'Stopping':
      return refusal('Stopping', `the pod of session ${name} is ending`);
    case 'Open':
      return undefined;
  }
}

const refusal = (code: EnterCode, message: string, field?: string): EnterRefusal => ({
  code,
  message,
  ...(field && { field }),
});
