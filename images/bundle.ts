/** Bundles programs, with the licences of everything inside. */
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { type BuildOptions, build, type Metafile, type Plugin } from 'esbuild';

const COMMON = {
  bundle: true,
  platform: 'node',
  target: 'node24',
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
} as const satisfies BuildOptions;

/** Several dependencies are CommonJS and call require for Node's own modules, which an ES module does not have. */
const REQUIRE = "import{createRequire as berthRequire}from'node:module';const require=berthRequire(import.meta.url);";

/** The names by which a CommonJS module has the fields of `import.meta`. */
const OF_COMMONJS = { 'import.meta.filename': '__filename', 'import.meta.dirname': '__dirname' };

/**
 * Bundles programs into ES modules in `outdir`, by the names of `entries`, which are paths relative to `checkout`.
 * Modules that several of them use, or that are imported by `import()`, become files of their own beside them. Resolves with the npm packages
 * inside, sorted.
 */
export async function bundleTogether(
  checkout: string,
  entries: Readonly<Record<string, string>>,
  outdir: string,
): Promise<string[]> {
  const { metafile } = await build({
    ...COMMON,
    absWorkingDir: checkout,
    entryPoints: { ...entries },
    outdir,
    format: 'esm',
    splitting: true,
    banner: { js: REQUIRE },
  });
  return packagesIn(metafile).sort();
}

/** Names of the npm packages that a bundle has something of. */
function packagesIn({ inputs }: Metafile): string[] {
  const names = Object.keys(inputs).map((input) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]);
  return [...new Set(names.filter((name) => name !== undefined))];
}

/** The place of the modules that a program with a bundle in one file imports by `import()`. */
type Imported =
  /** They are in the file, and run when they are imported. */
  | 'inside'
  /** Each becomes a file of its own beside the bundle, so that the start need not read it. */
  | 'apart';

/**
 * Bundles `entry` (relative to `checkout`) into `outfile`, a CommonJS module if it ends in .cjs, else an ES module;
 * resolves with the npm packages inside, sorted. `imported` is for CommonJS; in an ES module everything is inside.
 */
export async function bundle(
  checkout: string,
  entry: string,
  outfile: string,
  imported: Imported = 'apart',
): Promise<string[]> {
  const commonjs = outfile.endsWith('.cjs');
  const apart = new Map<string, string>();
  const { metafile } = await build({
    ...COMMON,
    absWorkingDir: checkout,
    entryPoints: [entry],
    outfile,
    ...(commonjs
      ? {
          format: 'cjs',
          define: OF_COMMONJS,
          plugins: [imported === 'apart' ? setApart(checkout, apart) : withoutHttp2],
        }
      : { format: 'esm', banner: { js: REQUIRE } }),
  });
  const packages = new Set(packagesIn(metafile));
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

/**
 * Takes HTTP/2 away from undici, which loads it at its start if it is there. Berth's connections are HTTP/1.1, and Node takes
 * 10 ms to load the module.
 */
const withoutHttp2: Plugin = {
  name: 'without-http2',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^node:http2$/ }, ({ path }) => ({ path, namespace: 'absent' }));
    onLoad({ filter: /.*/, namespace: 'absent' }, ({ path }) => ({
      contents: `throw new Error('${path} is not part of this bundle');`,
    }));
  },
};

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
