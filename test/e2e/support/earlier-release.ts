/** The release of an earlier commit, built from a git worktree of it: images and chart. */
import { existsSync } from 'node:fs';
import { readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArchiveResult } from '../../../images/archive.ts';
import { Git } from '../../support/git.ts';
import { tools } from '../../support/tools.ts';
import { checkout, finish, kubectl } from './cluster.ts';
import type { Built } from './release.ts';

/** Tag of its images; those of the checkout keep theirs. */
const TAG = '0.0.0-earlier';
const TREE = join(checkout, 'build/earlier');
/** Everything that images and chart are made of. */
const PRODUCT = ['charts', 'controller', 'core', 'images', 'runner', 'package-lock.json'];

export interface EarlierRelease extends Built {
  commit: string;
  images: ArchiveResult[];
  /** Protocol version of its controller and runner. */
  protocol: number;
}

async function run(file: string, args: readonly string[], cwd = checkout): Promise<string> {
  const { code, stdout, stderr } = await finish(file, args, { cwd });
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} in ${cwd} ended with ${code}\n${stderr}${stdout}`);
  return stdout.trim();
}

const git = new Git(checkout);

/**
 * Resolves to the commit that has landed last: UPGRADE_FROM where it is set; the point at which work that is not landed left
 * origin's main branch; otherwise the newest commit before HEAD, by first parents, whose product is another. A shallow clone
 * fetches its history for it. Rejects where there is none.
 */
async function landedCommit(): Promise<string> {
  const wanted = process.env.UPGRADE_FROM;
  if (wanted) return git.run('rev-parse', '--verify', `${wanted}^{commit}`);
  const base = await git.branchPoint();
  if (base) return base;
  const changed = await git.run('rev-list', '--first-parent', '--max-count=1', 'HEAD', '--', ...PRODUCT);
  const parent = () => (changed ? git.commit(`${changed}^1`) : undefined);
  const before = (await parent()) ?? (await git.run('fetch', '--quiet', '--unshallow').then(parent, () => undefined));
  if (!before) {
    throw new Error(
      'there is no earlier commit to upgrade from: fetch the whole history (git fetch --unshallow), or name a commit by UPGRADE_FROM',
    );
  }
  return before;
}

/** Checks the commit out beside the checkout, with the dependencies of its own lock file. */
async function checkOut(commit: string): Promise<void> {
  await removeEarlierRelease();
  await git.run('worktree', 'add', '--detach', TREE, commit);
  const lock = (folder: string) => readFile(join(folder, 'package-lock.json'), 'utf8');
  if ((await lock(TREE)) === (await lock(checkout)))
    await symlink(join(checkout, 'node_modules'), join(TREE, 'node_modules'));
  else await run('npm', ['ci', '--no-audit', '--no-fund'], TREE);
}

/** Builds controller and runner of the commit that has landed last. */
export async function buildEarlierRelease(): Promise<EarlierRelease> {
  const commit = await landedCommit();
  await checkOut(commit);
  // The version is the tag of the images that are built.
  const manifest = JSON.parse(await readFile(join(TREE, 'package.json'), 'utf8'));
  await writeFile(join(TREE, 'package.json'), JSON.stringify({ ...manifest, version: TAG }));
  await run('make', ['--no-print-directory', 'keeper'], TREE);
  await run('node_modules/node/bin/node', ['images/build.ts', 'runner', 'controller'], TREE);
  const images: ArchiveResult[] = JSON.parse(await readFile(join(TREE, 'build/images.json'), 'utf8'));
  const messages = await readFile(join(TREE, 'core/frames/messages.ts'), 'utf8');
  const [, protocol] = /PROTOCOL_VERSION = (\d+)/.exec(messages) ?? [];
  if (!protocol) throw new Error(`core/frames/messages.ts of ${commit} has no PROTOCOL_VERSION`);
  return {
    commit,
    chart: join(TREE, 'charts/berth'),
    crds: existsSync(join(TREE, 'charts/berth-crds')) ? join(TREE, 'charts/berth-crds') : undefined,
    images,
    protocol: Number(protocol),
  };
}

/** Message of Helm where the earlier release is not for the version of the cluster; undefined where it is. */
export async function notForCluster({ chart }: EarlierRelease): Promise<string | undefined> {
  const { serverVersion } = JSON.parse(await kubectl(['version', '-o', 'json']));
  const { helm } = await tools();
  const { code, stderr } = await finish(helm, [
    'template',
    chart,
    '--set',
    'image.registry=none,image.tag=none',
    '--kube-version',
    serverVersion.gitVersion,
  ]);
  if (code === 0) return undefined;
  if (!stderr.includes('chart requires kubeVersion'))
    throw new Error(`the chart of the earlier release cannot be rendered\n${stderr}`);
  return stderr.trim().split('\n', 1)[0];
}

/** Removes the worktree, also one that a killed run has left. */
export async function removeEarlierRelease(): Promise<void> {
  await rm(TREE, { recursive: true, force: true });
  await git.run('worktree', 'prune');
}
