import { fieldsPayload, jsonPayload } from '../../core/enter/frames.ts';
import type { EnterRefusal, Kept, Root } from '../../core/enter/hello.ts';
import type { Bind } from '../../core/frames/messages.ts';
import { TurnFailure } from '../../core/result/failure.ts';
import type { Clock, Random } from '../../core/runtime.ts';
import type { Access } from '../session/session.ts';
import { uploadName } from '../state/uploads.ts';
import { errorCode } from '../system/errors.ts';
import { problemOf } from './hello.ts';
import { bytesBeside, OutsideRootError, putThere, removeUpload, takeAway } from './rename.ts';
import { StateRoom } from './state-room.ts';
import type { Visit } from './visit.ts';

/** Time for which a placement waits for a packing, milliseconds. */
const PACKING_MS = 30_000;

/** What the placements of files need of the session. */
interface Placing {
  readonly bind: Bind;
  readonly access: Access;
  /** Takes a step while no state is packed; resolves with false, without the step, where it is packed for longer than `ms`. */
  outsidePacking(step: () => void, ms: number): Promise<boolean>;
}

interface UploadSurroundings {
  session: Placing;
  /** BERTH_STATE_DIR. */
  stateDirectory: string;
  /** Absolute path of the session's volume on this machine. */
  volume: string | undefined;
  clock: Clock;
  random: Random;
}

/** A root that is written to. */
interface Place {
  root: Root;
  folder: string;
  upload: string;
  room: StateRoom | undefined;
}

/**
 * Files that are written or deleted from outside. A helper writes a file beside its place; the runner renames it in the step in which
 * it sees that it neither packs the state nor gives up the pod. So a client is told of no file that a suspension has left out.
 */
export class Uploads {
  readonly #surroundings: UploadSurroundings;

  constructor(surroundings: UploadSurroundings) {
    this.#surroundings = surroundings;
  }

  /** Has the helper do what was asked for below this folder, and renames what it has. */
  serve(visit: Visit, folder: string): void {
    const { hello } = visit;
    if (hello.want !== 'write' && hello.want !== 'fill' && hello.want !== 'delete') return;
    const { root, path } = hello;
    const upload = uploadName(this.#surroundings.random);
    const facts = hello.want === 'write' ? hello : undefined;
    const place: Place = { root, folder, upload, room: undefined };
    if (hello.want !== 'delete') {
      const problem = this.#measure(place, path, hello.length ?? 0);
      if (problem) {
        visit.refuse(problem);
        return;
      }
    }
    let current = path;
    visit.onFrame(({ kind, payload }) => {
      if (kind === 'entry') current = payload.toString('utf8');
      else if (kind === 'place') this.#place(visit, place, current).catch((error) => visit.refuse(failed(error)));
    });
    visit.gone.addEventListener('abort', () => {
      removeUpload(folder, current, upload).catch(() => {});
    });
    const option = hello.want === 'delete' ? Number(hello.recursive ?? false) : (facts?.mode ?? -1);
    const length = hello.want === 'delete' ? -1 : (hello.length ?? -1);
    const more = [upload, this.#keptOf(place), facts?.modified ?? '', facts?.sha256 ?? ''];
    visit.send('order', fieldsPayload([hello.want, root, folder, path, option, length, ...more]));
  }

  /** Counts the state, where it is written to; returns why there is no room for a file that is so long. */
  #measure(place: Place, path: string, bytes: number): EnterRefusal | undefined {
    const { session, stateDirectory } = this.#surroundings;
    const { persistence } = session.bind;
    if (place.root !== 'state' || persistence?.state === false) return undefined;
    try {
      place.room = new StateRoom(stateDirectory, persistence?.maxStateBytes);
    } catch (error) {
      if (error instanceof TurnFailure) return { code: 'StateTooLarge', message: error.message };
      throw error;
    }
    const problem = place.room.problem(path, bytes);
    return problem === undefined ? undefined : { code: 'StateTooLarge', message: problem, field: 'path' };
  }

  async #place(visit: Visit, place: Place, path: string): Promise<void> {
    const { session } = this.#surroundings;
    let refusal: EnterRefusal | undefined;
    const rename = () => {
      refusal = problemOf(visit.hello, session.bind, session.access) ?? this.#rename(visit, place, path);
    };
    if (!(await session.outsidePacking(rename, PACKING_MS))) {
      const message = `the state is being packed for longer than ${PACKING_MS / 1000} s; try again`;
      refusal = { code: 'Busy', message };
    }
    if (refusal) visit.refuse(refusal);
    else visit.send('ready', jsonPayload({}));
  }

  #rename({ hello, gone }: Visit, { root, folder, upload, room }: Place, path: string): EnterRefusal | undefined {
    // The helper has ended, and removed what it had.
    if (gone.aborted) return { code: 'FileFailed', message: 'the client has gone' };
    try {
      if (hello.want === 'delete') takeAway(folder, path, upload);
      else {
        const bytes = room ? bytesBeside(folder, path, upload) : 0;
        const problem = room?.problem(path, bytes);
        if (problem !== undefined) return { code: 'StateTooLarge', message: problem, field: 'path' };
        room?.add(path, bytes);
        putThere(folder, path, upload);
      }
      return undefined;
    } catch (error) {
      return failed(error, `${root}/${path}`);
    }
  }

  /** The folder may be the volume itself or lie in it, as the state directory may, wherever an agent works. */
  #keptOf({ root, folder }: Place): Kept {
    const { session, stateDirectory, volume } = this.#surroundings;
    const isIn = (other: string) => folder === other || folder.startsWith(`${other}/`);
    if (root === 'state' || isIn(stateDirectory)) return session.bind.persistence?.state === false ? 'Pod' : 'State';
    return root === 'workspace' || (volume !== undefined && isIn(volume)) ? 'Volume' : 'Pod';
  }
}

function failed(error: unknown, what = 'the file'): EnterRefusal {
  const field = 'path';
  if (error instanceof OutsideRootError)
    return { code: 'OutsideRoot', message: `${what} leads out of its root`, field };
  const code = errorCode(error);
  if (code === 'ENOENT') return { code: 'FileNotFound', message: `there is no ${what} any more`, field };
  if (code === 'EISDIR' || code === 'ENOTEMPTY') {
    return { code: 'NotAFile', message: `${what} is a folder; name the file in it`, field };
  }
  return { code: 'FileFailed', message: `${what} cannot be renamed (${code})`, field };
}
