/**
 * Starts the command line of the package. Its bundle is compiled as Node compiles a CommonJS module, with the code cache
 * that the package brings: `node:module`'s own cache leaves out functions that run later than their module, which is most
 * of them. V8 refuses a cache that another version or other flags made; then the start is slower and nothing else.
 */
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { Script } = require('node:vm');

function load() {
  const filename = join(__dirname, 'cli.cjs');
  // The bundle is ASCII, so one byte is one character.
  const source = `(function (exports, require, module, __filename, __dirname) {${readFileSync(filename, 'latin1')}\n})`;
  // A cache contains the name, so it is not a path of the machine that packs.
  const script = new Script(source, { filename: 'cli.cjs', cachedData: cached() });
  const module = { exports: {} };
  script.runInThisContext()(module.exports, require, module, filename, __dirname);
  return { script, main: module.exports.main };
}

function cached() {
  try {
    return readFileSync(join(__dirname, 'cli.cache'));
  } catch {
    return undefined;
  }
}

module.exports = { load };

if (require.main === module) {
  const { main } = load();
  main(process.argv.slice(2)).then((code) => {
    process.exitCode = code;
  });
}
