import { stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { FileReplacedError, isOfOtherType } from '../../core/enter/files.ts';
import type { FileEnd, FileProblem } from '../../core/enter/hello.ts';
import type { Cli, ClusterFlags } from '../cli.ts';
import type { Place } from '../cluster/inside.ts';
import { begunAnew, readMended } from '../enter/mended.ts';
import { type Entered, withSession } from '../enter/open.ts';
import { remotePlace, shown } from '../enter/place.ts';
import { withProgress } from '../enter/progress.ts';
import { receiveFile } from '../enter/receive-file.ts';
import { receiveFolder } from '../enter/receive-folder.ts';
import { send, sourceOf } from '../enter/send.ts';
import { refused } from '../errors.ts';
import { filesText } from '../print/print.ts';
import { printableName } from '../print/printable.ts';
import { grew } from './files.ts';

/** Tries of the copy of a file that is another one each time that a connection was lost. */
const TRIES = 3;

/** Copies a file or a folder from a running session to this machine, or the other way. */
export async function copy(from: string, to: string, flags: ClusterFlags, cli: Cli): Promise<number> {
  const [source, place] = [remotePlace(from), remotePlace(to)];
  if (source && place) {
    throw refused('nothing is copied from one session to another; copy to this machine, and from here to the other');
  }
  if (place) {
    const local = await sourceOf(from, cli);
    return withSession(place.session, flags, cli, (entered) => send(entered, local, place, cli));
  }
  if (!source) {
    throw refused(
      `neither "${from}" nor "${to}" is in a session; write SESSION:ROOT/PATH, for example notes:work/report.txt`,
    );
  }
  const target = await targetOf(to, cli);
  return withSession(source.session, flags, cli, (entered) => receive(entered, source, target, cli));
}

interface Target {
  /** Absolute path as it was given. */
  path: string;
  isFolder: boolean;
}

/** Looks at the place on this machine before anything is asked of the session. */
async function targetOf(to: string, cli: Cli): Promise<Target> {
  const path = resolve(cli.cwd, to);
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return { path, isFolder: true };
  if (found && !found.isFile()) {
    throw refused(`${printableName(path)} is neither a file nor a folder; use files cat and a redirection`);
  }
  if (!found && to.endsWith('/')) throw refused(`there is no folder ${printableName(path)}`);
  if (!(await stat(dirname(path)).catch(() => undefined))?.isDirectory()) {
    throw refused(`there is no folder ${printableName(dirname(path))}`);
  }
  return { path, isFolder: false };
}

async function receive(entered: Entered, source: Place, target: Target, cli: Cli): Promise<number> {
  const asksForContent = source.path === '.' || source.path.endsWith('/.');
  const name = basename(join('/', source.path)) || source.root;
  const path = target.isFolder && !asksForContent ? join(target.path, name) : target.path;
  try {
    return await receiveOne(path, source, entered, cli);
  } catch (error) {
    if (!isOfOtherType(error)) throw error;
  }
  const { end, files, leftOut } = await begunAnew(entered, cli, async (begun) => {
    const { data } = await entered.inside.archive(source);
    begun();
    const there = await stat(path).catch(() => undefined);
    if (there && !there.isDirectory()) {
      await data.return(undefined as never);
      throw refused(`${printableName(path)} is a file here and a folder in the session; name another place`);
    }
    return receiveFolder(path, withProgress(data, { what: shown(source) }, cli));
  });
  for (const link of leftOut) cli.say(`left out ${printableName(link)}: a link that leads out of the folder`);
  await cli.out(`${printableName(path)}\n`);
  cli.say(`${filesText(files)} written`);
  return tellProblems(end, cli);
}

/** Copies a file; begins anew, some times, where the file is another one after a loss of the connection. */
async function receiveOne(path: string, source: Place, entered: Entered, cli: Cli): Promise<number> {
  for (let tries = 1; ; tries++) {
    const { entry, data } = await readMended(entered, source, cli);
    if ((await stat(path).catch(() => undefined))?.isDirectory()) {
      await data.return(undefined as never);
      throw refused(`${printableName(path)} is a folder here and a file in the session; name another place`);
    }
    const shownData = withProgress(data, { what: shown(source), total: entry.bytes }, cli);
    try {
      const end = await receiveFile(path, entry, shownData, { random: cli.random, signal: cli.interrupted });
      await cli.out(`${printableName(path)}\n`);
      if (end.changed) cli.say(grew(path, entry));
      return 0;
    } catch (error) {
      if (!(error instanceof FileReplacedError) || tries === TRIES) throw error;
    }
  }
}

const WORDS: Record<FileProblem['reason'], string> = {
  Pipe: 'left out: it is a FIFO',
  Socket: 'left out: it is a socket',
  Device: 'left out: it is a device',
  System: 'left out: it is of proc, sys or dev',
  Unreadable: 'it cannot be read',
  Grew: 'it grew while it was read; this is its beginning',
  Shrank: 'it shrank while it was read; its end is filled with zeros',
  Rewritten: 'it was written to while it was read; parts of it may be older than others',
};
/** Reasons for which something in the copy is not as it was in the session. */
const WRONG: ReadonlySet<string> = new Set(['Unreadable', 'Shrank', 'Rewritten']);

/** Tells what is not in the copy as it is in the session; returns 1 where something is wrong or missing. */
function tellProblems({ problems = [], problemCount = 0 }: FileEnd, cli: Cli): number {
  for (const { name, reason } of problems) cli.say(`${printableName(name)}: ${WORDS[reason] ?? reason}`);
  const more = problemCount - problems.length;
  if (more > 0) cli.say(`and ${more} more like these`);
  return more > 0 || problems.some(({ reason }) => WRONG.has(reason)) ? 1 : 0;
}
