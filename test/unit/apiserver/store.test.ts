import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import type { ApiObject } from '../../../local/apiserver/object.ts';
import { Journal } from '../../../local/apiserver/store/journal.ts';
import { type Change, VersionedStore } from '../../../local/apiserver/store/versioned.ts';

interface Write {
  namespace: string;
  name: string;
  remove: boolean;
  value: number;
}

const writes = fc.array(
  fc.record({
    namespace: fc.constantFrom('a', 'b'),
    name: fc.constantFrom('x', 'y', 'z'),
    remove: fc.boolean(),
    value: fc.nat(),
  }),
  { maxLength: 40 },
);

const objectOf = ({ namespace, name, value }: Write): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name, namespace },
  value,
});

function apply(store: VersionedStore, write: Write): void {
  const present = store.get('things', write.namespace, write.name);
  if (!write.remove) store.put('things', objectOf(write), 10);
  else if (present) store.remove('things', present);
}

const names = (objects: ApiObject[]) =>
  objects.map(({ metadata, value }) => `${metadata.namespace}/${metadata.name}=${value}`);

describe('the versioned store', () => {
  test('shows the state of any version that its history reaches', () => {
    fc.assert(
      fc.property(writes, (sequence) => {
        const store = new VersionedStore({ historyLength: 1000 });
        const states = new Map([[store.version, names(store.list('things'))]]);
        for (const write of sequence) {
          apply(store, write);
          states.set(store.version, names(store.list('things')));
        }
        for (const [version, state] of states) {
          assert.deepEqual(names(store.listAt('things', undefined, version)), state);
          const inA = state.filter((name) => name.startsWith('a/'));
          assert.deepEqual(names(store.listAt('things', 'a', version)), inA);
        }
      }),
    );
  });

  test('tells the changes after any version so that a follower ends with the same objects', () => {
    fc.assert(
      fc.property(writes, fc.nat(40), (sequence, start) => {
        const store = new VersionedStore({ historyLength: 1000 });
        for (const write of sequence.slice(0, start)) apply(store, write);
        const from = store.version;
        const copy = new Map(store.list('things').map((o) => [`${o.metadata.namespace}/${o.metadata.name}`, o]));
        for (const write of sequence.slice(start)) apply(store, write);
        let last = from;
        for (const change of store.changesSince('things', from)) {
          assert.ok(change.version > last);
          last = change.version;
          if (change.type === 'DELETED') copy.delete(change.key);
          else copy.set(change.key, change.object);
        }
        assert.deepEqual(
          [...copy.values()].map((o) => o.value).sort(),
          store
            .list('things')
            .map((o) => o.value)
            .sort(),
        );
      }),
    );
  });

  test('answers 410 for what its history has lost, and never a wrong state', () => {
    fc.assert(
      fc.property(writes, fc.integer({ min: 1, max: 8 }), (sequence, historyLength) => {
        const store = new VersionedStore({ historyLength });
        const states = new Map<number, string[]>();
        for (const write of sequence) {
          apply(store, write);
          states.set(store.version, names(store.list('things')));
        }
        for (const [version, state] of states) {
          try {
            assert.deepEqual(names(store.listAt('things', undefined, version)), state);
          } catch (error) {
            assert.equal((error as { code?: number }).code, 410);
            assert.notEqual(version, store.version, 'the present state is never too old');
          }
        }
      }),
    );
  });

  test('does not count a write that could not be kept', () => {
    const sink = {
      append() {
        throw new Error('the disk is full');
      },
    };
    const store = new VersionedStore({ historyLength: 10, sink });
    const before = store.version;
    assert.throws(
      () => store.put('things', objectOf({ namespace: 'a', name: 'x', remove: false, value: 1 }), 10),
      /full/,
    );
    assert.equal(store.version, before);
    assert.deepEqual(store.list('things'), []);
  });

  test('hands out objects that cannot be changed', () => {
    const store = new VersionedStore({ historyLength: 10 });
    const object = store.put('things', objectOf({ namespace: 'a', name: 'x', remove: false, value: 1 }), 10);
    assert.throws(() => {
      object.metadata.labels = { a: 'b' };
    }, TypeError);
  });
});

