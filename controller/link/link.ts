import { FrameDecoder, type FrameEvent } from '../../core/frames/decode.ts';
import { bindText, controlText } from '../../core/frames/encode.ts';
import type { Bind, ControlKind, ControlMessages, Frame, FrameOf, Pong, Ready } from '../../core/frames/messages.ts';
import { frameKeys } from '../../core/frames/seal.ts';
import { validateFrame } from '../../core/frames/validate.ts';
import type { KubeApi } from '../../core/kube/types.ts';
import type { Clock, Logger, Random } from '../../core/runtime.ts';
import { Attachment } from './attachment.ts';
import { Inbox } from './inbox.ts';
import type { MasterKeys } from './keys.ts';
import type { LinkView } from './view.ts';

export interface LinkOptions {
  api: Pick<KubeApi, 'attach'>;
  clock: Clock;
  random: Random;
  log: Logger;
  pod: { namespace: string; name: string; uid: string };
  session: string;
  incarnation: number;
  keys: MasterKeys;
  /** The present leadership. */
  epoch(): number;
  /** A number that grows with every call, over all links of the process. */
  nextNumber(): number;
  onChange(): void;
  /** The runner has obeyed a later leader than this one. */
  onLaterEpoch(epoch: number): void;
}

const PING_MS = 30_000;
/**
 * The controller's end of one pod's boundary: asks for what was missed, and shows what the runner has said as a
 * `LinkView`. It decides nothing.
 */
