import { InvalidArgumentError } from 'commander';
import { ROOTS } from '../../core/enter/hello.ts';
import type { Place } from '../cluster/inside.ts';
import { name } from '../input/flags.ts';

/** Parses ROOT or ROOT/PATH. */
export function place(text: string): Place {
  const slash = text.indexOf('/');
  const first = slash === -1 ? text : text.slice(0, slash);
  const root = ROOTS.find((known) => known === first);
  if (!root) {
    throw new InvalidArgumentError(
      `"${text}" begins with no root: the roots of a session are ${ROOTS.join(', ')}, for example work/report.txt.`,
    );
  }
  return { root, path: slash === -1 ? '' : text.slice(slash + 1) };
}

/** Parses SESSION:ROOT/PATH; undefined for a path of this machine, which has no colon before its first slash. */
export function remotePlace(text: string): (Place & { session: string }) | undefined {
  const colon = text.indexOf(':');
  if (colon < 1 || text.slice(0, colon).includes('/')) return undefined;
  return { session: name(text.slice(0, colon)), ...place(text.slice(colon + 1)) };
}

export const shown = ({ root, path }: Place): string => (path === '' ? root : `${root}/${path}`);
