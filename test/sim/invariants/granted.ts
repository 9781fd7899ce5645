import { isDeepStrictEqual } from 'node:util';
import { toMs } from '../../../controller/settings/timeouts.ts';
import type { StoredTurn } from '../../../core/resources/kinds.ts';
import { CLOCK_MS } from './clocks.ts';
import { TURNS } from './facts.ts';
import type { MakeInvariant } from './invariant.ts';

/**
 * A turn is granted its timeouts when it is written Running and keeps them for all its attempts. Its runner is told these
 * timeouts, and no wait for a decision ends before its timeout.
 */
export const granted: MakeInvariant = (facts) => ({
  committed({ storage, type, object, previous }) {
    if (storage !== TURNS || type !== 'MODIFIED') return;
    const { metadata, status } = object as unknown as StoredTurn;
    const was = (previous as unknown as StoredTurn | undefined)?.status;
    const fail = (what: string) => facts.fail('granted', `turn ${metadata.name} ${what}`);
    if (status?.phase === 'Running' && !status.granted) fail('runs and was granted nothing');
    if (was?.attempt && status?.attempt && !isDeepStrictEqual(status.granted, was.granted))
      fail(`was granted ${JSON.stringify(was.granted)} and has ${JSON.stringify(status?.granted)}`);
    const { approval, error } = status ?? {};
    if (!was?.attempt || error?.code !== 'ApprovalTimeout') return;
    const waited = facts.server.clock.now() - Date.parse(approval?.since ?? '');
    if (waited + CLOCK_MS < toMs(status?.granted?.approval))
      fail(`waited ${waited} ms of the ${status?.granted?.approval} that it was granted for a decision`);
  },
  runStarted({ turn, timeoutMs, stallMs, isRunnerless }) {
    if (isRunnerless) return;
    const { metadata, status } = facts.turns.get(turn) ?? {};
    const { timeout, stall } = status?.granted ?? {};
    if (toMs(timeout) === timeoutMs && toMs(stall) === stallMs) return;
    const told = `${timeoutMs} ms and ${stallMs} ms of silence`;
    facts.fail(
      'granted',
      `the runner of turn ${metadata?.name} was told ${told} of the granted ${timeout} and ${stall}`,
    );
  },
});