export class Link {
  view: LinkView;
  readonly #options: LinkOptions;
  readonly #decoder = new FrameDecoder({ validate: validateFrame });
  readonly #attachment: Attachment;
  readonly #inbox = new Inbox();
  #boot: string | undefined;
  #down: Buffer | undefined;
  #acked = 0;
  /** This attach has had its `ready`; the line ends that begin an attach can ask for more than one. */
  #greeted = false;
  /** A frame has opened: the keys are the right ones. */
  #opened = false;
  #tries = 0;
  /** The number of the control line that gave the last turn. */
  #turnNumber = 0;
  #cancelPing: () => void = () => {};

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#attachment = new Attachment({
      ...options,
      onOpen: () => {
        this.#greeted = false;
      },
      onBytes: (chunk) => this.#take(this.#decoder.push(chunk)),
      onChange: () => {
        this.#silence();
        options.onChange();
      },
    });
    this.view = {
      podUID: options.pod.uid,
      phase: 'Opening',
      sent: new Set(),
      resumed: false,
      fresh: false,
      suspendSent: false,
      suspended: false,
    };
  }

  /** UID of the session that the pod was made for. */
  get session(): string {
    return this.#options.session;
  }

  /** Begins to attach; `scheduled` and `running` say what is known of the pod already. */
  open(pod: { scheduled: boolean; running: boolean; fresh?: boolean }): void {
    if (pod.fresh) this.view = { ...this.view, fresh: true };
    this.#attachment.open(pod);
  }

  podChanged(pod: { scheduled: boolean }): void {
    this.#attachment.podChanged(pod);
  }

  close(): void {
    this.#cancelPing();
    this.#attachment.close();
  }

  // -------------------------------------------------------------------------------------------------------- down

  /** Answers `ready` of an unbound runner; `restore` follows at once where there is a state. */
  bind(bind: Omit<Bind, 'keys'>, sealedState?: { digest: string; keyId: string; sealed: Buffer }): void {
    const boot = this.#boot;
    if (!boot) return;
    const { up, down } = this.#keys(boot);
    const message: Bind = { ...bind, keys: { up: up.toString('base64'), down: down.toString('base64') } };
    this.#attachment.write(bindText(boot, this.#position(), message));
    this.#useKeys(boot, up, down);
    this.#change({ phase: 'Binding' });
    if (sealedState) {
      const { sealed, ...facts } = sealedState;
      this.#send('restore', facts, sealed);
    }
    this.#expectAnswer();
  }

  startTurn(turn: ControlMessages['turn']): void {
    if (!this.#down) return;
    this.view = { ...this.view, sent: new Set([...this.view.sent, turn.turn]), active: turn.turn };
    this.#turnNumber = this.#send('turn', turn);
    this.#expectAnswer();
  }

  cancel(turn: string): void {
    this.#change({ cancelSent: { turn, at: this.#options.clock.now() } });
    this.#send('cancel', { turn, outcome: 'Cancelled' });
    this.#expectAnswer();
  }

  /** The runner refuses turns from now on and hands over its state, which appears as `view.snapshot`. */
  suspend(): void {
    const { refused: _, snapshot: __, ...rest } = this.view;
    this.view = { ...rest, suspendSent: true };
    this.#send('suspend', {});
    this.#send('snapshot', {});
    this.#expectAnswer();
  }

  resume(): void {
    const { snapshot, ...rest } = this.view;
    this.view = { ...rest, suspendSent: false, suspended: false };
    this.#send('resume', {});
    if (snapshot) this.acknowledge(snapshot.seq);
    this.#options.onChange();
  }

  /** Everything up to this frame is stored: the runner may forget it. */
  acknowledge(through: number): void {
    this.#acked = Math.max(this.#acked, through);
    this.#inbox.forget(through);
    const { delivery, snapshot, active, ...rest } = this.view;
    const ended = delivery && delivery.result.seq <= through ? delivery.result.message.turn : undefined;
    this.view = {
      ...rest,
      sent: new Set([...rest.sent].filter((turn) => turn !== ended)),
      ...(active !== undefined && active !== ended ? { active } : {}),
      ...(delivery && delivery.result.seq > through ? { delivery } : {}),
      ...(snapshot && snapshot.seq > through ? { snapshot } : {}),
    };
    this.#send('ack', { through });
    const next = this.#inbox.delivery();
    this.#change(next ? { delivery: next } : {});
  }

  /** Takes in what an ended container printed, from its log: lines of other streams may stand between the frames'. */
  takeLog(text: Buffer): void {
    const boot = /"boot":"([0-9a-f]+)"/.exec(text.toString('latin1'))?.[1];
    if (!this.#boot && boot) {
      const { up, down } = this.#keys(boot);
      this.#useKeys(boot, up, down);
    }
    const lines = text.toString('latin1').split('\n');
    const ours = lines.filter((line) => line.startsWith('<<<BERTH_') || /^[A-Za-z0-9+/]+={0,2}$/.test(line));
    const events = this.#decoder.push(Buffer.from(`${ours.join('\n')}\n`, 'latin1'));
    // A log with sealed frames in it is that of a runner that was bound.
    if (events.some(({ type }) => type !== 'ready')) this.view = { ...this.view, resumed: true };
    this.#take(events);
  }

  #send<K extends Exclude<ControlKind, 'bind'>>(kind: K, message: ControlMessages[K], binary?: Buffer): number {
    const position = this.#position();
    if (!this.#down || !this.#boot) return position.n;
    const { session, incarnation, random } = this.#options;
    const channel = { session, incarnation, boot: this.#boot, key: this.#down, random };
    this.#attachment.write(controlText(channel, position, kind, message, binary));
    return position.n;
  }

  #position(): { epoch: number; n: number } {
    return { epoch: this.#options.epoch(), n: this.#options.nextNumber() };
  }

  #expectAnswer(): void {
    this.#attachment.expectAnswer();
    this.#silence();
  }

  #answered(): void {
    this.#attachment.answered();
    this.#silence();
    this.#cancelPing();
    this.#cancelPing = this.#options.clock.setTimer(PING_MS, () => {
      this.#send('ping', {});
      this.#expectAnswer();
    });
  }

  #silence(): void {
    const { silentSince } = this.#attachment;
    if (this.view.silentSince === silentSince) return;
    const { silentSince: _, ...rest } = this.view;
    this.view = silentSince === undefined ? rest : { ...rest, silentSince };
  }

  // -------------------------------------------------------------------------------------------------------- up

  #take(events: FrameEvent[]): void {
    for (const event of events) {
      if (event.type === 'ready') this.#ready(event.ready);
      else if (event.type === 'gap') this.#send('resend', { from: event.from });
      else if (event.type === 'frame') this.#frame(event.frame);
      else if (event.type === 'malformed') {
        const { seq, kind, problem } = event;
        this.#options.log.warn({ pod: this.#options.pod.name, seq, kind, problem }, 'a pod sent what is no message');
      }
    }
  }

  /** In clear, so nothing is believed because of it: who it is shows in whether its frames open. */
  #ready(ready: Ready): void {
    const { session, incarnation, pod } = this.#options;
    // In clear: it shows that somebody is there, not that it is still the one with our keys.
    if (ready.session === undefined) this.#answered();
    else this.#attachment.heard();
    if (ready.epoch > this.#options.epoch()) {
      // It would refuse everything; once the epoch is raised, a later attach is obeyed.
      this.#options.onLaterEpoch(ready.epoch);
      this.#attachment.reattach();
      return;
    }
    if (this.#greeted) return;
    this.#greeted = true;
    const facts = { protocol: ready.protocol, runnerVersion: ready.runnerVersion };
    if (ready.podUID !== pod.uid || (this.#boot !== undefined && this.#boot !== ready.boot)) {
      this.#change({ ...facts, phase: 'Foreign' });
      return;
    }
    if (ready.session === undefined) {
      this.#boot = ready.boot;
      this.#change({ ...facts, phase: 'Unbound' });
      return;
    }
    if (ready.session !== session || ready.incarnation !== incarnation) {
      this.#change({ ...facts, phase: 'Foreign' });
      return;
    }
    if (!this.#opened) {
      // Which master key its keys were derived from shows in whether its frames open.
      const resumed = this.view.resumed || this.#boot === undefined;
      const { up, down } = this.#keys(ready.boot, resumed ? this.#tries++ : 0);
      this.#useKeys(ready.boot, up, down);
      this.view = { ...this.view, resumed };
    }
    if (this.#acked > 0) this.#send('ack', { through: this.#acked });
    this.#send('resend', { from: this.#decoder.next });
    // What was asked for over an attach that broke may not have arrived; asking again changes nothing.
    const { cancelSent, suspendSent, snapshot } = this.view;
    if (cancelSent) this.#send('cancel', { turn: cancelSent.turn, outcome: 'Cancelled' });
    if (suspendSent && !snapshot) {
      this.#send('suspend', {});
      this.#send('snapshot', {});
    }
    this.#send('ping', {});
    this.#expectAnswer();
    this.#change(facts);
  }

  #frame(frame: Frame): void {
    this.#opened = true;
    this.#answered();
    switch (frame.kind) {
      case 'bound':
        this.#change({ phase: 'Bound', bound: frame.message });
        break;
      case 'started':
        this.#change({
          started: { turn: frame.message.turn, at: frame.message.at },
          sent: new Set([...this.view.sent, frame.message.turn]),
        });
        break;
      case 'log':
      case 'state':
      case 'result':
        this.#keep(frame);
        break;
      case 'pong':
        this.#pong(frame.message);
        break;
      case 'refused':
        this.#options.log.warn({ pod: this.#options.pod.name, ...frame.message }, 'runner refused a control line');
        // Its `ready` says which epoch it obeys.
        if (frame.message.code === 'StaleEpoch') this.#attachment.reattach();
        this.#change({ refused: frame.message });
        break;
      case 'bye':
        this.#change({ phase: 'Ended' });
        break;
      default:
        break;
    }
  }

  #pong(pong: Pong): void {
    const { turn } = pong;
    const { active: _, ...rest } = this.view;
    // A pong to a ping from before the turn was sent says nothing of it.
    const active = turn?.uid ?? (pong.n < this.#turnNumber ? this.view.active : undefined);
    const started = turn?.startedAt ? { turn: turn.uid, at: turn.startedAt } : this.view.started;
    this.view = {
      ...rest,
      phase: 'Bound',
      sent: turn ? new Set([...this.view.sent, turn.uid]) : this.view.sent,
      ...(active ? { active } : {}),
      ...(started ? { started } : {}),
      suspended: pong.suspended,
    };
    this.#options.onChange();
  }

  #keep(frame: FrameOf<'log'> | FrameOf<'state'> | FrameOf<'result'>): void {
    this.#inbox.add(frame);
    const delivery = this.#inbox.delivery();
    if (frame.kind === 'state' && frame.message.turn === undefined) this.#change({ snapshot: frame });
    else if (delivery) this.#change({ delivery });
  }

  /** From the current master key, or at further tries from the others in turn. */
  #keys(boot: string, attempt = 0): { up: Buffer; down: Buffer } {
    const { keys, session, pod } = this.#options;
    const others = [...keys.byId].filter(([id]) => id !== keys.current.id).map(([, key]) => key);
    const masters = [keys.current.key, ...others];
    const master = masters[attempt % masters.length] as Buffer;
    return frameKeys(master, { session, podUID: pod.uid, boot });
  }

  #useKeys(boot: string, up: Buffer, down: Buffer): void {
    const { session, incarnation } = this.#options;
    this.#boot = boot;
    this.#down = down;
    this.#decoder.setChannel({ session, incarnation, boot, key: up });
  }

  #change(patch: Partial<LinkView>): void {
    this.view = { ...this.view, ...patch };
    this.#options.onChange();
  }
}
