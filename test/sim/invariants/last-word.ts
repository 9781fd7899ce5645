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
 * Up to when a controller that gives up a pod can know of activity. Since it told the runner to take no more turns it has
 * asked twice: the runner, which answers when its session was last active, and the API, with its second look. What comes
 * after the answers nobody can know in time. Where it has not asked, all that was before its call counts.
 */
export class LastWord implements Partial<Observer> {
  /** Pod → what its runner has said of activity, to whom; in order of hearing. */
  readonly #said = new Map<string, Said[]>();

  heard: Observer['heard'] = ({ podUID, process }, { process: by, agoMs, onActivity }) => {
    if (!onActivity) return;
    const heardAt = process.monotonic();
    this.#said.set(podUID, [...(this.#said.get(podUID) ?? []), { process: by, at: heardAt - agoMs, heardAt }]);
  };

  /** `knew`: up to when the caches of the controller had been shown everything. */
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
