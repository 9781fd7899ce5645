/** One program as one file, and the licences of everything that went into it. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';

/**
 * Bundles `entry` (relative to `checkout`) into `outfile`, a CommonJS module if it ends in .cjs, else an ES module; resolves
 * to the npm packages inside, sorted.
 */
export async function bundle(checkout: string, entry: string, outfile: string): Promise<string[]> {
  const commonjs = outfile.endsWith('.cjs');
  const result = await build({
    absWorkingDir: checkout,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: commonjs ? 'cjs' : 'esm',
    minifySyntax: true,
    minifyWhitespace: true,
    // Several dependencies are CommonJS and call require for Node's own modules.
    banner: commonjs
      ? {}
      : { js: "import{createRequire as berthRequire}from'node:module';const require=berthRequire(import.meta.url);" },
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  const packages = new Set<string>();
  for (const input of Object.keys(result.metafile.inputs)) {
    const [, name] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input) ?? [];
    if (name !== undefined) packages.add(name);
  }
  return [...packages].sort();
}

/** The licence texts of `packages`, one after the other. Rejects when a package names no licence at all. */
export async function licences(checkout: string, packages: readonly string[]): Promise<string> {
  const texts: string[] = [];
  for (const name of packages) {
    const folder = join(checkout, 'node_modules', name);
    const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    if (typeof license !== 'string') throw new Error(`${name} ${version} names no licence in its package.json`);
    const file = (await readdir(folder)).sort().find((candidate) => /^(licen[cs]e|copying)/i.test(candidate));
    const text = file === undefined ? '' : await readFile(join(folder, file), 'utf8');
    texts.push(`${'='.repeat(80)}\n${name} ${version}: ${license}\n\n${text.trim()}\n`);
  }
  return texts.join('\n');
}
