/** State of a process that its test files share where they run without isolation, by name. */
type Shared = ReadonlyMap<string, unknown>;

/** Functions that tests may put others in the place of, for example clocks. */
const REPLACEABLE: readonly [string, object, readonly string[]][] = [
  ['Date', Date, ['now', 'parse', 'UTC']],
  ['Math', Math, ['random']],
  ['performance', performance, ['now']],
  ['console', console, ['debug', 'error', 'info', 'log', 'warn']],
  ['process', process, ['cwd', 'exit', 'kill', 'hrtime', 'emitWarning', 'memoryUsage', 'cpuUsage']],
  ['process.stdout', process.stdout, ['write']],
  ['process.stderr', process.stderr, ['write']],
];

/** Globals that a library makes when it is imported, once a process. */
const LIBRARIES = new Set(['__zod_globalConfig', '__zod_globalRegistry']);

/** Returns what a test file could change for the files after it. */
export function sharedState(): Shared {
  const state = new Map<string, unknown>();
  for (const [name, value] of Object.entries(process.env)) state.set(`process.env.${name}`, value);
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    if (LIBRARIES.has(name)) continue;
    // Getters of Node make their value at their first use.
    const property = Object.getOwnPropertyDescriptor(globalThis, name);
    state.set(`globalThis.${name}`, property?.get ?? property?.value);
  }
  for (const [owner, of, names] of REPLACEABLE) {
    for (const name of names) state.set(`${owner}.${name}`, Reflect.get(of, name));
  }
  for (const event of process.eventNames()) {
    state.set(`listeners of process for ${String(event)}`, process.listenerCount(event));
  }
  state.set('process.cwd()', process.cwd());
  state.set('process.exitCode', process.exitCode);
  state.set('process.execArgv', process.execArgv.join(' '));
  state.set('process.title', process.title);
  state.set('process.umask()', process.umask());
  return state;
}

/** Returns the names of the state that is not as it was. */
export function changedSince(before: Shared): string[] {
  const now = sharedState();
  return [...new Set([...before.keys(), ...now.keys()])].filter((name) => !Object.is(before.get(name), now.get(name)));
}
