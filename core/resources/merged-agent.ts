import type { Agent } from './agent.ts';

/** Returns the session's settings over those of its class. Files of both count, the class's first. */
export function mergedAgent(own: Agent, defaults: Agent): Agent {
  const files = [...(defaults.files ?? []), ...(own.files ?? [])];
  return { ...inherited(own, defaults), ...own, ...(files.length > 0 ? { files } : {}) };
}

/** The class's defaults that still apply: with another driver, the class's settings for its own driver do not. */
function inherited(own: Agent, defaults: Agent): Agent {
  if (!own.driver || own.driver === (defaults.driver ?? 'Command')) return defaults;
  const { input: _i, result: _r, jsonLines: _j, server: _s, shell: _h, tools: _t, maxParallel: _m, ...rest } = defaults;
  const { resumeArgs: _a, resumeWhen: _w, ...once } = rest;
  if (own.driver === 'Tools') return once;
  const { command: _c, args: _g, ...environmentOnly } = once;
  return own.driver === 'Shell' ? environmentOnly : rest;
}
