import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createZstdDecompress } from 'node:zlib';
import { staysInside } from '../../core/links.ts';
import { Extraction } from '../state/extract.ts';
import { replaceDirectory } from '../state/unpack.ts';

/** Limits of an unpacked environment. */
const MAX_PLAIN_BYTES = 512 * 1024 * 1024;
const MAX_ENTRIES = 2 ** 17;
/** Time limit for reading an interpreter's facts, milliseconds. */
const ASK_MS = 30_000;

/** Facts of an interpreter that the packages of an environment depend on; `python` is its whole version. */
interface PythonFacts {
  python: string;
  implementation: string;
  abi: string;
  libc: string;
  arch: string;
}

/** Thrown if the image's interpreter does not match the one that the environment was built for. */
export class EnvironmentMismatchError extends Error {
  readonly code = 'EnvironmentMismatch';
}

const QUESTION = `
import json, platform, sys, sysconfig
libc = "glibc" if platform.libc_ver()[0] == "glibc" else "musl"
print(json.dumps({"python": platform.python_version(), "implementation": sys.implementation.name,
    "abi": sysconfig.get_config_var("SOABI") or "", "libc": libc, "arch": platform.machine(), "executable": sys.executable}))
`;

/** Bin directory of the environment, the first of the agent's PATH. */
export const binOf = (directory: string) => join(directory, 'venv', 'bin');

/**
 * Fills the directory with the environment and links the interpreter of `path` into it. Its files are read-only.
 * Throws an EnvironmentMismatchError, or an Error that names what is wrong with the archive, and leaves the directory as
 * it was.
 */
export async function unpackEnvironment(
  directory: string,
  archive: { packed: Buffer; digest: string },
  path: string,
): Promise<void> {
  const found = await interpreterOf(path);
  const hash = createHash('sha256');
  await replaceDirectory(directory, async (fresh) => {
    const extraction = new Extraction(fresh, {
      what: 'the environment',
      decompress: createZstdDecompress,
      maxBytes: MAX_PLAIN_BYTES,
      maxEntries: MAX_ENTRIES,
      modeOf: (type, mode) => (type === 'directory' || mode & 0o111 ? 0o755 : 0o444),
      allowsLink: staysInside,
      onPlain: (chunk) => hash.update(chunk),
    });
    await extraction.add(archive.packed);
    extraction.finish();
    const digest = hash.digest('hex');
    if (digest !== archive.digest) throw new Error(`the environment's digest is ${digest}, not ${archive.digest}`);
    const built = JSON.parse(readFileSync(join(fresh, 'manifest.json'), 'utf8')) as PythonFacts;
    const problem = mismatch(built, found);
    if (problem) throw new EnvironmentMismatchError(problem);
    linkInterpreter(fresh, found);
  });
  chmodSync(directory, 0o555);
}

/** Returns the difference that keeps packages of one interpreter from working with another; undefined: none. */
function mismatch(built: PythonFacts, found: PythonFacts): string | undefined {
  const minor = ({ python }: PythonFacts) => python.split('.').slice(0, 2).join('.');
  const compared = [
    ['Python', minor(built), minor(found)],
    ['implementation', built.implementation, found.implementation],
    ['ABI', built.abi, found.abi],
    ['libc', built.libc, found.libc],
    ['architecture', built.arch, found.arch],
  ] as const;
  const different = compared.filter(([, a, b]) => a !== b).map(([what, a, b]) => `${what} ${a}, the image has ${b}`);
  return different.length > 0
    ? `the environment was built for ${different.join('; ')}: build one with the class and the image of the session`
    : undefined;
}

/** Links the interpreter as `uv venv` does, so that the environment's packages and programs are found with it. */
function linkInterpreter(fresh: string, { executable, python }: PythonFacts & { executable: string }): void {
  const venv = join(fresh, 'venv');
  const real = realpathSync(executable);
  symlinkSync(real, join(venv, 'bin', 'python'));
  for (const name of ['python3', `python${python.split('.').slice(0, 2).join('.')}`]) {
    symlinkSync('python', join(venv, 'bin', name));
  }
  const home = `home = ${dirname(real)}\nversion_info = ${python}\ninclude-system-site-packages = false\n`;
  writeFileSync(join(venv, 'pyvenv.cfg'), home);
}

/** Reads the facts of the interpreter on PATH. Throws an EnvironmentMismatchError if there is none. */
function interpreterOf(path: string): Promise<PythonFacts & { executable: string }> {
  return new Promise((resolve, reject) => {
    // The program gets nothing of the runner's environment.
    const options = { env: { PATH: path }, timeout: ASK_MS, cwd: '/' };
    execFile('python3', ['-I', '-c', QUESTION], options, (error, stdout, stderr) => {
      if (error) {
        const why =
          'code' in error && error.code === 'ENOENT' ? 'there is no python3 on its PATH' : stderr || error.message;
        reject(new EnvironmentMismatchError(`the image has no Python that can be asked what it is: ${why.trim()}`));
        return;
      }
      try {
        // The answer is the last line: start-up code of the image may print before it.
        resolve(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? ''));
      } catch {
        reject(
          new EnvironmentMismatchError(`the image's python3 does not say what it is, but: ${stdout.slice(0, 200)}`),
        );
      }
    });
  });
}
