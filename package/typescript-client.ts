/**
 * Makes the npm package of the TypeScript client, build/berth-client-VERSION.tgz, from a folder that it stages in build/typescript-client:
 * `node package/typescript-client.ts`. Prints the package's path and size. It has JavaScript with declarations, and needs no other package.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const checkout = join(import.meta.dirname, '..');
const source = join(checkout, 'clients/typescript');
const out = join(checkout, 'build');
const LIMIT_MS = 120_000;

const staged = join(out, 'typescript-client');
await rm(staged, { recursive: true, force: true });
await mkdir(staged, { recursive: true });
const compiler = join(checkout, 'node_modules/typescript/bin/tsc');
await run(process.execPath, [compiler, '-p', source, '--outDir', join(staged, 'dist')], { timeout: LIMIT_MS });
for (const name of ['package.json', 'README.md']) await copyFile(join(source, name), join(staged, name));
await copyFile(join(checkout, 'LICENSE'), join(staged, 'LICENSE'));

const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', out, staged];
const { stdout } = await run('npm', args, { timeout: LIMIT_MS });
const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
const tarball = join(out, filename);
console.log(`${tarball}  ${((await stat(tarball)).size / 1e6).toFixed(1)} MB`);