describe('the journal', () => {
  test('cut off anywhere it yields the writes that were whole, and goes on from there', () => {
    fc.assert(
      fc.property(writes, fc.double({ min: 0, max: 1, noNaN: true }), fc.boolean(), (sequence, where, snapshot) => {
        const dir = mkdtempSync(join(tmpdir(), 'berth-journal-'));
        try {
          const { journal, contents } = Journal.open(dir, { boot: 'b' });
          const store = new VersionedStore({ historyLength: 1000, contents, sink: journal });
          const changes: Change[] = [];
          store.subscribe((change) => changes.push(change));
          const half = Math.floor(sequence.length / 2);
          for (const write of sequence.slice(0, half)) apply(store, write);
          if (snapshot) journal.snapshot(store.contents());
          const kept = snapshot ? changes.length : 0;
          for (const write of sequence.slice(half)) apply(store, write);
          journal.close();

          const path = join(dir, 'objects.journal.jsonl');
          const bytes = readFileSync(path);
          // The line of the start is fsynced before the first version is given out: nothing takes it.
          const synced = snapshot ? 0 : bytes.indexOf(10) + 1;
          const cut = bytes.subarray(0, synced + Math.floor((bytes.length - synced) * where));
          writeFileSync(path, cut);
          const whole = kept + cut.subarray(synced).toString('utf8').split('\n').length - 1;
          const expected = new VersionedStore({ historyLength: 1000 });
          for (const { type, object } of changes.slice(0, whole)) {
            if (type === 'DELETED') expected.remove('things', object);
            else expected.put('things', object, 10);
          }

          const reopened = Journal.open(dir, { boot: 'c' });
          const again = new VersionedStore({
            historyLength: 1000,
            contents: reopened.contents,
            sink: reopened.journal,
          });
          assert.deepEqual(names(again.list('things')), names(expected.list('things')));
          const given = changes.at(-1)?.version ?? 0;
          assert.ok(again.version >= given, 'a version that was given out and then lost is not given out again');
          again.put('things', objectOf({ namespace: 'a', name: 'last', remove: false, value: 1 }), 10);
          reopened.journal.close();
          const third = Journal.open(dir, { boot: 'd' });
          third.journal.close();
          assert.ok(third.contents.version >= again.version);
          assert.equal(third.contents.collections.get('things')!.get('a/last')!.value, 1);
        } finally {
          rmSync(dir, { recursive: true, force: true });
        }
      }),
      { numRuns: 60 },
    );
  });

  /** A run of a server on the files in `dir`; `put` tells whether the write was acknowledged. */
  function run(dir: string, boot: string) {
    const lost: Error[] = [];
    const { journal, contents } = Journal.open(dir, { boot, onLost: (error) => lost.push(error) });
    const store = new VersionedStore({ historyLength: 1000, contents, sink: journal });
    const put = (name: string): boolean => {
      try {
        store.put('things', objectOf({ namespace: 'a', name, remove: false, value: 1 }), 10);
        return true;
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'JournalLost');
        return false;
      }
    };
    const all = () => names(store.list('things')).map((name) => name.slice(2, -2));
    return { journal, store, lost, put, all };
  }

  function folder(t: { onTestFinished(fn: () => void): void }): string {
    const dir = mkdtempSync(join(tmpdir(), 'berth-journal-'));
    t.onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    return dir;
  }

  test('of two runs on the same files the first acknowledges nothing once the second has read them', (t) => {
    const dir = folder(t);
    const first = run(dir, 'first');
    assert.equal(first.put('before'), true);
    const second = run(dir, 'second');
    assert.deepEqual(second.all(), ['before']);
    assert.equal(second.put('after'), true);
    const size = statSync(join(dir, 'objects.journal.jsonl')).size;
    assert.equal(first.put('late'), false);
    assert.throws(() => first.journal.snapshot(first.store.contents()), { code: 'JournalLost' });
    assert.equal(first.put('later'), false);
    assert.equal(first.lost.length, 1, 'it is told once');
    assert.ok(statSync(join(dir, 'objects.journal.jsonl')).size >= size, 'what the second wrote is not cut off');
    const third = run(dir, 'third');
    assert.deepEqual(third.all(), ['after', 'before']);
  });

  test('acknowledged writes of two runs on the same files are read by the next, and no version is given out twice', () => {
    const steps = fc.array(fc.constantFrom<('start' | 'old' | 'new')[]>('start', 'old', 'new'), { maxLength: 20 });
    fc.assert(
      fc.property(steps, (sequence) => {
        const dir = mkdtempSync(join(tmpdir(), 'berth-journal-'));
        try {
          let boots = 0;
          let old = run(dir, `${boots++}`);
          let current = old;
          const acknowledged: string[] = [];
          const versions: number[] = [];
          for (const [i, step] of [...sequence, 'start' as const].entries()) {
            if (step === 'start') [old, current] = [current, run(dir, `${boots++}`)];
            else {
              const writer = step === 'old' ? old : current;
              if (!writer.put(`n${i}`)) continue;
              acknowledged.push(`n${i}`);
              versions.push(writer.store.version);
            }
          }
          const read = new Set(current.all());
          assert.deepEqual(
            acknowledged.filter((name) => !read.has(name)),
            [],
          );
          assert.equal(new Set(versions).size, versions.length);
        } finally {
          rmSync(dir, { recursive: true, force: true });
        }
      }),
      { numRuns: 100 },
    );
  });

  test('a file that was replaced or removed is no longer its own: nothing is acknowledged', (t) => {
    for (const replace of [
      (path: string) => rmSync(path),
      (path: string) => {
        writeFileSync(`${path}.other`, readFileSync(path));
        renameSync(`${path}.other`, path);
      },
    ]) {
      const dir = folder(t);
      const first = run(dir, 'first');
      assert.equal(first.put('before'), true);
      replace(join(dir, 'objects.journal.jsonl'));
      assert.equal(first.put('after'), false);
    }
  });

  test('reads the files of a release whose lines carry no boot id', (t) => {
    const dir = folder(t);
    const line = (version: number, name: string) => {
      const metadata = { name, namespace: 'a', resourceVersion: `${version}` };
      return `${JSON.stringify({ version, storage: 'things', object: { metadata, value: 1 } })}\n`;
    };
    writeFileSync(join(dir, 'objects.snapshot.jsonl'), `{"version":5,"storage":""}\n${line(4, 'x')}`);
    writeFileSync(join(dir, 'objects.journal.jsonl'), line(4, 'x') + line(6, 'y'));
    const first = run(dir, 'first');
    assert.deepEqual(first.all(), ['x', 'y']);
    assert.equal(first.put('z'), true);
    assert.deepEqual(run(dir, 'second').all(), ['x', 'y', 'z']);
  });
});
