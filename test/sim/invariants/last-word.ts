import type { SimContainer } from '../cluster/container.ts';
import type { ControllerCall, Observer } from '../observer.ts';
import type { Until } from './activity.ts';
import type { LiveReads } from './live-reads.ts';

interface Said {
  process: string;
  /** Virtual milliseconds. */
  at: number;
  heardAt: number;
}

/**
 * Times up to which a controller that gives up a pod can know of activity. After it told the runner to take no more
 * turns, it asks twice: the runner, which answers when its session was last active, and the API, by its second live
 * read. Activity after the answers cannot be known in time. Without a question, all activity before the call counts.
 */
export class LastWord implements Partial<Observer> {
  /** Pod → its runner's messages about activity and their receivers, in order of arrival. */
  readonly #said = new Map<string, Said[]>();

  heard: Observer['heard'] = ({ podUID, process }, { process: by, agoMs, onActivity }) => {
    if (!onActivity) return;
    const heardAt = process.monotonic();
    this.#said.set(podUID, [...(this.#said.get(podUID) ?? []), { process: by, at: heardAt - agoMs, heardAt }]);
  };

  /** Returns the times for a call that deletes a pod; `knew` is the time up to which its caches were complete. */
  of(
    call: ControllerCall,
    { podUID, suspendedAt }: SimContainer,
    read: ReturnType<LiveReads['of']>,
    knew: number,
  ): Until {
    const sentAt = call.sentAt();
    if (suspendedAt === undefined) return { api: sentAt, runner: sentAt };
    const said = this.#said
      .get(podUID)
      ?.findLast(({ process, at, heardAt }) => process === call.process && at >= suspendedAt && heardAt <= sentAt);
    const readAt = read && read.at >= suspendedAt ? Math.max(read.at, knew) : sentAt;
    return { api: readAt, runner: said?.at ?? sentAt };
  }
}
