import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Effects } from '../../../../controller/act/context.ts';
import { Ledger } from '../../../../controller/capacity/ledger.ts';
import { Reconciler } from '../../../../controller/reconcile.ts';
import { silentLogger } from '../../../../core/system.ts';
import { anApplicant } from '../../../support/applicant.ts';
import { SeenCluster } from '../../../support/seen.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { aClass, aSession, aWorld, NOW } from '../../../support/world.ts';
import { writesOver } from '../../../support/writes.ts';

/** A session to be reconciled whose observation is the first step of a record, as is what the ledger is asked and told. */
function recorded(maxRunning: number) {
  const steps: string[] = [];
  const session = aSession();
  const seen = new SeenCluster();
  const clock = new VirtualClock();
  const ledger = new Ledger({
    caches: seen,
    clock,
    maxRunning,
    epoch: () => 1,
    suspendAgainAt: () => undefined,
    onChange: () => {},
  });
  ledger.open();
  const caches = {
    session: () => session,
    podsOf: () => {
      steps.push('observe');
      // Runs at the first await after this.
      queueMicrotask(() => steps.push('await'));
      return [];
    },
    turnsNaming: () => [],
    approvalsNaming: () => [],
    namespaceLabels: () => undefined,
    allPools: () => [],
    knowsAgentFiles: () => true,
    class: () => aClass(),
  };
  const effects = {
    caches,
    clock: { ...clock, now: () => NOW, monotonic: () => 0 },
    ledger: {
      groups: ledger.groups,
      preemptFor: () => undefined,
      reserve: () => false,
      wait: () => {},
      leave: () => {},
      assess: (...args: Parameters<Ledger['assess']>) => {
        steps.push('assess');
        return ledger.assess(...args);
      },
      commitQueue: (...args: Parameters<Ledger['commitQueue']>) => {
        steps.push(`commit ${args[1]}`);
        ledger.commitQueue(...args);
      },
    },
    store: { shortOf: () => undefined },
    links: { get: () => undefined, closeOthers: () => {} },
    leader: { isReady: () => true, epoch: () => 1, identity: 'a' },
    log: silentLogger,
    notify: () => {},
    ...writesOver({ replace: async () => session }),
  } as unknown as Effects;
  const { installation } = aWorld();
  const closing = new AbortController().signal;
  const reconciler = new Reconciler({ effects, installation, closing, onNoSlotWanted: () => {} });
  return { steps, ledger, reconcile: () => reconciler.reconcile('team/notes', new AbortController().signal) };
}

describe('a reconcile', () => {
  for (const [maxRunning, wants] of [
    [0, 'Slot'],
    [1, 'Admission'],
  ] as const) {
    test(`has no await between its observation and its commit of capacity, where it wants ${wants}`, async () => {
      const { steps, reconcile } = recorded(maxRunning);
      await reconcile();
      // The turns are read before: whether a runner waits to be bound is looked up for that.
      assert.deepEqual(steps.slice(steps.lastIndexOf('observe')), ['observe', 'assess', `commit ${wants}`, 'await']);
    });
  }
});

describe('an assessment', () => {
  const ledgerOf = (maxRunning: number) => {
    const told: string[] = [];
    const ledger = new Ledger({
      caches: new SeenCluster(),
      clock: new VirtualClock(),
      maxRunning,
      epoch: () => 1,
      suspendAgainAt: () => undefined,
      onChange: (key) => told.push(key),
    });
    ledger.open();
    return { ledger, told };
  };

  test('changes nothing, be the session new to the queue or of another priority there', () => {
    const { ledger, told } = ledgerOf(1);
    ledger.wait(anApplicant('a/first', { since: 1 }));
    ledger.wait(anApplicant('a/second', { since: 2 }));
    told.length = 0;
    assert.equal(ledger.assess(anApplicant('a/new', { priority: 9 }), 'next'), 'Available');
    assert.equal(ledger.assess(anApplicant('a/second', { since: 2, priority: 9 }), 'next'), 'Available');
    assert.deepEqual([[...ledger.waiting()].sort(), told], [['a/first', 'a/second'], []]);
    assert.equal(ledger.assess(anApplicant('a/first', { since: 1 }), 'next'), 'Available', 'it still is the first');
    const second = ledger.assess(anApplicant('a/second', { since: 2 }), 'next');
    assert.ok(typeof second === 'object');
    assert.equal(second.position, 2);
  });
  test('counts once its position in the queue is committed', () => {
    const { ledger } = ledgerOf(1);
    ledger.wait(anApplicant('a/first', { since: 1 }));
    ledger.commitQueue(anApplicant('a/new', { priority: 9 }), 'Slot');
    assert.equal(typeof ledger.assess(anApplicant('a/first', { since: 1 }), 'next'), 'object');
    ledger.commitQueue(anApplicant('a/new', { priority: 9 }), 'Nothing');
    assert.equal(ledger.assess(anApplicant('a/first', { since: 1 }), 'next'), 'Available');
  });
});
