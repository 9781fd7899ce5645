import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Wish } from '../../../../core/enter/hello.ts';
import type { Bind } from '../../../../core/frames/messages.ts';
import { Uploads } from '../../../../runner/enter/uploads.ts';
import type { Access } from '../../../../runner/session/session.ts';
import { packDirectory } from '../../../../runner/state/pack.ts';
import { unpackDirectory } from '../../../../runner/state/unpack.ts';
import { eventually } from '../../../support/eventually.ts';
import { seededRandom } from '../../../support/random.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { TestVisit } from '../../../support/visit.ts';

let folder: string;
const work = (...names: string[]) => join(folder, 'work', ...names);
const state = (...names: string[]) => join(folder, 'state', ...names);

/** Uploads of a session whose state is packed whenever the test says so. */
function session({ maxStateBytes }: { maxStateBytes?: number } = {}) {
  const facts = {
    access: 'Open' as Access,
    bind: {
      session: { name: 'notes', namespace: 'ns', uid: 'session-1' },
      incarnation: 1,
      persistence: { state: true, maxStateBytes },
    } as Bind,
    isPacking: false,
    packed: () => {},
    outsidePacking: async (step: () => void) => {
      await new Promise<void>((resolve) => {
        facts.packed = resolve;
        if (!facts.isPacking) resolve();
      });
      step();
      return true;
    },
  };
  const options = { clock: new VirtualClock(), random: seededRandom() };
  return Object.assign(facts, {
    uploads: new Uploads({ session: facts, stateDirectory: state(), volume: join(folder, 'volume'), ...options }),
  });
}

/** A visit whose helper has its order; `upload` is the name that it has to use. */
function begun(uploads: Uploads, wish: Wish, at: string): { visit: TestVisit; upload: string; fields: string[] } {
  const visit = new TestVisit(wish);
  uploads.serve(visit, at);
  const fields = String(visit.frames.find(({ kind }) => kind === 'order')?.payload ?? '').split('\0');
  return { visit, upload: fields[6] ?? '', fields };
}

const answered = (visit: TestVisit) => eventually(() => visit.refusal?.code ?? visit.json('ready'), { what: 'answer' });

const write = (root: 'work' | 'state', path: string, length?: number): Wish => ({
  want: 'write',
  root,
  path,
  ...(length !== undefined && { length }),
});

describe('what is written from outside', () => {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'berth-uploads-'));
    mkdirSync(work());
    mkdirSync(state());
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  test('is renamed over what was there, and the helper is told so', async () => {
    const { uploads } = session();
    const { visit, upload, fields } = begun(uploads, write('work', 'a', 3), work());
    expect(fields.slice(0, 6)).toEqual(['write', 'work', work(), 'a', '-1', '3']);
    expect(fields[7]).toBe('Pod');
    writeFileSync(work('a'), 'old');
    writeFileSync(work(upload), 'new');
    visit.take('place');
    expect(await answered(visit)).toEqual({});
    expect(readdirSync(work())).toEqual(['a']);
    expect(readFileSync(work('a'), 'utf8')).toBe('new');
  });

  test('waits for a packing, and is refused where the session is suspended after it', async () => {
    for (const access of ['Suspended', 'Stopping'] as const) {
      const facts = session();
      facts.isPacking = true;
      const { visit, upload } = begun(facts.uploads, write('state', 'a'), state());
      writeFileSync(state(upload), 'new');
      visit.take('place');
      await new Promise(setImmediate);
      expect(visit.frames.map(({ kind }) => kind)).toEqual(['order']);
      facts.access = access;
      facts.packed();
      expect(await answered(visit)).toBe(access);
      expect(existsSync(state('a'))).toBe(false);
      // The helper removes what it has; here it was killed.
      await expect.poll(() => readdirSync(state())).toEqual([]);
    }
  });

  test('is refused as Busy where the packing takes too long', async () => {
    const facts = session();
    facts.outsidePacking = async () => false;
    const { visit } = begun(facts.uploads, write('state', 'a'), state());
    visit.take('place');
    expect(await answered(visit)).toBe('Busy');
  });

  test('never makes the state larger than it may be: refused before a byte, or before the rename', async () => {
    const { uploads } = session({ maxStateBytes: 4096 });
    writeFileSync(state('old'), Buffer.alloc(2000));
    expect(begun(uploads, write('state', 'a', 2000), state()).visit.refusal?.code).toBe('StateTooLarge');
    // In place of the old file there is room for it.
    expect(begun(uploads, write('state', 'old', 2500), state()).visit.refusal).toBeUndefined();
    const { visit, upload } = begun(uploads, write('state', 'a'), state());
    writeFileSync(state(upload), Buffer.alloc(2000));
    visit.take('place');
    expect(await answered(visit)).toBe('StateTooLarge');
    expect(existsSync(state('a'))).toBe(false);
  });

  test('a folder counts what it has put into the state', async () => {
    const { uploads } = session({ maxStateBytes: 4096 });
    const { visit, upload } = begun(uploads, { want: 'fill', root: 'state', path: '' }, state());
    const put = async (name: string) => {
      visit.take('entry', Buffer.from(name));
      writeFileSync(state(upload), Buffer.alloc(1100));
      visit.take('place');
      await eventually(() => visit.refusal || !existsSync(state(upload)), { what: 'answer', everyMs: 2 });
      return visit.refusal?.code;
    };
    expect(await put('a')).toBeUndefined();
    expect(await put('b')).toBe('StateTooLarge');
  });

  test('never gets a name outside of its root, wherever the agent puts a link meanwhile', async () => {
    const { uploads } = session();
    mkdirSync(join(folder, 'other'));
    symlinkSync(join(folder, 'other'), work('sub'));
    const { visit, upload } = begun(uploads, write('work', 'sub/a'), work());
    writeFileSync(join(folder, 'other', upload), 'new');
    visit.take('place');
    expect(await answered(visit)).toBe('OutsideRoot');
    expect(readdirSync(join(folder, 'other'))).toEqual([upload]);
  });

  test('a helper that is killed leaves nothing of a file, nor of a folder that was to be deleted', async () => {
    const { uploads } = session();
    mkdirSync(work('sub', 'deep'), { recursive: true });
    writeFileSync(work('sub', 'deep', 'a'), '');
    const cut = begun(uploads, write('work', 'new/b'), work());
    writeFileSync(work(cut.upload), 'half');
    cut.visit.leave();
    const { visit } = begun(uploads, { want: 'delete', root: 'work', path: 'sub', recursive: true }, work());
    visit.take('place');
    expect(await answered(visit)).toEqual({});
    visit.leave();
    await expect.poll(() => readdirSync(work())).toEqual([]);
  });

  test('is in no state before it has its name', async () => {
    const { uploads } = session();
    writeFileSync(state('a'), 'a');
    const { upload } = begun(uploads, write('state', 'b'), state());
    writeFileSync(state(upload), 'half');
    const { packed, digest } = await packDirectory(state());
    mkdirSync(join(folder, 'next'));
    await unpackDirectory(join(folder, 'next'), packed, digest);
    expect(readdirSync(join(folder, 'next'))).toEqual(['a']);
  });
});
