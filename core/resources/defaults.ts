/** Values that hold where neither a session nor its class sets one. Durations and quantities are written as people write them. */

/** undefined: no limit. */
export const DEFAULT_TIMEOUTS = {
  start: '10m',
  turn: '30m',
  stall: undefined,
  idle: '2h',
  approval: '24h',
  persist: '5m',
  lifetime: undefined,
} as const;

/** Time until a session is deleted: after it is finished, by its `turns`, and while it is suspended. */
export const DEFAULT_TTL = { finished: { One: '24h', Many: '168h' }, suspended: '720h' } as const;

/** Ended turns that a session keeps: their number, their bytes, and the bytes that they have stored. */
export const DEFAULT_HISTORY = { turns: 100, bytes: '1Mi', stored: '16Mi' } as const;
