/** Bundles a program into one file, with the licences of everything inside. */
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { build, type Plugin } from 'esbuild';

/**
 * Bundles `entry` (relative to `checkout`) into `outfile`, a CommonJS module if it ends in .cjs, else an ES module;
 * resolves with the npm packages inside, sorted. A module that a CommonJS bundle imports by `import()` becomes a file
 * of its own beside it, so that the start need not load it.
 */
export async function bundle(checkout: string, entry: string, outfile: string): Promise<string[]> {
  const commonjs = outfile.endsWith('.cjs');
  const apart = new Map<string, string>();
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
    plugins: commonjs ? [setApart(checkout, apart)] : [],
    logLevel: 'warning',
  });
  const packages = new Set<string>();
  for (const input of Object.keys(result.metafile.inputs)) {
    const [, name] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input) ?? [];
    if (name !== undefined) packages.add(name);
  }
  for (const [source, file] of apart) {
    for (const name of await bundle(checkout, source, join(dirname(outfile), file))) packages.add(name);
  }
  return [...packages].sort();
}

/** Leaves modules of the checkout that are imported by `import()` out of the bundle and records the file of each. */
function setApart(checkout: string, apart: Map<string, string>): Plugin {
  return {
    name: 'set-apart',
    setup: ({ onResolve }) => {
      onResolve({ filter: /^\.\.?\// }, ({ kind, path, resolveDir }) => {
        if (kind !== 'dynamic-import') return undefined;
        const source = relative(checkout, join(resolveDir, path));
        const file = source.replaceAll('/', '-').replace(/\.ts$/, '.cjs');
        apart.set(source, file);
        return { path: `./${file}`, external: true };
      });
    },
  };
}

/** Returns the licence texts of `packages`, one after the other. Rejects when a package names no licence at all. */
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
