import { isOfOtherType } from '../../core/enter/files.ts';
import type { FileEntry } from '../../core/enter/hello.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Inside, Place } from '../cluster/inside.ts';
import { begunAnew, readMended } from '../enter/mended.ts';
import { withSession } from '../enter/open.ts';
import { shown } from '../enter/place.ts';
import { withProgress } from '../enter/progress.ts';
import { keptWord } from '../enter/send.ts';
import { failed, refused } from '../errors.ts';
import { formatObject } from '../print/print.ts';
import { printableName } from '../print/printable.ts';
import { table } from '../print/table.ts';

export interface FilesListFlags extends ClusterFlags {
  output?: 'json' | 'yaml' | 'name';
}

/** Lists a folder of a running session, or describes the file at the place. */
export async function listFiles(name: string, place: Place, flags: FilesListFlags, cli: Cli): Promise<number> {
  return withSession(name, flags, cli, async (entered) => {
    const items = await begunAnew(entered, cli, () => entriesAt(entered.inside, place));
    items.sort((a, b) => (a.name < b.name ? -1 : 1));
    if (flags.output === 'name') await cli.out(items.map((item) => `${printableName(item.name)}\n`).join(''));
    else if (flags.output) await cli.out(await formatObject({ items }, flags.output));
    else if (items.length === 0) cli.say(`${shown(place)} is empty`);
    else {
      const rows = items.map((item) => [item.mode, sizeOf(item), item.modified.replace(/\.\d+Z$/, 'Z'), nameOf(item)]);
      await cli.out(table([['MODE', 'BYTES', 'MODIFIED', 'NAME'], ...rows], { terminal: cli.terminal }));
    }
    return 0;
  });
}

async function entriesAt(inside: Inside, place: Place): Promise<FileEntry[]> {
  try {
    return await inside.list(place);
  } catch (error) {
    if (!isOfOtherType(error)) throw error;
    return [await inside.stat(place)];
  }
}

const sizeOf = ({ type, bytes }: FileEntry) => (type === 'file' ? String(bytes) : '-');
const nameOf = ({ name, type, target }: FileEntry) => {
  if (type === 'link') return `${printableName(name)} -> ${printableName(target ?? '')}`;
  return type === 'folder' ? `${printableName(name)}/` : printableName(name);
};

/** Writes a file of a running session to stdout. */
export async function printFile(name: string, place: Place, flags: ClusterFlags, cli: Cli): Promise<number> {
  return withSession(name, flags, cli, async (entered) => {
    const { entry, data } = await readMended(entered, place, cli);
    const shownData = cli.terminal ? data : withProgress(data, { what: shown(place), total: entry.bytes }, cli);
    for (;;) {
      const { value, done } = await shownData.next();
      if (!done) {
        cli.interrupted.throwIfAborted();
        await cli.out(value);
        continue;
      }
      if (value.changed === 'Rewritten') {
        throw failed(`the session wrote to ${shown(place)} while it was read: parts of it may be older than others`);
      }
      if (value.changed) cli.say(grew(shown(place), entry));
      return 0;
    }
  });
}

export interface FilesRemoveFlags extends ClusterFlags {
  recursive?: boolean;
}

/** Deletes a file of a running session, or a folder with all that is in it. */
export async function removeFile(name: string, place: Place, flags: FilesRemoveFlags, cli: Cli): Promise<number> {
  return withSession(name, flags, cli, async ({ inside }) => {
    const { kept } = await inside.remove(place, flags.recursive ?? false).catch((error) => {
      if (!isOfOtherType(error)) throw error;
      throw refused(`${shown(place)} is a folder; delete it with all that is in it: files rm -r`);
    });
    const word = keptWord(kept, place.root);
    if (word) cli.say(word);
    return 0;
  });
}

export const grew = (what: string, { bytes }: FileEntry): string =>
  `${printableName(what)} grew while it was read; these are its first ${bytes} bytes`;
