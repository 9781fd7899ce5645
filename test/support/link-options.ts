import { Allowances } from '../../controller/link/allowance.ts';
import { AttachLimit } from '../../controller/link/attach-limit.ts';
import { HeldBytes } from '../../controller/link/held-bytes.ts';
import { LogReader } from '../../controller/link/log-reader.ts';
import type { LinkOptions } from '../../controller/link/options.ts';
import { Silences } from '../../controller/link/silences.ts';
import type { Random } from '../../core/runtime.ts';
import { silentLogger } from '../../core/system.ts';

/** Options of the only link of a leader, to the first incarnation of session `session-1`, sealed under the master key `key`. */
export function linkOptions(
  api: LinkOptions['api'],
  { pod, key, clock, random }: Pick<LinkOptions, 'pod' | 'clock'> & { key: Buffer; random: Random },
): LinkOptions {
  let number = 0;
  return {
    api,
    clock,
    random,
    log: silentLogger,
    pod,
    session: 'session-1',
    incarnation: 1,
    keys: { current: { id: 'k', key }, byId: new Map([['k', key]]) },
    epoch: () => 5,
    nextNumber: () => ++number,
    answers: { at: Number.NEGATIVE_INFINITY },
    lingerMs: 3_600_000,
    limit: new AttachLimit(16, clock),
    silences: new Silences(clock),
    logs: new LogReader(clock),
    held: new HeldBytes(clock),
    allowances: new Allowances(clock),
    priority: () => 'WaitedFor',
    onChange: () => {},
    onLaterEpoch: () => {},
  };
}
